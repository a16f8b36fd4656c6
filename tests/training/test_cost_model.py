"""Predicted times agree with measured times (docs/performance.md)."""

import gymnasium
import pytest

from agents import configs
from agents.environments.making import make
from agents.training import cost_model


@pytest.mark.parametrize("name, raw, training", [
    ("cheetah", 69_958, 26_848), ("walker", 19_553, 10_708),
    ("hopper", 25_095, 13_071), ("ant", 10_617, 7_088),
    ("humanoid", 7_368, 4_915)])
def test_predicted_speed_is_near_the_measured_speed(name, raw, training):
  # Measured with these settings.
  config = configs.load(name)[1].override({
      "num_envs": 64, "algorithm.segment_length": 32,
      "algorithm.minibatch_size": 64, "algorithm.update_epochs": 10})
  env = make.MakeEnv(config.env)()
  env.close()
  seconds = cost_model.training_seconds(
      config, env.observation_space, 2048, 1_000_000, raw / 2, 2, 0)
  assert 1e6 / seconds == pytest.approx(training, rel=0.2)


def test_predicted_time_includes_evaluations():
  _, config = configs.load("cheetah")
  space = gymnasium.spaces.Box(-1, 1, (17,))
  without, with_them = (cost_model.training_seconds(
      config, space, 2048, 1_000_000, 35_000, 2, length)
                        for length in (0, 1000))
  # Training evaluates twenty times, with 1,000 batched steps each.
  assert 10 < with_them - without < 25
