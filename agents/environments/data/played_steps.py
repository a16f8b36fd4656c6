"""Steps that blocks played with a policy, without the trainer."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

# Fields of `buffer_layout.batch_layout` that describe a step.
FIELDS = "action", "active", "reward", "terminated", "truncated", "valid", "final_observ"


class PlayedSteps(NamedTuple):
  """T steps of N environments."""

  arrays: dict[str, np.ndarray]  # FIELDS by name, each of shape [T, N, ...].
  reports: dict[int, dict[int, Any]]  # Results of `GymnasiumBlock.step`, by step.


def join(shares: Sequence[PlayedSteps]) -> PlayedSteps:
  """Joins the steps of several blocks.

  Args:
    shares: Steps of each block, with equal numbers of steps.

  Returns:
    Steps of all B environments.
  """
  arrays = {name: np.concatenate([share.arrays[name] for share in shares], 1) for name in FIELDS}
  reports: dict[int, dict[int, Any]] = {}
  for share in shares:
    for step, report in share.reports.items():
      reports.setdefault(step, {}).update(report)
  return PlayedSteps(arrays, reports)
