"""Translates the TensorFlow graph of a policy into a list of NumPy calls."""

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from agents.export import numpy_player, operation_rules


class SymbolicValue(NamedTuple):
  """Value that depends on inputs: an input or the result of a call."""

  name: str


class CallList:
  """Records calls; evaluates calls of constants immediately."""

  def __init__(self):
    self.calls: list[list[Any]] = []
    self.constants: dict[str, np.ndarray] = {}

  def __call__(self, name: str, *arguments: Any) -> Any:
    """Evaluate or record a call.

    Args:
      name: Key of `numpy_player.CALLS`.
      *arguments: Arrays, symbolic values, and nested lists and slices of them.
    Returns:
      Array, or a symbolic value if any argument contains one.
    """
    if not _is_symbolic(arguments):
      return numpy_player.CALLS[name](*arguments)
    result = f"call_{len(self.calls)}"
    self.calls.append([result, name, [self.encode(x) for x in arguments]])
    return SymbolicValue(result)

  def encode(self, argument: Any) -> Any:
    """Return an argument as JSON data; arrays are added to `constants`.

    Args:
      argument: Argument of a call.
    Returns:
      JSON data as `numpy_player.compute` reads it.
    """
    if isinstance(argument, SymbolicValue):
      return {"value": argument.name}
    if isinstance(argument, slice):
      return {"slice": [argument.start, argument.stop, argument.step]}
    if argument is Ellipsis:
      return {"ellipsis": True}
    if isinstance(argument, (tuple, list)):
      return [self.encode(x) for x in argument]
    if isinstance(argument, (np.ndarray, np.generic)):
      name = f"constant_{len(self.constants)}"
      self.constants[name] = np.asarray(argument)
      return {"value": name}
    return argument


def translate(graph: tf.Graph, inputs: dict[str, str], outputs: dict[str, str]
              ) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
  """Translate a graph for `numpy_player.compute`.

  Args:
    graph: Graph without variables.
    inputs: Name of the tensor for each name of an input.
    outputs: Name of the tensor for each name of an output.
  Returns:
    JSON data with calls and outputs, and the constants that they use by name.
  Raises:
    ConfigError: If the graph contains an unsupported operation.
  """
  calls = CallList()
  values: dict[str, Any] = {
      tensor: SymbolicValue(name) for name, tensor in inputs.items()}
  for operation in graph.get_operations():
    if operation.type in ("Placeholder", "NoOp"):
      continue
    if operation.type == "Const":
      results = [tf.make_ndarray(operation.get_attr("value"))]
    else:
      arguments = [values[tensor.name] for tensor in operation.inputs]
      results = operation_rules.translate(calls, operation, arguments)
    for tensor, result in zip(operation.outputs, results, strict=True):
      values[tensor.name] = result
  encoded = {name: calls.encode(values[tensor])["value"]
             for name, tensor in outputs.items()}
  return {"calls": calls.calls, "outputs": encoded}, calls.constants


def _is_symbolic(argument: Any) -> bool:
  """Whether an argument is or contains a symbolic value."""
  return isinstance(argument, SymbolicValue) or (
      isinstance(argument, (tuple, list)) and any(map(_is_symbolic, argument)))
