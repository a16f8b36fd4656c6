"""From the graph of a policy to a list of NumPy calls, see `player`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from agents.export import numpy_player
from agents.export import operation_rules


class Value(NamedTuple):
  """What an input is, or a call returns: from 0 on, or from -1 downwards."""

  number: int


class Program:
  """Collects calls; what depends on constants alone is done at once.

  Args:
    inputs: How many there are.
  """

  def __init__(self, inputs: int):
    self._inputs = inputs
    self.constants: list[np.ndarray] = []
    self._calls: list[list[Any]] = []

  def __call__(self, name: str, *arguments: Any) -> Any:
    """Return what a call returns, or where that will be."""
    if not _unknown(arguments):
      return numpy_player.CALLS[name](*arguments)
    self._calls.append([name, [self._plain(x) for x in arguments]])
    return Value(-len(self._calls))

  def data(self, outputs: dict[str, Any]) -> dict[str, Any]:
    """Return all but the constants as plain data."""
    found = {name: self._plain(value) for name, value in outputs.items()}
    first = self._inputs + len(self.constants)
    def numbered(data):
      if isinstance(data, dict) and data.get("value", 0) < 0:
        return {"value": first - 1 - data["value"]}
      return list(map(numbered, data)) if isinstance(data, list) else data
    return {"constants": len(self.constants), "calls": numbered(self._calls),
            "outputs": {name: numbered(place)["value"]
                        for name, place in found.items()}}

  def _plain(self, value: Any) -> Any:
    if isinstance(value, Value):
      return {"value": value.number}
    if isinstance(value, slice):
      return {"slice": [value.start, value.stop, value.step]}
    if value is Ellipsis:
      return {"ellipsis": True}
    if isinstance(value, (tuple, list)):
      return [self._plain(x) for x in value]
    if isinstance(value, (np.ndarray, np.generic)):
      self.constants.append(np.asarray(value))
      return {"value": self._inputs + len(self.constants) - 1}
    return value


def translate(graph: tf.Graph, inputs: Sequence[str], outputs: dict[str, str]
              ) -> tuple[dict[str, Any], list[np.ndarray]]:
  """Return a graph as plain data and constants, as `numpy_player.Policy` reads them.

  Args:
    graph: Without variables.
    inputs: Names of placeholders.
    outputs: Names of tensors, by that of the output.
  Raises:
    ConfigError: If there is an operation that is not known here.
  """
  program = Program(len(inputs))
  values = {f"{name}:0": Value(index) for index, name in enumerate(inputs)}
  for operation in graph.get_operations():
    kind = operation.type
    if kind in ("Placeholder", "NoOp"):
      continue
    arguments = [values[tensor.name] for tensor in operation.inputs]
    if kind == "Const":
      results = [tf.make_ndarray(operation.get_attr("value"))]
    else:
      results = operation_rules.calls(program, operation, arguments)
    for tensor, result in zip(operation.outputs, results, strict=True):
      values[tensor.name] = result
  found = {name: values[tensor] for name, tensor in outputs.items()}
  return program.data(found), program.constants


def _unknown(arguments: Any) -> bool:
  if isinstance(arguments, (tuple, list)) and not isinstance(arguments, Value):
    return any(map(_unknown, arguments))
  return isinstance(arguments, Value)
