"""Comparisons of SB3VecEnv with Stable-Baselines3's DummyVecEnv.

`test_sb3_vec_env` runs each comparison in a process without TensorFlow, for the
reason in `benchmarks.peers.sb3.library`.
"""

import contextlib
import functools

import gymnasium
import numpy as np
import pytest

from benchmarks.peers import sb3
from tests.environments.adapters import test_vector_env

sb3.library()

from stable_baselines3 import ppo  # noqa: E402
from stable_baselines3.common import evaluation, monitor  # noqa: E402
from stable_baselines3.common import vec_env as their_vec_env  # noqa: E402

from agents.environments.adapters import sb3_vec_env  # noqa: E402


def _random_infos(index):
  env = test_vector_env.RandomInfos(
    gymnasium.spaces.Box(-1, 1, (2,), np.float32), gymnasium.spaces.Box(-1, 1, (1,), np.float32)
  )
  return monitor.Monitor(gymnasium.wrappers.TimeLimit(env, 9 + index))


def _constructors():
  return [functools.partial(_random_infos, index) for index in range(5)]


def _assert_equal(ours, theirs):
  if isinstance(theirs, dict):
    assert ours.keys() == theirs.keys()
    for key in theirs.keys() - {"t"}:  # "t" is a time of the monitor.
      _assert_equal(ours[key], theirs[key])
  elif isinstance(theirs, (list, tuple)):
    assert len(ours) == len(theirs)
    for pair in zip(ours, theirs, strict=True):
      _assert_equal(*pair)
  else:
    np.testing.assert_array_equal(ours, theirs)


@contextlib.contextmanager
def _our_and_their_envs(workers):
  with (
    contextlib.closing(sb3_vec_env.SB3VecEnv(_constructors(), workers)) as ours,
    contextlib.closing(their_vec_env.DummyVecEnv(_constructors())) as theirs,
  ):
    yield ours, theirs


def returned_values_are_equal(workers):
  with _our_and_their_envs(workers) as (ours, theirs):
    _compare(ours, theirs)


def _compare(ours, theirs):
  assert ours.observation_space == theirs.observation_space
  assert ours.render_mode == theirs.render_mode
  rng = np.random.default_rng(0)
  for seed in 3, None:
    if seed is not None:
      assert ours.seed(seed) == theirs.seed(seed)
      for env in ours, theirs:
        env.set_options({"level": 2})
    _assert_equal(ours.reset(), theirs.reset())
    _assert_equal(ours.reset_infos, theirs.reset_infos)
    num_ended = 0
    for _ in range(40):
      action = rng.uniform(-1, 1, (5, 1)).astype(np.float32)
      our_step, their_step = ours.step(action), theirs.step(action)
      assert [np.asarray(x).dtype for x in our_step[:3]] == [
        np.asarray(x).dtype for x in their_step[:3]
      ]
      _assert_equal(our_step, their_step)
      _assert_equal(ours.reset_infos, theirs.reset_infos)
      num_ended += our_step[2].sum()
    assert num_ended > 10


def selected_environments_are_accessible(workers):
  with _our_and_their_envs(workers) as envs:
    for env in envs:
      _access(env)


def _access(env):
  env.reset()
  assert env.get_attr("value") == [3] * 5
  env.set_attr("value", 7, indices=[1, 4])
  assert env.get_attr("value", indices=[4, 0]) == [7, 3]
  assert env.get_attr("value", 1) == [7]
  assert len(env.env_method("get_episode_rewards", indices=[2])) == 1
  assert env.env_is_wrapped(monitor.Monitor) == [True] * 5
  assert env.env_is_wrapped(gymnasium.wrappers.ClipAction, [0]) == [False]
  assert env.has_attr("value") and not env.has_attr("nothing")
  assert len(env.get_images()) == 5


def different_options_are_refused(workers):
  with _our_and_their_envs(workers) as (ours, _):
    ours.set_options([{"level": index} for index in range(5)])
    with pytest.raises(ValueError, match="must have the same options"):
      ours.reset()


def sb3_ppo_learns(workers):
  env = sb3_vec_env.SB3VecEnv([lambda: monitor.Monitor(gymnasium.make("CartPole-v1"))] * 8, workers)
  normalized = their_vec_env.VecNormalize(env)
  model = ppo.PPO("MlpPolicy", normalized, n_steps=128, seed=0, device="cpu")
  model.learn(30_000)
  normalized.training = normalized.norm_reward = False
  score, _ = evaluation.evaluate_policy(model, normalized, 8)
  env.close()
  assert score > 200
