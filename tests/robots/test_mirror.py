"""Mirror images of robots behave like mirror images."""

import gymnasium
import mujoco
import numpy as np
import pytest

from agents import config, spaces
from agents.robots import mirror, robot, velocity_env

_ROBOTS = [name for name in robot.ROBOTS if name != "go1_rough"]
_VECTOR = np.array([1, -1, 1])


def _flat(env, observ):
  """Returns an observation as a vector of all its numbers."""
  parts = spaces.values(env.observation_space, observ)
  return np.concatenate([np.ravel(part) for part in parts])


@pytest.mark.parametrize("name", _ROBOTS)
def test_mirrored_robot_observes_mirrored_values(name):
  observ_mirror, action_mirror = velocity_env.VelocityEnv(name).mirrors()
  action = np.random.default_rng(0).uniform(-0.3, 0.3, len(action_mirror.order))
  results = []
  for mirrored in (False, True):
    env = velocity_env.VelocityEnv(name, command=(0.3, 0.2, -0.4), noise=0.0)
    env.reset(seed=0)
    env.memory["phase"] = 0.7
    rng = np.random.default_rng(1)
    env.data.qpos[:], env.data.qvel[:] = env.task.standing, rng.normal(size=env.model.nv) / 10
    if mirrored:
      model = mirror.ModelMirror(env.model, env.task.standing)
      env.data.qpos[:], env.data.qvel[:] = model.qpos(env.data.qpos), model.qvel(env.data.qvel)
      env.memory["command"] *= (1, -1, -1)
      env.memory["phase"] += np.pi
    for _ in range(5):
      observ, reward, *_ = env.step(action_mirror(action) if mirrored else action)
    results.append((_flat(env, observ), reward))
  (observ, reward), (image, image_reward) = results
  # Masses of real robots are not exactly symmetric.
  np.testing.assert_allclose(observ_mirror(observ), image, atol=0.1 * np.abs(observ).max())
  assert np.abs(observ_mirror(observ) - image).mean() < 0.02
  assert np.abs(observ - image).mean() > 0.05
  assert image_reward == pytest.approx(reward, rel=0.1)


def test_mirrored_ant_observes_mirrored_values():
  env = gymnasium.make("Ant-v5")
  observ_mirror, action_mirror = mirror.of_env(env)
  ant = env.unwrapped
  model = mirror.ModelMirror(ant.model, ant.init_qpos)
  rng = np.random.default_rng(0)
  actions = rng.uniform(-1, 1, (30, 8))
  qpos = ant.init_qpos + rng.uniform(-0.1, 0.1, ant.model.nq)
  qpos[3:7] /= np.linalg.norm(qpos[3:7])
  qvel = rng.normal(size=ant.model.nv) / 10
  env.reset(seed=0)
  ant.set_state(qpos, qvel)
  expected = [env.step(action)[:2] for action in actions]
  env.reset(seed=0)
  ant.set_state(model.qpos(qpos), model.qvel(qvel))
  for action, (observ, reward) in zip(actions, expected, strict=True):
    image, image_reward, *_ = env.step(action_mirror(action))
    np.testing.assert_allclose(observ_mirror(observ), image, atol=1e-3)
    assert image_reward == pytest.approx(reward, abs=1e-3)
  assert any(observ[27:].any() for observ, _ in expected)  # Some feet touch the ground.


@pytest.mark.parametrize("name", _ROBOTS)
def test_image_of_an_image_is_the_original(name):
  for each in velocity_env.VelocityEnv(name).mirrors():
    values = np.random.default_rng(0).normal(size=(3, len(each.order)))
    np.testing.assert_array_equal(each(each(values)), values)


def test_model_that_is_not_symmetric_is_a_user_error():
  env = velocity_env.VelocityEnv("spot")
  env.model.body_mass[2] *= 20  # One leg.
  env.model.body_inertia[2] *= 20
  with pytest.raises(config.ConfigError, match="mirror image differs by .* not symmetric"):
    env.mirrors()
  spec = mujoco.MjSpec.from_string(
    """<mujoco><worldbody><body name='trunk'><freejoint/><geom size='.1'/>
    <body name='leg' pos='0 .2 0'><joint name='hip'/><geom size='.1'/></body>
    </body></worldbody></mujoco>"""
  )
  model = spec.compile()
  with pytest.raises(config.ConfigError, match="'hip' of the model has 0 mirror images"):
    mirror.ModelMirror(model, np.array([0, 0, 0, 1, 0, 0, 0, 0.0]))


def test_environments_without_known_symmetry_are_user_errors():
  with pytest.raises(config.ConfigError, match="HalfCheetahEnv have no known mirror image"):
    mirror.of_env(gymnasium.make("HalfCheetah-v5"))
  env = gymnasium.wrappers.FlattenObservation(gymnasium.make("robots/go1-v0"))
  with pytest.raises(config.ConfigError, match="wrappers change"):
    mirror.of_env(env)
  with pytest.raises(config.ConfigError, match="must alternate"):
    velocity_env.VelocityEnv("go1", feet=["FR", "RR", "FL", "RL"]).mirrors()
