from __future__ import annotations

import gymnasium
import numpy as np
import pytest

from agents import config as config_lib
from agents.environments import batch_env
from agents.environments.making import make
from benchmarks.peers import action_replay

ENV = config_lib.Env(id="CartPole-v1")


@pytest.fixture
def stretch():
  """Episodes of CartPole, most of which end within the stretch."""
  action = np.random.default_rng(0).integers(0, 2, (60, 5))
  return action_replay.Stretch(ENV, 3, action)


@pytest.mark.parametrize("first, last", [(0, 5), (2, 4)])
def test_plain_loop_steps_what_the_batch_steps(stretch, first, last):
  with batch_env.BatchEnv([make.MakeEnv(ENV)] * 5, seed=3) as batch:
    batch.reset()
    for action in stretch.action:
      batch.step(action)
    assert len(batch.finished) > 5
    expected = [np.array(state) for state in batch.get("state")]
  loop = action_replay.Loop(stretch, first, last)
  for _ in range(2):  # It begins anew every time.
    assert loop.play() > 0
    states = [np.array(env.unwrapped.state) for env in loop._envs]
    np.testing.assert_array_equal(states, expected[first:last])


def test_vector_env_gets_the_environments_actions():
  seen = []
  class Space(gymnasium.vector.SyncVectorEnv):
    def step(self, actions):
      seen.append(np.array(actions))
      return super().step(actions)
  env = Space([lambda: gymnasium.make("Pendulum-v1")] * 2)
  action = np.array([[[0.5], [-3.0]]], np.float32)
  rate = action_replay.play_vector_env(env, action_replay.Stretch(
      config_lib.Env(id="Pendulum-v1"), 0, action))
  env.close()
  assert rate > 0
  np.testing.assert_array_equal(seen, [[[1.0], [-2.0]]])


def test_file_holds_the_same(stretch, tmp_path):
  action_replay.save(stretch, str(tmp_path / "stretch"))
  loaded = action_replay.load(str(tmp_path / "stretch"))
  assert loaded.config == ENV and loaded.run_seed == 3
  np.testing.assert_array_equal(loaded.action, stretch.action)


def test_child_measures_each_time_it_is_asked(stretch, tmp_path):
  path = str(tmp_path / "stretch")
  action_replay.save(stretch, path)
  child = action_replay.Child("benchmarks.peers.action_replay", path, "0", "5")
  for _ in range(2):
    child.ask()
    assert child.answer() > 0
  child.close()


def test_child_that_fails_is_an_error(tmp_path):
  child = action_replay.Child(
      "benchmarks.peers.action_replay", str(tmp_path / "missing"), "0", "5")
  child.ask()
  with pytest.raises(RuntimeError, match="missing.* failed"):
    child.answer()
  child.close()
