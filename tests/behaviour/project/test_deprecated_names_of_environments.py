"""Custom backends that import former module names still work."""

import numpy as np
import pytest

from agents import config as config_lib
from agents.environments import batch_env
from agents.environments.blocks import custom_backend
from agents.environments.making import make

# The example of a custom backend from the documentation of the last release.
_POINTS = '''
"""A point that is to go to the middle: one alone, and many at once."""

import gymnasium
import numpy as np

from agents.environments import backend
from agents.environments import block

LENGTH = 20  # Steps of an episode.


def begin(random: np.random.Generator, amount: int) -> np.ndarray:
  """Return positions of shape [N, 2]."""
  return random.uniform(-1, 1, (amount, 2)).astype(np.float32)


def move(position: np.ndarray, action: np.ndarray):
  """Return positions of shape [N, 2] and rewards of shape [N]."""
  position = np.clip(position + 0.2 * action, -2, 2)
  return position, -np.linalg.norm(position, axis=1)


class Point(gymnasium.Env):
  """One of them, for evaluation."""

  observation_space = gymnasium.spaces.Box(-2, 2, (2,))
  action_space = gymnasium.spaces.Box(-1, 1, (2,))

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    self._position, self._steps = begin(self.np_random, 1), 0
    return self._position[0], {}

  def step(self, action):
    self._position, reward = move(self._position, action[None])
    self._steps += 1
    return (self._position[0], float(reward[0]), False,
            self._steps == LENGTH, {})


class Points(backend.Backend):
  """N of them, for training."""

  def reset(self, seeds):
    self._random = np.random.default_rng([int(seed) for seed in seeds])
    self._steps = np.zeros(len(seeds), int)
    self.arrays["observ"][:] = begin(self._random, len(seeds))
    return [{} for _ in seeds]

  def step_wait(self):
    arrays, active = self.arrays, self.arrays["active"]
    position, reward = move(arrays["observ"], self.to_env(arrays["action"]))
    arrays["observ"][active] = position[active]
    arrays["reward"][:] = np.where(active, reward, 0)
    arrays["valid"][:] = active
    self._steps += active
    ended = arrays["truncated"][:] = self._steps == LENGTH
    arrays["final_observ"][ended] = arrays["observ"][ended]
    arrays["observ"][ended] = begin(self._random, ended.sum())
    self._steps[ended] = 0
    return {self.first + int(index): block.Report({"reward_parts": {}})
            for index in np.flatnonzero(ended)}
'''


@pytest.fixture
def points(tmp_path, monkeypatch):
  """Returns the backend class `Points` of the example."""
  (tmp_path / "former_points.py").write_text(_POINTS)
  monkeypatch.syspath_prepend(tmp_path)
  return custom_backend.find("former_points:Points")


def test_backend_with_former_module_names_steps_a_batch(points):
  constructor = make.MakeEnv(config_lib.Env("former_points:Point"))
  with batch_env.BatchEnv([constructor] * 3, seed=1, block_class=points) as batch:
    batch.reset()
    for num_steps in range(1, 41):
      step = batch.step(np.ones((3, 2), np.float32))
      assert step.truncated.tolist() == [num_steps % 20 == 0] * 3
    assert [episode.length for episode in batch.take_finished()] == [20] * 6


def test_former_attribute_repeats_sets_deterministic(points):
  class Deterministic(points):
    repeats = True

  assert Deterministic.deterministic and not points.deterministic
