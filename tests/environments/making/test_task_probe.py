"""A short visit shows time limit, kind of actions and constant rewards."""

import gymnasium
import numpy as np
import pytest

from agents import config as config_lib
from agents.environments.making import task_probe


class Task(gymnasium.Env):
  """Rewards by position; `reward` and `terminates` select the kind of task."""

  observation_space = gymnasium.spaces.Box(-9, 9, (1,), np.float32)

  def __init__(self, reward="goal", terminates=False, low=-1.0):
    self.action_space = gymnasium.spaces.Box(low, 3.0, (1,), np.float32)
    self._reward, self._terminates = reward, terminates

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    self._start = float(self.np_random.uniform())
    self._steps = 0
    return np.zeros(1, np.float32), {}

  def step(self, action):
    self._steps += 1
    reward = {
      "goal": 0.0,
      "cost": -float(np.abs(action - self.action_space.low / 2 - 1.5).sum()),
      "start": self._start,
      "time": float(self._steps),
      "failure": 0.0,
    }[self._reward]
    if self._reward == "failure" and self._steps == 3:
      raise RuntimeError("The motor is hot.")
    return np.zeros(1, np.float32), reward, self._terminates and self._steps == 20, False, {}


def _probe(env_id, **changes):
  return task_probe.probe(config_lib.Env(id=env_id, **changes))


def _has_constant_rewards(**kwargs):
  return _probe(f"{__name__}:Task", kwargs=kwargs).has_constant_rewards


def test_time_limit_and_kind_of_actions_are_those_of_the_environment():
  assert _probe("CartPole-v1") == (500, True, False)
  assert _probe("Pendulum-v1") == (200, False, False)
  assert _probe("Pendulum-v1", max_length=70, action_repeat=2).max_length == 70
  assert _probe("Pendulum-v1", action_repeat=3).max_length == 67
  assert _probe(f"{__name__}:Task").max_length is None


@pytest.mark.parametrize("space", ["multi_discrete", "multi_binary"])
def test_several_choices_are_discrete(space):
  assert _probe("tests.echo:Echo", kwargs={"space": space}).is_discrete


@pytest.mark.parametrize("space", ["box", "dict", "tuple", "nested"])
def test_numbers_and_composite_actions_are_not_discrete(space):
  assert not _probe("tests.echo:Echo", kwargs={"space": space}).is_discrete


def test_rewards_of_doing_nothing_are_constant_before_a_goal():
  assert _has_constant_rewards()
  assert _probe("MountainCarContinuous-v0").has_constant_rewards


def test_doing_nothing_is_the_middle_of_bounded_actions():
  assert _has_constant_rewards(reward="cost")
  assert _has_constant_rewards(reward="cost", low=1.0)


def test_rewards_that_depend_on_start_or_time_are_not_constant():
  assert not _has_constant_rewards(reward="start")
  assert not _has_constant_rewards(reward="time")


def test_terminations_tell_something_about_the_task():
  assert not _has_constant_rewards(terminates=True)
  assert not _probe("InvertedPendulum-v5").has_constant_rewards


def test_failures_are_left_to_training():
  assert not _has_constant_rewards(reward="failure")


def test_unknown_environment_is_a_config_error():
  with pytest.raises(config_lib.ConfigError, match="Nothing-v0"):
    _probe("Nothing-v0")
