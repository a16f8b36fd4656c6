import gymnasium
import numpy as np
import pytest

from agents import config as config_lib
from agents.environments import batch_env
from agents.environments.making import make
from benchmarks.common import measuring_process
from benchmarks.peers import action_replay

CONFIG = config_lib.Config().override(
  {"env.id": "CartPole-v1", "num_envs": 5, "seed": 3, "algorithm.minibatch_size": 32}
)


@pytest.fixture
def actions():
  """Random actions of CartPole; most episodes end during these actions."""
  return np.random.default_rng(0).integers(0, 2, (60, 5))


@pytest.mark.parametrize("first, stop", [(0, 5), (2, 4)])
def test_plain_loop_equals_batch_env(actions, first, stop):
  with batch_env.BatchEnv([make.MakeEnv(CONFIG.env)] * 5, seed=3) as batch:
    batch.reset()
    ended = 0
    for action in actions:
      step = batch.step(action)
      ended += np.sum(step.terminated | step.truncated)
    assert ended > 5
    expected = [np.array(state) for state in batch.get("state")]
  loop = action_replay.PlainLoop(CONFIG, actions, first, stop)
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
  rate = action_replay.replay_in_vector_env(env, action, run_seed=0)
  env.close()
  assert rate > 0
  np.testing.assert_array_equal(received, [[[1.0], [-2.0]]])


def test_child_process_replays_on_every_request(actions, tmp_path):
  np.save(tmp_path / "actions.npy", actions)
  process = measuring_process.MeasuringProcess(
    "-m", "benchmarks.peers.libraries", "1-4", str(tmp_path / "actions.npy"), "cartpole"
  )
  for _ in range(2):
    process.request()
    assert process.receive() > 0
  process.close()
