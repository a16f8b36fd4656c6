"""Decides when periodic actions, such as reports, are due."""

import dataclasses
import math


@dataclasses.dataclass
class Schedule:
  """Intervals of periodic actions, and the latest step of each action.

  An action is due at the first step at or after each multiple of its interval,
  and at the end of the budget.
  """

  budget: int  # Environment steps of the run.
  # Environment steps between two actions, by name; None disables the action.
  intervals: dict[str, int | None]
  # Step of the previous action, by name; -1 makes the action due at step 0.
  last: dict[str, int]

  def is_due(self, name: str, step: int) -> bool:
    """Returns whether an action is due.

    Args:
      name: Name of the action.
      step: Environment steps so far.
    """
    interval, last = self.intervals[name], self.last[name]
    return (
      interval is not None
      and step > last
      and (step >= self.budget or step // interval > last // interval)
    )

  def num_remaining(self, name: str, step: int, epoch_steps: float) -> int:
    """Returns how often an action will take place, including one that is due.

    Args:
      name: Name of an action that is not disabled.
      step: Environment steps so far.
      epoch_steps: Environment steps per epoch.
    """
    interval = self.intervals[name]
    assert interval
    multiples = math.ceil(self.budget / interval) - step // interval
    epochs = math.ceil((self.budget - step) / epoch_steps)
    return self.is_due(name, step) + max(0, min(multiples, epochs))
