"""Estimates the remaining duration of a run from measured durations.

    seconds = steps * seconds per step + evaluations * seconds per evaluation

The first epoch and the first evaluation of a process also compile a graph. The
measured durations exclude this compilation.
"""

import statistics
import time

from agents import config as config_lib
from agents.environments.making import make
from agents.training import epoch_result
from agents.training import schedule as schedule_lib

# Compilation of an evaluation, relative to the compilation of an epoch.
_EVALUATION_COMPILATION = 0.05
# Seconds of a batched step, without the time that each environment adds.
_SECONDS_PER_BATCHED_STEP = 800e-6
_MAX_LENGTH = 1000  # Assumed length of episodes with a larger time limit.
_NUM_RECENT = 5  # Number of evaluations in the mean; episodes may get longer.


class RemainingTime:
  """Measures the epochs and evaluations of this process.

  Args:
    config: Configuration of the run.
    schedule: Schedule of the evaluations.

  The attribute `epochs` is the number of epochs so far.
  """

  def __init__(self, config: config_lib.Config, schedule: schedule_lib.Schedule) -> None:
    self.epochs = 0
    self._config = config
    self._schedule = schedule
    self._evaluations: list[float] = []  # Seconds.
    # Steps, and seconds of collecting them, in all epochs except the first.
    self._steps, self._collecting = 0, 0.0

  def add_epoch(self, epoch: epoch_result.Epoch, seconds: float) -> None:
    """Adds an epoch that has just ended.

    Args:
      epoch: Result of the epoch.
      seconds: Duration of the epoch.
    """
    self.epochs += 1
    if self.epochs == 1:
      self._start = time.monotonic() - sum(self._evaluations)
      self._compilation = seconds
      return
    if self.epochs == 2:
      self._compilation = max(0.0, self._compilation - seconds)
    self._steps += epoch.steps
    self._collecting += sum(epoch.seconds[part] for part in ("stepping", "crossing", "inference"))

  def add_evaluation(self, seconds: float) -> None:
    """Adds an evaluation that has just ended.

    Args:
      seconds: Duration of the evaluation.
    """
    self._evaluations.append(seconds)

  def seconds(self, step: int) -> float | None:
    """Returns the remaining seconds of the run; None before the second epoch.

    Args:
      step: Environment steps so far.
    """
    if not self._steps:
      return None
    training = time.monotonic() - self._start - sum(self._evaluations)
    steps = max(0, self._schedule.budget - step)
    num_evaluations = self._schedule.num_remaining(
      "eval_every", step, self._steps / (self.epochs - 1)
    )
    return steps * training / self._steps + self._evaluation_seconds(num_evaluations)

  def _evaluation_seconds(self, number: int) -> float:
    """Returns the expected seconds of a number of further evaluations."""
    compilation = _EVALUATION_COMPILATION * self._compilation
    if self._evaluations:
      first, *others = self._evaluations
      return number * statistics.mean(
        others[-_NUM_RECENT:] or [max(first / 2, first - compilation)]
      )
    # Before the first evaluation, steps of training provide an estimate.
    step_seconds = self._collecting / self._steps
    batched = min(_SECONDS_PER_BATCHED_STEP, step_seconds * self._config.num_envs)
    length = min(make.stated_length(self._config.env) or _MAX_LENGTH, _MAX_LENGTH)
    return number and compilation + number * length * (
      batched + self._config.eval_episodes * (step_seconds - batched / self._config.num_envs)
    )
