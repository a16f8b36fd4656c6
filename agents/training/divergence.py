"""Numbers that must be finite and are not."""

from __future__ import annotations

import math

import numpy as np

from agents import errors
from agents.training import epoch as epoch_lib
from agents.training import trainer


class TrainingDiverged(errors.RunError):
  """An update led to what is not a finite number."""

  exit_code = 3


def check(epoch: epoch_lib.Epoch, step: int, algorithm: trainer.Algorithm):
  """Look at all that an epoch reports.

  Args:
    epoch: What was done last.
    step: Training steps before it.
    algorithm: Has learned; its variables are looked at after a failure.
  Raises:
    TrainingDiverged: If something is not finite; says what and where.
  """
  for name, value in epoch.metrics.items():
    if not math.isfinite(value):
      raise TrainingDiverged(
          f"{name} became {value} in the update after step {step:,}, whose "
          f"first {epoch.finite_steps} of {epoch.gradient_steps} minibatches "
          f"had finite gradients. {_broken(algorithm)} If this comes again, "
          "begin anew with a smaller algorithm.learning_rate, for example.")


def _broken(algorithm: trainer.Algorithm) -> str:
  names = [name for name, variable in algorithm.variables().items()
           if not np.isfinite(np.asarray(variable, np.float64)).all()]
  if not names:
    return "All variables are finite."
  more = f" and {len(names) - 3} others" if len(names) > 3 else ""
  return f"Not finite are {', '.join(names[:3])}{more}."
