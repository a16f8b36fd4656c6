from __future__ import annotations

import gymnasium
import numpy as np
import pytest

from agents import config as config_lib
from agents.environments import batch_env
from agents.environments.making import make
from benchmarks.common import measuring_process
from benchmarks.peers import action_replay

ENV = config_lib.Env(id="CartPole-v1")


@pytest.fixture
def recorded():
  """Episodes of CartPole, most of which end within the recorded steps."""
  action = np.random.default_rng(0).integers(0, 2, (60, 5))
  return action_replay.RecordedActions(ENV, 3, action)


@pytest.mark.parametrize("first, stop", [(0, 5), (2, 4)])
def test_plain_loop_equals_batch_env(recorded, first, stop):
  with batch_env.BatchEnv([make.MakeEnv(ENV)] * 5, seed=3) as batch:
    batch.reset()
    ended = 0
    for action in recorded.action:
      step = batch.step(action)
      ended += np.sum(step.terminated | step.truncated)
    assert ended > 5
    expected = [np.array(state) for state in batch.get("state")]
  loop = action_replay.PlainLoop(recorded, first, stop)
  for _ in range(2):  # Every replay starts from the first resets.
    assert loop.replay() > 0
    states = [np.array(env.unwrapped.state) for env in loop._envs]
    np.testing.assert_array_equal(states, expected[first:stop])


def test_vector_env_receives_actions_in_units_of_the_environment():
  received = []
  class RecordingEnv(gymnasium.vector.SyncVectorEnv):
    def step(self, actions):
      received.append(np.array(actions))
      return super().step(actions)
  env = RecordingEnv([lambda: gymnasium.make("Pendulum-v1")] * 2)
  action = np.array([[[0.5], [-3.0]]], np.float32)
  rate = action_replay.replay_in_vector_env(env, action_replay.RecordedActions(
      config_lib.Env(id="Pendulum-v1"), 0, action))
  env.close()
  assert rate > 0
  np.testing.assert_array_equal(received, [[[1.0], [-2.0]]])


def test_file_round_trip_keeps_all_fields(recorded, tmp_path):
  action_replay.save(recorded, str(tmp_path / "actions"))
  loaded = action_replay.load(str(tmp_path / "actions"))
  assert loaded.config == ENV and loaded.run_seed == 3
  np.testing.assert_array_equal(loaded.action, recorded.action)


def test_child_process_replays_on_every_request(recorded, tmp_path):
  path = str(tmp_path / "actions")
  action_replay.save(recorded, path)
  process = measuring_process.MeasuringProcess(
      "-m", "benchmarks.peers.action_replay", path, "0", "5")
  for _ in range(2):
    process.request()
    assert process.receive() > 0
  process.close()
