"""Infos of many environments, key by key, as Gymnasium's vectors have them.

A worker gathers its share in columns, numbers of one type in arrays: they
travel and are batched several times faster than as dictionaries of numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

import numpy as np

# Key: (indices of the environments that have it, what they say).
Columns = dict[str, tuple[list[int], "list[Any] | np.ndarray"]]


def gather(infos: Mapping[int, dict[str, Any]]) -> Columns:
  """Turn infos by index into columns by key."""
  columns: dict[str, tuple[list[int], Any]] = {}
  for index, info in infos.items():
    for key, value in info.items():
      if key not in columns:
        columns[key] = [], []
      indices, values = columns[key]
      indices.append(index)
      values.append(value)
  # Gymnasium keeps final observations as they are, even numbers.
  return {key: (indices, values if key == "final_obs" else _pack(values))
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
    indices = [index for column, _ in columns for index in column]
    arrays = [values for _, values in columns if isinstance(values, np.ndarray)]
    if len(arrays) == len(columns) and len({x.dtype for x in arrays}) == 1:
      array = np.zeros(amount, arrays[0].dtype)
      array[indices] = np.concatenate(arrays)
      mask = np.zeros(amount, np.bool_)
      mask[indices] = True
      result[key], result[f"_{key}"] = array, mask
      continue
    values = [value for _, column in columns for value in _unpack(column)]
    for index, value in zip(indices, values, strict=True):
      result = add_info(result, {key: value}, index)
  return result


def _pack(values: list[Any]) -> list[Any] | np.ndarray:
  """Return an array of numbers of one type, or else what was given."""
  kind = type(values[0])
  if (kind in (int, float, bool) or issubclass(kind, np.number)) and all(
      type(value) is kind for value in values):
    return np.array(values, kind)
  return values


def _unpack(values: list[Any] | np.ndarray) -> list[Any]:
  """Undo `_pack`, up to numbers that Gymnasium keeps in arrays of one type."""
  if isinstance(values, np.ndarray):
    # A bool of NumPy would be an object to Gymnasium.
    return values.tolist() if values.dtype == np.bool_ else list(values)
  return values
