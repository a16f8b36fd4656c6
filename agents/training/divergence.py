"""Numbers that must be finite and are not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from agents import errors
from agents.training import epoch_result
from agents.training import trainer


def check(epoch: epoch_result.Epoch, step: int, algorithm: trainer.Algorithm):
  """Look at all that an epoch reports, and at what it has led to.

  Args:
    epoch: What was done last.
    step: Training steps before it.
    algorithm: That has learned in it.
  Raises:
    TrainingDiverged: If something is not finite; says what and where.
  """
  metrics = [f"{name} became {value}" for name, value in epoch.metrics.items()
             if not math.isfinite(value)]
  if metrics or not all(map(_finite, algorithm.weights)):
    raise errors.TrainingDiverged(
        f"{metrics[0] if metrics else 'A weight became NaN or infinite'} "
        f"in the update after step {step:,}, whose first {epoch.finite_steps} "
        f"of {epoch.gradient_steps} minibatches had finite gradients. "
        f"{_broken(algorithm)} If this comes again, begin anew with a smaller "
        "algorithm.learning_rate, for example.")


def _broken(algorithm: trainer.Algorithm) -> str:
  names = [name for name, variable in algorithm.variables().items()
           if not _finite(variable)]
  if not names:
    return "All variables are finite."
  more = f" and {len(names) - 3} others" if len(names) > 3 else ""
  return f"Not finite are {', '.join(names[:3])}{more}."


def _finite(variable: Any) -> bool:
  return bool(np.isfinite(np.asarray(variable)).all())
