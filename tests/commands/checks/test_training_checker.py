"""The check finds variables that are not restored, or that diverge."""

import numpy as np
import pytest

from agents import build
from agents import config as config_lib
from agents.commands.checks import training_checker


class _Trainer:
  """Adds one to its variables in every epoch."""

  def __init__(self, not_restored: str = "", diverges: bool = False):
    self._not_restored = not_restored
    self._variables = {"a": np.zeros(2), "b": np.zeros(2)}
    if diverges:
      self._variables["b"] += np.inf

  def start(self):
    pass

  def epoch(self, progress):
    self._variables = {name: value + 1 for name, value in self._variables.items()}

  def state(self):
    return dict(self._variables)

  def load(self, arrays):
    for name in self._variables.keys() - {self._not_restored}:
      self._variables[name] = arrays[name]

  def close(self):
    pass


@pytest.mark.parametrize(
  "trainer, problem",
  [
    (_Trainer(), ""),
    (_Trainer(not_restored="b"), "repeat the values of b."),
    (_Trainer(diverges=True), "is not finite."),
  ],
  ids=["sound", "not restored", "diverging"],
)
def test_problems_of_a_trainer_are_found(trainer, problem, monkeypatch):
  monkeypatch.setattr(build, "trainer", lambda config, workers: trainer)
  config = config_lib.Config().override({"env.id": "CartPole-v1"})
  text = training_checker.find_problem(config)
  assert text.endswith(problem) and bool(text) == bool(problem)


def test_tasks_that_only_envpool_has_need_not_repeat_an_epoch(monkeypatch):
  trainers = []

  def build_trainer(config, workers):
    assert config.env.backend == "envpool"
    trainers.append(_Trainer(not_restored="b"))
    return trainers[0]

  monkeypatch.setattr(build, "trainer", build_trainer)
  config = config_lib.Config().override({"env.id": "Catch-v0", "env.backend": "envpool"})
  assert training_checker.find_problem(config) == "" and trainers
