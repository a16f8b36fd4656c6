"""Translates the TensorFlow graph of a policy into a list of NumPy calls."""

from typing import Any

import numpy as np
import tensorflow as tf

from agents.export import numpy_player, operation_rules


class CallList:
  """Records calls; evaluates calls of constants immediately.

  A value that depends on inputs is symbolic: a dict {"value": name} with the
  name of an input or of the result of a call.
  """

  def __init__(self):
    self.calls: list[list[Any]] = []
    self.constants: dict[str, np.ndarray] = {}

  def __call__(self, name: str, *arguments: Any) -> Any:
    """Evaluate or record a call.

    Args:
      name: Key of `numpy_player.CALLS`.
      *arguments: Arrays, symbolic values, slices, and lists of numbers.
    Returns:
      Array, or a symbolic value if any argument is one.
    """
    if not any(isinstance(argument, dict) for argument in arguments):
      return numpy_player.CALLS[name](*arguments)
    result = f"call_{len(self.calls)}"
    self.calls.append([result, name, [self.encode(x) for x in arguments]])
    return {"value": result}

  def encode(self, argument: Any) -> Any:
    """Return an argument as JSON data; arrays are added to `constants`.

    Args:
      argument: Argument of a call.
    Returns:
      JSON data as `numpy_player.compute` reads it.
    """
    if isinstance(argument, (np.ndarray, np.generic)):
      name = f"constant_{len(self.constants)}"
      self.constants[name] = np.asarray(argument)
      return {"value": name}
    if isinstance(argument, slice):
      return {"slice": [argument.start, argument.stop, argument.step]}
    return {"ellipsis": True} if argument is Ellipsis else argument


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
      tensor: {"value": name} for name, tensor in inputs.items()}
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
