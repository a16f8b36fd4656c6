"""Infos of several environments as columns, batched in Gymnasium's format.

A column contains the values of one key, in an array if all values are numbers
of one type. Workers send columns, because sending and batching them is several
times faster than with one dictionary per environment.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np


class Column(NamedTuple):
  """Values of several environments under one key."""

  indices: list[int]  # Environments that have the key.
  values: Any  # An array if all values are numbers of one type, else a list.
  python_type: bool = False  # Whether array elements were Python numbers.


Columns = dict[str, Column]  # By key.


def gather(infos: Mapping[int, dict[str, Any]]) -> Columns:
  """Returns infos as columns.

  Args:
    infos: Infos by index of the environment.
  """
  columns: dict[str, tuple[list[int], list[Any]]] = {}
  for index, info in infos.items():
    for key, value in info.items():
      indices, values = columns.setdefault(key, ([], []))
      indices.append(index)
      values.append(value)
  # Like Gymnasium, this function does not pack final observations into arrays.
  return {
    key: Column(*column) if key == "final_obs" else _pack(*column)
    for key, column in columns.items()
  }


def batch(
  parts: Sequence[Columns], num_envs: int, add_info: Callable[[dict, dict, int], dict]
) -> dict[str, Any]:
  """Returns the infos that `gymnasium.vector.SyncVectorEnv` would return.

  Args:
    parts: Columns of disjoint sets of environments, ordered by index.
    num_envs: Number of all environments.
    add_info: `gymnasium.vector.VectorEnv._add_info`, which adds one value of
      one environment; used for values that are not numbers of one type.

  Returns:
    For each key, an array of shape [num_envs, ...]. For each `_key`, a bool
    array of shape [num_envs], true for environments that have the key.
  """
  result: dict[str, Any] = {}
  for key in dict.fromkeys(key for part in parts for key in part):
    columns = [part[key] for part in parts if key in part]
    indices = [index for column in columns for index in column.indices]
    arrays = [column.values for column in columns if isinstance(column.values, np.ndarray)]
    if len(arrays) == len(columns) and len({x.dtype for x in arrays}) == 1:
      result[key] = np.zeros(num_envs, arrays[0].dtype)
      result[key][indices] = np.concatenate(arrays)
      result[f"_{key}"] = np.zeros(num_envs, np.bool_)
      result[f"_{key}"][indices] = True
    else:
      values = [
        value
        for column in columns
        for value in (column.values.tolist() if column.python_type else column.values)
      ]
      for index, value in zip(indices, values, strict=True):
        result = add_info(result, {key: value}, index)
  return result


def _pack(indices: list[int], values: list[Any]) -> Column:
  """Returns a column, with numbers of one type in an array."""
  value_type = type(values[0])
  python_type = value_type in (int, float, bool)
  if (python_type or issubclass(value_type, np.number)) and all(
    type(value) is value_type for value in values
  ):
    return Column(indices, np.array(values, value_type), python_type)
  return Column(indices, values)
