"""What can be stepped at once, and that nobody notices the difference."""

import gymnasium
import numpy as np
import pytest

from agents import config
from agents.environments.blocks import mujoco_block
from agents.environments.making import make
from tests.environments import mujoco_pairs


def _assert_same(policy_and_value, actions):
  for action in actions:
    together, alone = (mujoco_pairs.step(*pair, action) for pair in policy_and_value)
    assert together == alone


@pytest.mark.parametrize("kind", mujoco_pairs.TASKS)
def test_running_episodes_are_rebuilt(kind, monkeypatch):
  policy_and_value = mujoco_pairs.pair(kind, monkeypatch)
  actions = mujoco_pairs.actions(policy_and_value[0][1], 60) * 0.1
  for made, _ in policy_and_value:
    made.replay([0] * mujoco_pairs.SIZE, mujoco_pairs.SEEDS,
                list(np.swapaxes(actions[:5], 0, 1)))
  _assert_same(policy_and_value, actions[5:])


@pytest.mark.parametrize("reach", [
    lambda made, chosen: made.call("state_vector", (), {}, chosen),
    lambda made, chosen: made.get("frame_skip", chosen),
    lambda made, chosen: made.set(
        "_forward_reward_weight", [1.0, 2.0, 3.0, 4.0], chosen)])
def test_who_reaches_into_environments_finds_them_as_they_are(
    reach, monkeypatch):
  policy_and_value = mujoco_pairs.pair("Hopper", monkeypatch)
  actions = mujoco_pairs.actions(policy_and_value[0][1], 60) * 0.1
  _assert_same(policy_and_value, actions[:5])
  for made, _ in policy_and_value:
    reach(made, [True] * mujoco_pairs.SIZE)
  _assert_same(policy_and_value, actions[5:])


def test_a_robot_that_fails_is_replaced(monkeypatch):
  policy_and_value = mujoco_pairs.pair("Ant", monkeypatch, tolerant=True)
  actions = mujoco_pairs.actions(policy_and_value[0][1], 40)
  _assert_same(policy_and_value, actions[:6])
  for made, _ in policy_and_value:
    robot = made._envs[2].unwrapped
    robot.model = None
    if made._robots:
      made._robots.replace(2, robot)
  together, alone = (mujoco_pairs.step(*pair, actions[6]) for pair in policy_and_value)
  for reports, _ in (together, alone):
    assert "Environment 2 ('Ant-v5', seed" in reports[2].outcome
  assert together[1] == alone[1]
  _assert_same(policy_and_value, actions[7:])


@pytest.mark.parametrize("options", [
    {"action_repeat": 2}, {"random_start": 3}, {"frame_delta": True},
    {"wrappers": ({"ClipReward": {"min_reward": -1.0}},)}])
def test_other_wrappers_have_their_way(options):
  env = mujoco_pairs.constructor("HalfCheetah", **options)()
  assert mujoco_block.of([env]) is None


def test_other_environments_step_for_themselves():
  for name in ("CartPole-v1", "Swimmer-v5"):
    env = make.MakeEnv(config.Env(name))()
    assert mujoco_block.of([env]) is None


@pytest.mark.parametrize("kwargs", [
    {"healthy_reward": 2.0}, {"healthy_z_range": [0.6, 2.0]},
    {"healthy_z_range": np.array([0.6, 2.0])}, {"frame_skip": 3}])
def test_robots_with_different_settings_step_for_themselves(kwargs):
  plain = mujoco_pairs.constructor("Hopper")()
  assert mujoco_block.of([plain, mujoco_pairs.constructor("Hopper")()])
  other = mujoco_pairs.constructor("Hopper", kwargs=kwargs)()
  assert mujoco_block.of([other, mujoco_pairs.constructor("Hopper", kwargs=kwargs)()])
  assert mujoco_block.of([plain, other]) is None


def test_cameras_of_their_own_make_no_difference():
  envs = [mujoco_pairs.constructor("Hopper", kwargs={
      "default_camera_config": {"lookat": np.zeros(3)}})() for _ in range(2)]
  assert mujoco_block.of(envs)


def test_other_classes_step_for_themselves():
  plain = mujoco_pairs.constructor("Hopper")()
  class Tilted(type(plain.unwrapped)):
    pass
  class Like(gymnasium.Env):
    observation_space = plain.observation_space
    action_space = plain.action_space
  for other in (Tilted(), Like()):
    assert mujoco_block.of([other]) is None
    assert mujoco_block.of([plain, other]) is None


@pytest.mark.parametrize("kind", mujoco_pairs.TASKS)
def test_formulas_that_are_not_gymnasiums_are_found_out(kind, monkeypatch):
  env = mujoco_pairs.constructor(kind)()
  assert mujoco_block.of([env])
  real = type(env.unwrapped).step
  def step(self, action):
    observ, reward, *rest = real(self, action)
    return observ, np.nextafter(reward, np.inf), *rest
  monkeypatch.setattr(type(env.unwrapped), "step", step)
  assert mujoco_block.of([env]) is None
