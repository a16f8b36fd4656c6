"""Translates the TensorFlow graph of a policy into a list of NumPy calls."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from agents.translation import numpy_player, operation_rules


def translate(
  function: Any, inputs: Iterable[str], outputs: Iterable[str], captures: Iterable[np.ndarray] = ()
) -> tuple[dict[str, Any], dict[str, Any]]:
  """Translates a function into a program for `numpy_player.compute`.

  A value that depends on inputs is a dict {"value": name}, with the name of an
  input or of a call's result. Calls without such a value are not part of the
  program, because the translation evaluates them.

  Args:
    function: Concrete function.
    inputs: Names of the function's inputs.
    outputs: Names of the function's outputs.
    captures: Values of the captured variables and tensors, in the order of
      `function.captured_inputs`. The program treats them as constants.

  Returns:
    The program as JSON data, and the arrays that the program uses, by name.

  Raises:
    UnsupportedOperation: If there is no rule for an operation of the graph.
  """
  calls: list[list[Any]] = []
  constants: dict[str, Any] = {}

  def encode(argument: Any) -> Any:
    """Returns an argument as JSON data; adds an array to the constants."""
    if isinstance(argument, (np.ndarray, np.generic)):
      name = f"constant_{len(constants)}"
      constants[name] = np.asarray(argument)
      return {"value": name}
    return "..." if argument is Ellipsis else argument

  def call(name: str, *arguments: Any) -> Any:
    """Evaluates a call of constants, or records any other call."""
    if not any(isinstance(argument, dict) for argument in arguments):
      return numpy_player.CALLS[name](*arguments)
    result = f"call_{len(calls)}"
    calls.append([result, name, [encode(argument) for argument in arguments]])
    return {"value": result}

  arguments = [*({"value": name} for name in inputs), *captures]
  values: dict[str, Any] = {
    tensor.name: value for tensor, value in zip(function.inputs, arguments, strict=True)
  }
  for operation in function.graph.get_operations():
    if operation.type in ("Placeholder", "NoOp"):
      continue
    results = operation_rules.translate(
      call, operation, [values[tensor.name] for tensor in operation.inputs]
    )
    for tensor, result in zip(operation.outputs, results, strict=True):
      values[tensor.name] = result
  encoded = {
    name: encode(values[tensor.name])["value"]
    for name, tensor in zip(outputs, function.outputs, strict=True)
  }
  return {"calls": _needed(calls, encoded.values()), "outputs": encoded}, constants


def _needed(calls: list[list[Any]], outputs: Iterable[str]) -> list[list[Any]]:
  """Removes calls that do not contribute to the outputs."""
  names, needed = set(outputs), []
  for call in reversed(calls):
    result, _, arguments = call
    if result in names:
      names.update(argument["value"] for argument in arguments if isinstance(argument, dict))
      needed.append(call)
  return needed[::-1]
