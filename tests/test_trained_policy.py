"""A policy that Python loads takes the actions of evaluations."""

import contextlib
import subprocess
import sys

import numpy as np
import pytest

from agents import build, trained_policy
from agents import config as config_lib
from agents.environments.data import episode_data
from agents.environments.making import action_scaling
from agents.export import formats
from agents.export import policy as policy_lib
from agents.ops import random
from agents.simulation import evaluator, in_graph_batch_env
from agents.training.run_folder import checkpoint
from agents.translation import numpy_player
from tests.export import untrained_runs
from tests.support import command


def _evaluate(folder, num_episodes):
  """Returns episodes of an evaluation with one environment per episode."""
  policy = policy_lib.load(folder, checkpoint.newest(folder.checkpoints), sampled=False)
  env = in_graph_batch_env.InGraphBatchEnv(
    build.eval_env(folder.config.override({"eval_episodes": num_episodes}), None)
  )
  player = evaluator.Evaluator(env, policy.algorithm, explore=False)
  with contextlib.closing(player):
    return player.play(num_episodes)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["box", "gru", "nested", "lstm", "pictures"])
def test_actions_equal_those_of_an_evaluation_bit_for_bit(kind, tmp_path):
  folder = untrained_runs.make_run(tmp_path, kind)
  policy = trained_policy.load(folder.path)
  env = policy.make_env()
  (episode,) = _evaluate(folder, 1)
  observation, _ = env.reset(seed=episode.seed)
  state, total = policy.begin(), 0.0
  for expected in action_scaling.action_converter(env.action_space)(episode.action):
    action, state = policy(observation, state)
    np.testing.assert_equal(action, expected)
    observation, reward, terminated, truncated, _ = env.step(action)
    total += float(reward)
  assert terminated or truncated
  assert total == pytest.approx(episode.score, 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["box", "lstm"])
def test_batch_equals_an_evaluation_with_ten_environments(kind, tmp_path):
  folder = untrained_runs.make_run(tmp_path, kind)
  policy = trained_policy.load(folder.path)
  episodes = sorted(_evaluate(folder, 10), key=lambda episode: _seeds(folder).index(episode.seed))
  envs = [policy.make_env() for _ in episodes]
  observations = [
    env.reset(seed=episode.seed)[0] for env, episode in zip(envs, episodes, strict=True)
  ]
  convert = action_scaling.action_converter(envs[0].action_space)
  state, single_state = policy.begin(10), policy.begin()
  for expected in zip(*(convert(episode.action) for episode in episodes)):
    outputs = policy.run({"observation": np.stack(observations), **state})
    state = {name: outputs[f"next_{name}"] for name in state}
    np.testing.assert_array_equal(outputs["action"], expected)
    # The size of a batch changes the last bits of matrix products.
    single, single_state = policy(observations[0], single_state)
    np.testing.assert_allclose(single, expected[0], atol=1e-5)
    observations = [env.step(action)[0] for env, action in zip(envs, expected, strict=True)]


def _seeds(folder):
  """Returns the seeds of the first episodes of an evaluation, in order."""
  stream = random.stream(folder.config.seed, "eval")
  return [episode_data.episode_seed(stream, index, 0) for index in range(10)]


@pytest.mark.slow
def test_interface_equals_that_of_the_exported_player(tmp_path):
  folder = untrained_runs.make_run(tmp_path, "gru")
  policy = trained_policy.load(folder.path)
  formats.load("npz").write(
    policy_lib.load(folder, checkpoint.newest(folder.checkpoints), False), tmp_path / "policy.npz"
  )
  player = numpy_player.Policy(tmp_path / "policy.npz")
  observation, _ = policy.make_env().reset(seed=0)
  state, player_state = policy.begin(), player.begin()
  for _ in range(3):
    action, state = policy(observation, state)
    player_action, player_state = player(observation, player_state)
    assert action == player_action and isinstance(action, int)
    assert state.keys() == player_state.keys() == {"memory"}
    np.testing.assert_allclose(state["memory"], player_state["memory"], atol=1e-6)
  inputs = {"observation": np.stack([observation] * 3), **policy.begin(3)}
  outputs, expected = policy.run(inputs), player.run(inputs)
  assert outputs.keys() == expected.keys()
  for name in outputs:
    np.testing.assert_allclose(outputs[name], expected[name], atol=1e-6)


def test_checkpoint_is_selected_by_step_or_name(tmp_path):
  folder = untrained_runs.make_run(tmp_path, "box")
  arrays, _ = checkpoint.load(checkpoint.newest(folder.checkpoints))
  checkpoint.save(folder.checkpoints, 300, arrays, {})
  checkpoint.save_best(folder.checkpoints, 200, arrays)
  assert trained_policy.load(tmp_path).step == 300
  assert trained_policy.load(tmp_path, 0).step == 0
  assert trained_policy.load(str(tmp_path), "best").step == 200
  with pytest.raises(config_lib.ConfigError, match="Available steps: 0, 300"):
    trained_policy.load(tmp_path, 100)


@pytest.mark.slow
def test_import_prints_no_messages_of_tensorflow():
  done = subprocess.run(
    [sys.executable, "-c", "from agents import trained_policy"],
    cwd=command.ROOT,
    capture_output=True,
    text=True,
    check=True,
  )
  assert not done.stdout + done.stderr
