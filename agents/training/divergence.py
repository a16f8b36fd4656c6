"""Detects metrics and variables that are NaN or infinite."""

import math
from typing import Any

import numpy as np

from agents import errors
from agents.training import epoch_result, trainer


def check(epoch: epoch_result.Epoch, step: int, algorithm: trainer.Algorithm) -> None:
  """Checks the metrics of an epoch and the weights after it.

  Args:
    epoch: Result of the last epoch.
    step: Training steps completed before this epoch.
    algorithm: Algorithm that learned in this epoch.

  Raises:
    TrainingDiverged: If a value is not finite. The message names the first
      metric and up to three variables that are not finite.
  """
  metrics = [
    f"{name} became {value}" for name, value in epoch.metrics.items() if not math.isfinite(value)
  ]
  if metrics or not epoch.finite_weights:
    names = [name for name, variable in algorithm.variables().items() if not _is_finite(variable)]
    more = f" and {len(names) - 3} others" if len(names) > 3 else ""
    variables = (
      f"Non-finite variables: {', '.join(names[:3])}{more}."
      if names
      else "All variables are finite."
    )
    raise errors.TrainingDiverged(
      f"{metrics[0] if metrics else 'A weight became NaN or infinite'} "
      f"in the update after step {step:,}; its first {epoch.finite_steps} "
      f"of {epoch.gradient_steps} minibatches had finite gradients. "
      f"{variables} If this happens again, start a new run with, for "
      "example, a smaller algorithm.learning_rate."
    )


def _is_finite(variable: Any) -> bool:
  return bool(np.isfinite(np.asarray(variable)).all())
