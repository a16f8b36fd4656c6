"""Remaining times agree with a simulated run of known durations."""

import types

import pytest

from agents import config as config_lib
from agents.training import remaining_time
from agents.training import schedule as schedule_lib

_STEPS, _EVERY, _EPOCH = 100_000, 5_000, 2_000
_EPOCH_SECONDS, _COMPILATION = 0.2, 6.0


class Run:
  """Run with a clock; `left` are the remaining times by step."""

  def __init__(self, monkeypatch, evaluation_seconds):
    self.now = 50.0
    monkeypatch.setattr(remaining_time.time, "monotonic", lambda: self.now)
    config = config_lib.Config().override(
      {"env.id": "HalfCheetah-v5", "steps": _STEPS, "num_envs": 10, "eval_episodes": 10}
    )
    self._schedule = schedule_lib.Schedule(_STEPS, {"eval_every": _EVERY}, {"eval_every": 0})
    self._remaining_time = remaining_time.RemainingTime(config, self._schedule)
    self._evaluation_seconds = evaluation_seconds
    self._num_evaluations = 0
    self._left = {}
    for step in range(_EPOCH, _STEPS + 1, _EPOCH):
      self._train(step)
      if self._schedule.is_due("eval_every", step):
        self._evaluate(step)
    self.end = self.now

  def errors(self):
    """Returns the errors of the remaining times in seconds, by step."""
    return {step: now + left - self.end for step, (now, left) in self._left.items()}

  def _train(self, step):
    seconds = _EPOCH_SECONDS + (step == _EPOCH) * _COMPILATION
    self.now += seconds
    # Half of the time of an epoch is collecting.
    self._remaining_time.add_epoch(
      types.SimpleNamespace(
        steps=_EPOCH,
        seconds={
          "stepping": _EPOCH_SECONDS / 2,
          "crossing": 0.0,
          "inference": 0.0,
          "learning": _EPOCH_SECONDS / 2,
        },
      ),
      seconds,
    )
    left = self._remaining_time.seconds(step)
    assert (left is None) == (step == _EPOCH)
    if left is not None:
      self._left[step] = self.now, left

  def _evaluate(self, step):
    self._num_evaluations += 1
    seconds = self._evaluation_seconds + (self._num_evaluations == 1) * (
      remaining_time._EVALUATION_COMPILATION * _COMPILATION
    )
    self.now += seconds
    self._schedule.last["eval_every"] = step
    self._remaining_time.add_evaluation(seconds)
    self._left[step] = self.now, self._remaining_time.seconds(step)


@pytest.mark.parametrize("evaluation_seconds", [0.1, 5.0])
def test_remaining_time_is_exact_after_two_evaluations(evaluation_seconds, monkeypatch):
  errors = Run(monkeypatch, evaluation_seconds).errors()
  assert all(
    error == pytest.approx(0, abs=1e-6) for step, error in errors.items() if step >= 2 * _EVERY
  )


def test_first_remaining_time_includes_evaluations_and_their_compilation(monkeypatch):
  # The ten environments of an evaluation step as fast as those of training:
  # ten episodes of 1,000 steps take half of the time of five epochs.
  run = Run(monkeypatch, 5 * _EPOCH_SECONDS / 2)
  assert run.errors()[2 * _EPOCH] == pytest.approx(0, abs=1e-6)
