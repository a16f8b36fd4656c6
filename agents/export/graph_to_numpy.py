"""Translates the TensorFlow graph of a policy into a list of NumPy calls."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from agents.export import numpy_player, operation_rules


def translate(
  function: Any, inputs: Iterable[str], outputs: Iterable[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
  """Translates a function into a program for `numpy_player.compute`.

  A value that depends on inputs is a dict {"value": name}, with the name of an
  input or of a call's result. Calls without such a value are not part of the
  program, because the translation evaluates them.

  Args:
    function: Concrete function without variables.
    inputs: Names of the function's inputs.
    outputs: Names of the function's outputs.

  Returns:
    The program as JSON data, and the arrays that the program uses, by name.

  Raises:
    ConfigError: If the graph contains an unsupported operation.
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

  values: dict[str, Any] = {
    tensor.name: {"value": name} for name, tensor in zip(inputs, function.inputs, strict=True)
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
  return {"calls": calls, "outputs": encoded}, constants
