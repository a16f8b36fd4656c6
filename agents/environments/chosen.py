"""Reaches into those environments of a batch that are chosen."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import numpy as np

from agents.environments import group as group_lib


class Chosen:
  """Some environments of a batch, in an order of their own.

  Args:
    rows: Which environments the batch steps.
    indices: Which ones are chosen; all by default.
  Raises:
    ValueError: If there is no such environment, or it is named twice.
  """

  def __init__(self, rows: slice, indices: Sequence[int] | None):
    there = range(rows.start, rows.stop)
    self.indices = there if indices is None else indices
    different = set(self.indices)
    if not different <= set(there) or len(different) < len(self.indices):
      raise ValueError(f"`indices` must be different ones of {rows.start} to "
                       f"{rows.stop - 1}. Received: {list(self.indices)}.")
    self._mask = [index in different for index in range(rows.stop)]

  def ask(self, groups: Sequence[group_lib.Group],
          ask: Callable[..., list[Any]]) -> list[Any]:
    """Return what the chosen ones of each block answer, in order of indices.

    Args:
      groups: All groups of the batch.
      ask: Asks a block, told for each of its environments whether it is chosen.
    """
    answers = sum((ask(group.block, self._mask[group.rows])
                   for group in groups), [])
    found = dict(zip(np.flatnonzero(self._mask).tolist(), answers, strict=True))
    return [found[index] for index in self.indices]

  def set(self, groups: Sequence[group_lib.Group], name: str,
          values: Sequence[Any]):
    """Set an attribute of each, to values in order of indices."""
    new = dict(zip(self.indices, values, strict=True))
    ordered = [new.get(index) for index in range(len(self._mask))]
    for group in groups:
      group.block.set(name, ordered[group.rows], self._mask[group.rows])
