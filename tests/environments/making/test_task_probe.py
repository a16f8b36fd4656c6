"""A short visit shows time limit, kind of actions and constant rewards."""

import gymnasium
import numpy as np
import pytest

from agents import config as config_lib
from agents.environments.making import task_probe


class Task(gymnasium.Env):
  """Rewards by `reward`; the others select the kind of task."""

  def __init__(self, reward="goal", terminates=False, low=-1.0, starts=True):
    self.observation_space = gymnasium.spaces.Box(-9, 9, (1,), np.float32)
    self.action_space = gymnasium.spaces.Box(low, 3.0, (1,), np.float32)
    self._reward, self._terminates, self._starts = reward, terminates, starts

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    self._position = float(self.np_random.uniform()) if self._starts else 0.0
    self._steps = 0
    return self._observ(), {}

  def step(self, action):
    self._steps += 1
    before, self._position = self._position, 0.9 * self._position + float(action[0])
    if self._reward == "failure" and self._steps == 3:
      raise RuntimeError("The motor is hot.")
    if self._reward == "exit" and self._steps == 3:
      raise SystemExit
    reward = {
      "cost": -float(np.abs(action).sum()),
      "progress": self._position - before,
      "time": float(self._steps),
    }.get(self._reward, 0.0)
    return self._observ(), reward, self._terminates and self._steps == 20, False, {}

  def _observ(self):
    return np.array([self._position], np.float32)


def _probe(env_id, **changes):
  return task_probe.probe(config_lib.Env(id=env_id, **changes))


def _has_constant_rewards(**kwargs):
  return _probe(f"{__name__}:Task", kwargs=kwargs).has_constant_rewards


def test_time_limit_and_kind_of_actions_are_those_of_the_environment():
  assert _probe("CartPole-v1")[:3] == (500, True, False)
  assert _probe("Pendulum-v1")[:3] == (200, False, False)
  assert _probe("Pendulum-v1", max_length=70, action_repeat=2).max_length == 70
  assert _probe("Pendulum-v1", action_repeat=3).max_length == 67
  assert _probe(f"{__name__}:Task").max_length is None


@pytest.mark.parametrize(
  "wrappers, expected",
  [
    ((), (False, True)),
    (({"AddRenderObservation": {}},), (True, False)),
    (({"AddRenderObservation": {"render_only": False}},), (True, True)),
  ],
)
def test_parts_of_observations_are_images_or_vectors(wrappers, expected):
  task = _probe("CartPole-v1", kwargs={"render_mode": "rgb_array"}, wrappers=wrappers)
  assert (task.has_images, task.has_vectors) == expected


@pytest.mark.parametrize("space", ["multi_discrete", "multi_binary", "tuple"])
def test_several_choices_are_discrete(space):
  assert _probe("tests.echo:Echo", kwargs={"space": space}).is_discrete


@pytest.mark.parametrize("space", ["box", "dict", "nested"])
def test_actions_with_numbers_are_not_discrete(space):
  assert not _probe("tests.echo:Echo", kwargs={"space": space}).is_discrete


def test_rewards_without_the_goal_are_constant():
  assert _has_constant_rewards()
  assert _has_constant_rewards(low=-np.inf)
  assert _probe(f"{__name__}:Task", max_length=50).has_constant_rewards
  assert _probe("MountainCarContinuous-v0").has_constant_rewards


@pytest.mark.parametrize("reward", ["cost", "time"])
def test_rewards_that_do_not_depend_on_the_state_are_constant(reward):
  assert _has_constant_rewards(reward=reward)


def test_rewards_that_depend_on_the_state_are_not_constant():
  assert not _has_constant_rewards(reward="progress")
  assert not _probe("Pendulum-v1").has_constant_rewards


def test_equal_starts_do_not_show_whether_rewards_depend_on_the_state():
  assert not _has_constant_rewards(starts=False)


@pytest.mark.parametrize(
  "changes", [{"backend": "vector"}, {"kwargs": {"render_mode": "rgb_array"}}]
)
def test_no_steps_are_played_where_workers_must_render_or_a_backend_steps(changes, monkeypatch):
  monkeypatch.setattr(task_probe, "_has_constant_rewards", lambda env: True)
  assert _probe("MountainCarContinuous-v0").has_constant_rewards
  assert not _probe("MountainCarContinuous-v0", **changes).has_constant_rewards


def test_no_steps_are_played_with_observations_of_pixels():
  with gymnasium.make("MountainCarContinuous-v0") as env:
    assert task_probe._can_visit(config_lib.Env(id="x"), env)
    assert not task_probe._can_visit(config_lib.Env(id="x", wrappers=({"Pixels": {}},)), env)


def test_terminations_tell_something_about_the_task():
  assert not _has_constant_rewards(terminates=True)
  assert not _probe("InvertedPendulum-v5").has_constant_rewards


@pytest.mark.parametrize("reward", ["failure", "exit"])
def test_failures_are_left_to_training(reward):
  assert not _has_constant_rewards(reward=reward)


def test_unknown_environment_is_a_config_error():
  with pytest.raises(config_lib.ConfigError, match="Nothing-v0"):
    _probe("Nothing-v0")
