"""The gait lifts feet, and moves them as the command requires."""

import mujoco
import numpy as np
import pytest

from agents.robots import robot as robot_lib
from agents.robots import velocity_env


@pytest.mark.parametrize("name", robot_lib.ROBOTS)
def test_offsets_lift_each_foot_to_the_step_height(name):
  env = velocity_env.VelocityEnv(name)
  gait, robot = env.task._gait, env._robot
  for foot in range(len(robot.feet)):
    before = _feet(env, np.zeros(env.model.nu))
    after = _feet(env, gait._lift[foot])
    expected = before + np.eye(len(robot.feet))[foot][:, None] * (0, 0, robot.step_height)
    np.testing.assert_allclose(after, expected, atol=0.01)


@pytest.mark.parametrize("name", ["go1", "h1"])
@pytest.mark.parametrize("command", [(0.3, 0, 0), (0, 0.2, 0), (0, 0, 0.5), (0.2, -0.1, 0.3)])
def test_feet_on_the_ground_move_against_the_commanded_velocity(name, command):
  env = velocity_env.VelocityEnv(name)
  gait, step = env.task._gait, 1e-3
  for parity in (0, 1):  # The middle of the stance of every second foot.
    middle = 1.5 * np.pi - np.pi * parity - 2 * np.pi * 0.04 * env._robot.step_frequency
    phases = middle + np.array([-step, step]) * 2 * np.pi * env._robot.step_frequency
    first, second = (
      _feet(env, offsets) for offsets in gait.offsets(phases, np.array([command, command]))
    )
    velocity = ((second - first) / (2 * step))[parity::2, :2]
    x, y = gait._feet[parity::2].T
    expected = -np.stack([command[0] - command[2] * y, command[1] + command[2] * x], 1)
    np.testing.assert_allclose(velocity, expected, atol=0.03)


def test_robot_without_command_keeps_its_feet_on_the_ground():
  env = velocity_env.VelocityEnv("go1")
  phases = np.linspace(0, 6, 20)
  assert not env.task._gait.offsets(phases, np.zeros((20, 3))).any()
  assert not env.task._gait.heights(phases, np.zeros(20, bool)).any()


def _feet(env, offsets):
  """Returns positions of the feet, [F, 3], after changes of the joints."""
  data = mujoco.MjData(env.model)
  data.qpos[:] = env.task.standing
  data.qpos[env.task._positions] += offsets
  mujoco.mj_forward(env.model, data)
  return np.array([data.site(name).xpos for name in env._robot.feet])
