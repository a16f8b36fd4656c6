"""Numbers that must be finite and are not."""

from __future__ import annotations

import math

from agents import errors
from agents.training import trainer


class TrainingDiverged(errors.RunError):
  """An update led to what is not a finite number."""

  exit_code = 3


def check(epoch: trainer.Epoch, step: int):
  """Look at all that an epoch reports.

  Args:
    epoch: What was done last.
    step: Training steps before it.
  Raises:
    TrainingDiverged: If something is not finite; says what and where.
  """
  for name, value in epoch.metrics.items():
    if not math.isfinite(value):
      raise TrainingDiverged(
          f"{name} became {value} in the update after step {step:,}, whose "
          f"first {epoch.finite_steps} of {epoch.gradient_steps} minibatches "
          "had finite gradients. If this comes again, begin anew with a "
          "smaller algorithm.learning_rate, for example.")
