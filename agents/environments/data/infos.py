"""Infos of many environments, key by key, as Gymnasium's vectors have them.

A worker gathers its share in columns, numbers of one type in arrays: they
travel and are batched several times faster than as dictionaries of numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping
from typing import Any
from typing import NamedTuple

import numpy as np


class Column(NamedTuple):
  """What several environments say under one key."""

  indices: list[int]  # Of these environments.
  values: list[Any] | np.ndarray  # An array of numbers of one type, or a list.
  plain: bool = False  # Whether numbers in the array were Python's own.


Columns = dict[str, Column]  # By key.


def gather(infos: Mapping[int, dict[str, Any]]) -> Columns:
  """Turn infos by index into columns by key."""
  columns: dict[str, tuple[list[int], list[Any]]] = {}
  for index, info in infos.items():
    for key, value in info.items():
      if key not in columns:
        columns[key] = [], []
      indices, values = columns[key]
      indices.append(index)
      values.append(value)
  # Gymnasium keeps final observations as they are, even numbers.
  return {key: (Column if key == "final_obs" else _pack)(indices, values)
          for key, (indices, values) in columns.items()}


def batch(parts: list[Columns], amount: int,
          add_info: Callable[[dict, dict, int], dict]) -> dict[str, Any]:
  """Return what Gymnasium makes of infos: arrays, and masks of who has them.

  Args:
    parts: Columns of different environments, in order of their indices.
    amount: Number of all environments.
    add_info: `gymnasium.vector.VectorEnv._add_info`, which does the same by
      one environment and key after the other, for what is not a number.
  """
  result: dict[str, Any] = {}
  for key in dict.fromkeys(key for part in parts for key in part):
    columns = [part[key] for part in parts if key in part]
    indices = [index for column in columns for index in column.indices]
    arrays = [column.values for column in columns
              if isinstance(column.values, np.ndarray)]
    if len(arrays) == len(columns) and len({x.dtype for x in arrays}) == 1:
      array = np.zeros(amount, arrays[0].dtype)
      array[indices] = np.concatenate(arrays)
      mask = np.zeros(amount, np.bool_)
      mask[indices] = True
      result[key], result[f"_{key}"] = array, mask
      continue
    values = [value for column in columns for value in _unpack(column)]
    for index, value in zip(indices, values, strict=True):
      result = add_info(result, {key: value}, index)
  return result


def _pack(indices: list[int], values: list[Any]) -> Column:
  """Return a column, with numbers of one type in an array."""
  kind = type(values[0])
  plain = kind in (int, float, bool)
  if (plain or issubclass(kind, np.number)) and all(
      type(value) is kind for value in values):
    return Column(indices, np.array(values, kind), plain)
  return Column(indices, values)


def _unpack(column: Column) -> list[Any]:
  """Return the values as they were before `_pack`."""
  if isinstance(column.values, np.ndarray) and column.plain:
    return column.values.tolist()
  return list(column.values)
