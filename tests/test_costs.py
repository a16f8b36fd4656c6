"""Predictions are compared with what was measured (docs/performance.md)."""

import pytest

from agents import configs
from agents import costs
from agents.environments import make


@pytest.mark.parametrize("name, raw, training", [
    ("cheetah", 69_958, 26_848), ("walker", 19_553, 10_708),
    ("hopper", 25_095, 13_071), ("ant", 10_617, 7_088),
    ("humanoid", 7_368, 4_915)])
def test_training_takes_about_what_it_took(name, raw, training):
  _, config = configs.load(name)
  env = make.MakeEnv(config.env)()
  inputs = costs.inputs(env.observation_space)
  env.close()
  def seconds(steps):
    return costs.training_seconds(config, inputs, 2048, steps, raw / 2, 2, 0)
  # The difference has no compilation in it.
  predicted = 1e6 / (seconds(2_000_000) - seconds(1_000_000))
  assert predicted == pytest.approx(training, rel=0.2)


def test_evaluations_count():
  _, config = configs.load("cheetah")
  without, with_them = (costs.training_seconds(
      config, 17, 2048, 1_000_000, 35_000, 2, length) for length in (0, 1000))
  # Twenty of them, of a thousand batched steps each.
  assert 10 < with_them - without < 25


def test_nothing_left_is_compiling_only():
  _, config = configs.load("cheetah")
  assert costs.training_seconds(config, 17, 2048, 0, 35_000, 2, 1000) < 10
