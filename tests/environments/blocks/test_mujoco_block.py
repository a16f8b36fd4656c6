"""MujocoBlock returns the same results as GymnasiumBlock."""

import gymnasium
import numpy as np
import pytest

from agents import config
from agents.environments import batch_env
from agents.environments.blocks import gymnasium_block, mujoco_block
from agents.environments.data import buffer_layout
from agents.environments.making import make
from tests.environments import mujoco_pairs


def _assert_equal_steps(pair, actions):
  for action in actions:
    vectorized, separate = (mujoco_pairs.step(*member, action) for member in pair)
    assert vectorized == separate


def _is_vectorized(constructors):
  """Returns whether a block vectorizes the steps of these environments."""
  env = constructors[0]()
  env.close()
  spaces, size = (env.observation_space, env.action_space), len(constructors)
  layout = buffer_layout.batch_layout(size, *spaces)
  arrays = layout.views(np.zeros(layout.num_bytes, np.uint8))
  block = mujoco_block.MujocoBlock(constructors, 0, spaces, arrays, 0)
  vectorized = block._task is not None
  block.close()
  return vectorized


@pytest.mark.parametrize("task", mujoco_pairs.TASKS)
def test_replay_rebuilds_running_episodes(task):
  pair = mujoco_pairs.pair(task)
  actions = mujoco_pairs.actions(pair[0][1], 60) * 0.1
  for block, _ in pair:
    block.replay([0] * mujoco_pairs.SIZE, mujoco_pairs.SEEDS, list(np.swapaxes(actions[:5], 0, 1)))
  _assert_equal_steps(pair, actions[5:])


@pytest.mark.parametrize(
  "access",
  [
    lambda block, selected: block.call("state_vector", (), {}, selected),
    lambda block, selected: block.get("frame_skip", selected),
    lambda block, selected: block.set("_forward_reward_weight", [1.0, 2.0, 3.0, 4.0], selected),
  ],
  ids=["call", "get", "set"],
)
def test_access_to_environments_ends_vectorized_steps_but_keeps_results(access):
  pair = mujoco_pairs.pair("Hopper")
  actions = mujoco_pairs.actions(pair[0][1], 60) * 0.1
  _assert_equal_steps(pair, actions[:5])
  assert pair[0][0]._task
  for block, _ in pair:
    access(block, [True] * mujoco_pairs.SIZE)
  assert not pair[0][0]._task
  _assert_equal_steps(pair, actions[5:])


@pytest.mark.parametrize("task", mujoco_pairs.TASKS)
def test_access_finds_the_data_of_separate_steps(task):
  pair = mujoco_pairs.pair(task)
  _assert_equal_steps(pair, mujoco_pairs.actions(pair[0][1], 8))
  fields = "time", "qpos", "qacc", "qacc_warmstart", "ctrl", "xpos", "cvel", "cfrc_ext", "cfrc_int"
  datas = []
  for block, _ in pair:
    block.get("frame_skip", [True] * mujoco_pairs.SIZE)
    datas.append([env.unwrapped.data for env in block._envs])
  for vectorized, separate in zip(*datas, strict=True):
    for field in fields:
      np.testing.assert_array_equal(getattr(vectorized, field), getattr(separate, field), field)


def test_environments_may_have_different_models():
  def heavy_world():
    env = mujoco_pairs.constructor("Hopper")()
    env.unwrapped.model.opt.gravity[2] *= 2
    return env

  constructors = [heavy_world, mujoco_pairs.constructor("Hopper")] * 2
  assert _is_vectorized(constructors)
  pair = [
    mujoco_pairs.block(block_class, constructors)
    for block_class in (mujoco_block.MujocoBlock, gymnasium_block.GymnasiumBlock)
  ]
  _assert_equal_steps(pair, mujoco_pairs.actions(pair[0][1], 60))
  observ = pair[0][1]["observ"]
  assert not np.allclose(observ[0], observ[1])


def test_failed_environment_is_replaced():
  pair = mujoco_pairs.pair("Ant", tolerant=True)
  actions = mujoco_pairs.actions(pair[0][1], 40)
  _assert_equal_steps(pair, actions[:6])
  for block, _ in pair:
    block._envs[2].unwrapped.model = None
    if isinstance(block, mujoco_block.MujocoBlock):
      block._task._simulations[2] = (None, *block._task._simulations[2][1:])
  vectorized, separate = (mujoco_pairs.step(*member, actions[6]) for member in pair)
  for reports, _ in (vectorized, separate):
    assert "Environment 2 ('Ant-v5', seed" in reports[2].outcome
  assert vectorized[1] == separate[1]
  _assert_equal_steps(pair, actions[7:])


@pytest.mark.parametrize(
  "options",
  [
    {"action_repeat": 2},
    {"random_start": 3},
    {"frame_delta": True},
    {"wrappers": ({"ClipReward": {"min_reward": -1.0}},)},
  ],
)
def test_wrappers_that_change_steps_are_not_supported(options):
  env = mujoco_pairs.constructor("HalfCheetah", **options)()
  assert mujoco_block.supports(mujoco_pairs.constructor("HalfCheetah")())
  assert not mujoco_block.supports(env)


@pytest.mark.parametrize("name", ["CartPole-v1", "Swimmer-v5"])
def test_other_tasks_are_not_supported(name):
  assert not mujoco_block.supports(make.MakeEnv(config.Env(name))())


@pytest.mark.parametrize(
  "name, block_class",
  [("Hopper-v5", mujoco_block.MujocoBlock), ("CartPole-v1", gymnasium_block.GymnasiumBlock)],
)
def test_batch_selects_the_block_class(name, block_class):
  with batch_env.BatchEnv([make.MakeEnv(config.Env(name))] * 2) as batch:
    assert type(batch._block) is block_class


@pytest.mark.parametrize(
  "kwargs",
  [
    {"healthy_reward": 2.0},
    {"healthy_z_range": [0.6, 2.0]},
    {"healthy_z_range": np.array([0.6, 2.0])},
    {"frame_skip": 3},
  ],
)
def test_environments_with_different_settings_step_separately(kwargs):
  default = mujoco_pairs.constructor("Hopper")
  changed = mujoco_pairs.constructor("Hopper", kwargs=kwargs)
  assert _is_vectorized([default, default])
  assert _is_vectorized([changed, changed])
  assert not _is_vectorized([default, changed])


def test_camera_settings_do_not_prevent_vectorized_steps():
  constructor = mujoco_pairs.constructor(
    "Hopper", kwargs={"default_camera_config": {"lookat": np.zeros(3)}}
  )
  assert _is_vectorized([constructor] * 2)


def test_environments_of_other_classes_step_separately():
  constructor = mujoco_pairs.constructor("Hopper")
  hopper = constructor()

  class Subclass(type(hopper.unwrapped)):
    pass

  class SameSpaces(gymnasium.Env):
    observation_space = hopper.observation_space
    action_space = hopper.action_space

  for other_class in (Subclass, SameSpaces):
    assert not mujoco_block.supports(other_class())
    assert not _is_vectorized([other_class])
    assert not _is_vectorized([constructor, other_class])


@pytest.mark.parametrize("task", mujoco_pairs.TASKS)
def test_changed_formulas_of_gymnasium_prevent_vectorized_steps(task, monkeypatch):
  constructor = mujoco_pairs.constructor(task)
  assert _is_vectorized([constructor])
  robot_class = type(constructor().unwrapped)
  original = robot_class.step

  def step(self, action):
    observ, reward, *rest = original(self, action)
    return observ, np.nextafter(reward, np.inf), *rest

  monkeypatch.setattr(robot_class, "step", step)
  assert not _is_vectorized([constructor])


_RANDOMIZATION = {
  "friction": [0.5, 1.5],
  "mass": [0.7, 1.3],
  "motor": [0.8, 1.2],
  "damping": [0.5, 2],
  "gravity": [0.9, 1.1],
}


@pytest.mark.parametrize("task", mujoco_pairs.TASKS)
def test_models_may_change_in_every_episode(task):
  wrappers = ({"DomainRandomization": _RANDOMIZATION},)
  pair = mujoco_pairs.pair(task, wrappers=wrappers)
  assert pair[0][0]._task
  actions = mujoco_pairs.actions(pair[0][1], 70)
  _assert_equal_steps(pair, actions[:40])
  for block, _ in pair:
    running = np.swapaxes(actions[:3], 0, 1)
    block.replay([0] * mujoco_pairs.SIZE, mujoco_pairs.SEEDS, list(running))
  _assert_equal_steps(pair, actions[40:])


def test_reports_contain_the_values_of_randomized_models():
  block, arrays = mujoco_pairs.pair("Hopper", wrappers=({"DomainRandomization": _RANDOMIZATION},))[
    0
  ]
  drawn = []
  for action in mujoco_pairs.actions(arrays, 60):
    reports, _ = mujoco_pairs.step(block, arrays, action)
    drawn += [report.outcome["randomization_mass"] for report in reports.values()]
  assert len(drawn) > 3 and len(set(drawn)) == len(drawn)


@pytest.mark.parametrize("name", ["latency", "noise", "push"])
def test_randomization_of_steps_is_not_vectorized(name):
  wrappers = ({"DomainRandomization": {name: [1, 1]}},)
  env = mujoco_pairs.constructor("HalfCheetah", wrappers=wrappers)()
  assert not mujoco_block.supports(env)
