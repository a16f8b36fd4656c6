"""Legged robots with velocity commands are simulated and measured correctly."""

import mujoco
import numpy as np
import pytest

from agents import config
from agents.environments.blocks import gymnasium_block, mujoco_block
from agents.environments.data import buffer_layout
from agents.environments.making import make
from agents.robots import robot as robot_lib
from agents.robots import velocity_env


def _env(robot="go1", **kwargs):
  return velocity_env.VelocityEnv(robot, **kwargs)


def _actions(env, steps, seed=0):
  return np.random.default_rng(seed).uniform(-1, 1, (steps, *env.action_space.shape))


@pytest.mark.fast_variants(2)
@pytest.mark.parametrize("name", robot_lib.ROBOTS)
def test_observation_starts_with_the_measurements_of_the_sensors(name):
  env = _env(name, noise=0.0)
  env.reset(seed=1)
  # The models of MuJoCo Playground have sensors for the same quantities.
  spec = mujoco.MjSpec.from_file(str(robot_lib.find_scene(env._robot.scene)))
  body = spec.bodies[1]
  body.add_site(name="root")
  kinds = mujoco.mjtSensor
  for kind in (kinds.mjSENS_VELOCIMETER, kinds.mjSENS_GYRO, kinds.mjSENS_FRAMEZAXIS):
    sensor = spec.add_sensor(
      name=kind.name, type=kind, objtype=mujoco.mjtObj.mjOBJ_SITE, objname="root"
    )
  sensor.objtype, sensor.objname = mujoco.mjtObj.mjOBJ_SITE, "root"
  model = spec.compile()
  data = mujoco.MjData(model)
  for action in _actions(env, 5):
    observ, *_ = env.step(action)
    data.qpos[:], data.qvel[:] = env.data.qpos, env.data.qvel
    mujoco.mj_forward(model, data)
    linear, angular, _ = (
      data.sensor(kind.name).data
      for kind in (kinds.mjSENS_VELOCIMETER, kinds.mjSENS_GYRO, kinds.mjSENS_FRAMEZAXIS)
    )
    up = data.xmat[1].reshape(3, 3)[2]
    np.testing.assert_allclose(observ["state"][:9], [*linear, *angular, *up], atol=1e-9)
    np.testing.assert_allclose(observ["privileged_state"][:9], observ["state"][:9])


@pytest.mark.parametrize("name", robot_lib.ROBOTS)
def test_invisible_shapes_do_not_change_the_simulation(name):
  results = []
  for render_mode in (None, "rgb_array"):
    env = _env(name, render_mode=render_mode)
    env.reset(seed=3)
    steps = [env.step(action) for action in _actions(env, 40)]
    results.append([(observ["state"].tolist(), reward) for observ, reward, *_ in steps])
    env.close()
  assert results[0] == results[1]


@pytest.mark.parametrize("name", ["go1", "go1_rough", "h1"])
def test_vectorized_steps_equal_separate_steps(name):
  size, steps = 3, 120
  constructors = make.constructors(config.Env(id=f"robots/{name}-v0", max_length=50), size, seed=0)
  spaces = _env(name).observation_space, _env(name).action_space
  layout = buffer_layout.batch_layout(size, *spaces)
  results = []
  for block_class in (mujoco_block.MujocoBlock, gymnasium_block.GymnasiumBlock):
    arrays = layout.views(np.zeros(layout.num_bytes, np.uint8))
    block = block_class(constructors, 0, spaces, arrays, 0)
    block.reset(range(size))
    arrays["active"][:] = True
    rng, result = np.random.default_rng(0), []
    for step in range(steps):
      arrays["action"][:] = rng.uniform(-1, 1, arrays["action"].shape) * 0.3
      reports = block.step()
      if step == 60 and block_class is mujoco_block.MujocoBlock:
        assert block._task is not None
      if step == 80:
        block.get("frame_skip", [True] * size)  # Ends vectorized steps.
      values = [arrays[key].tobytes() for key in ("observ", "reward", "terminated", "truncated")]
      result.append((values, {row: report.outcome for row, report in reports.items()}))
    results.append(result)
    block.close()
  assert results[0] == results[1]
  outcomes = [outcome for _, reports in results[0] for outcome in reports.values()]
  assert {"metric_survived", "metric_error_linear", "reward_parts"} <= outcomes[0].keys()


def test_robot_falls_and_the_episode_terminates():
  env = _env()
  env.reset(seed=0)
  env.data.qpos[3:7] = 0, 1, 0, 0  # On its back.
  _, _, terminated, truncated, info = env.step(np.zeros(12))
  assert terminated and not truncated and info["metric_survived"] is False


def test_infos_contain_the_mean_errors_and_the_power():
  command = (0.5, 0.0, -1.0)
  env = _env(command=command, noise=0.0)
  env.reset(seed=0)
  errors = []
  for action in _actions(env, 20) * 0.1:
    observ, *_, info = env.step(action)
    forward, left, turn = observ["state"][[0, 1, 5]] - command
    power = abs(env.data.actuator_force * env.data.qvel[6:]).sum()
    errors.append((np.hypot(forward, left), abs(turn), power))
  keys = "metric_error_linear", "metric_error_angular", "metric_power"
  np.testing.assert_allclose([info[key] for key in keys], np.mean(errors, 0))


def test_robot_without_command_stands():
  env = _env(command=(0, 0, 0))
  env.reset(seed=0)
  for _ in range(300):
    _, _, terminated, truncated, info = env.step(np.zeros(12))
    assert not (terminated or truncated)
  assert info["metric_survived"] is True
  assert info["metric_error_linear"] < 0.1


def test_episode_is_truncated_at_the_border_of_the_ground():
  env = _env("go1_rough")
  env.reset(seed=0)
  env.data.qpos[0] = 9.5
  _, _, terminated, truncated, _ = env.step(np.zeros(12))
  assert truncated and not terminated


def test_robot_starts_above_rough_ground():
  env = _env("go1_rough")
  heights = []
  for seed in range(20):
    env.reset(seed=seed)
    soles = env.data.sensordata[4:16].reshape(4, 3)
    heights.append(min(sole[2] - env._ground_height(*sole[:2]) for sole in soles))
  assert min(heights) > -0.02


@pytest.mark.slow
def test_commands_change_and_lie_in_their_range():
  env, commands = _env(), []
  for seed in range(30):
    env.reset(seed=seed)
    for _ in range(100):
      env.memory["steps_left"] = 1
      env.step(np.zeros(12))
      commands.append(env.memory["command"][0].copy())
  commands = np.array(commands)
  assert (np.abs(commands) <= env._robot.max_command).all()
  np.testing.assert_allclose((commands != 0).mean(0), [0.9, 0.25, 0.5], atol=0.05)


def test_robot_of_a_file_needs_feet(tmp_path):
  scene = robot_lib.find_scene(robot_lib.ROBOTS["spot"].scene)
  with pytest.raises(config.ConfigError, match=r"name the sites .* env.kwargs.feet"):
    _env(str(scene))
  with pytest.raises(config.ConfigError, match="no site 'paw'"):
    _env(str(scene), feet=["paw"])
  with pytest.raises(config.ConfigError, match="no keyframe 'sit'"):
    _env(str(scene), feet=["FL"], keyframe="sit")
  env = _env(str(scene), feet=["FL", "FR", "HL", "HR"], action_scale=0.3)
  observ, _ = env.reset(seed=0)
  assert env.observation_space.contains(observ)


@pytest.mark.parametrize(
  ("kwargs", "message"),
  [
    ({"robot": "dog"}, "no robot 'dog'.*go1"),
    ({"max_comand": [1, 1, 1]}, "max_comand.*Did you mean 'env.kwargs.max_command'"),
    ({"max_command": [1, 1]}, "max_command must be three numbers"),
    ({"action_scale": "wide"}, "action_scale` must be of type float"),
    ({"step_height": 0}, "step_height must be positive"),
    ({"feet": []}, "feet must name at least one site"),
    ({"scene": "a.xml"}, "scene: name the MJCF file as `robot`"),
    ({"command": [1, 0]}, "three numbers"),
    ({"command": 1}, "three numbers"),
    ({"noise": -1}, "`noise` must be"),
    ({"timestep": 0.003}, "multiple of the time step"),
    ({"weights": {"jump": 1.0}}, "Unknown reward 'jump'.*tracking_linear"),
  ],
)
def test_invalid_arguments_are_user_errors(kwargs, message):
  with pytest.raises(config.ConfigError, match=message):
    make.check(config.Env(id="robots/custom-v0", kwargs={"robot": "go1", **kwargs}))
