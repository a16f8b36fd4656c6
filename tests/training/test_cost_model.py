"""Predicted times agree with those in docs/experiments/performance.md."""

import types

import gymnasium
import pytest

from agents import configs
from agents.environments.making import make
from agents.training import cost_model


def _minutes(config, space, steps_per_second):
  """Returns the predicted minutes of 1M steps.

  `steps_per_second` is the speed of one worker that only steps.
  """
  env = types.SimpleNamespace(observation_space=space, parallel=2)
  epoch = types.SimpleNamespace(
      steps=2048, busy_seconds=2048 / steps_per_second / 2)
  trainer = types.SimpleNamespace(
      train_env=types.SimpleNamespace(batch_env=env),
      rollout_spec=types.SimpleNamespace(rows=2048))
  return cost_model.training_minutes(config, trainer, epoch, 1_000_000)


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
  monkeypatch.setattr(cost_model.pool, "num_cores", lambda: 2)


@pytest.mark.parametrize("name, stepping_speed, training_speed", [
    ("cheetah", 69_958, 26_848), ("walker", 19_553, 10_708),
    ("hopper", 25_095, 13_071), ("ant", 10_617, 7_088),
    ("humanoid", 7_368, 4_915)])
def test_predicted_speed_is_near_the_measured_speed(
    name, stepping_speed, training_speed):
  # The speeds were measured with these settings, without evaluations.
  config = configs.load(name)[1].override({
      "num_envs": 64, "algorithm.segment_length": 32,
      "algorithm.minibatch_size": 64, "algorithm.update_epochs": 10,
      "eval_every": 10 ** 12})
  env = make.MakeEnv(config.env)()
  env.close()
  minutes = _minutes(config, env.observation_space, stepping_speed / 2)
  assert 1e6 / (60 * minutes) == pytest.approx(training_speed, rel=0.2)


def test_predicted_time_includes_evaluations():
  _, config = configs.load("cheetah")
  space = gymnasium.spaces.Box(-1, 1, (17,))
  without_evaluations, with_evaluations = (
      _minutes(config.override({"steps": 1_000_000, "eval_every": every}),
               space, 35_000)
      for every in (10 ** 12, None))
  # Training evaluates twenty times, with 1,000 batched steps each.
  assert 10 < 60 * (with_evaluations - without_evaluations) < 25
