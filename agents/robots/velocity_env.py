"""Gymnasium environment of a legged robot with velocity commands."""

import math
from collections.abc import Sequence
from typing import Any

import gymnasium
import mujoco
import numpy as np
from gymnasium.envs.mujoco import mujoco_env

from agents import config
from agents.robots import mirror, velocity_task
from agents.robots import robot as robot_lib
from agents.robots.vectorized_velocity import VectorizedVelocity

_COMMAND_COLOR, _VELOCITY_COLOR = (0.1, 0.8, 0.2, 1), (0.2, 0.4, 1, 1)
_ARROW_WIDTH = 0.015  # m
_SECONDS_OF_ARROW = 0.5  # An arrow is as long as the way in this time.


class VelocityEnv(mujoco_env.MujocoEnv):
  """A legged robot that tracks commanded velocities.

  Observations have two parts. "state" contains noisy velocities of the root in
  its frame (3 m/s, 3 rad/s), the direction opposite to gravity (3), angles
  relative to the standing pose in rad, joint speeds in rad/s, the latest
  action, the command (m/s, m/s, rad/s), and cosine and sine of the gait's
  phase. "privileged_state" contains the same values without noise, then
  contact, height (m), required height (m) and velocity (m/s) of the feet, and
  forces of the actuators divided by the robot's weight.

  An action changes the targets of the actuators; a step lasts 0.02 s. An
  episode terminates when the robot falls, and is truncated after 20 s or when
  the robot reaches the border of a limited ground. Infos contain
  "metric_survived", "metric_error_linear" (mean distance from the commanded
  velocity in m/s), "metric_error_angular" (rad/s), "metric_power" (mean
  mechanical power in W), and the weighted terms of the reward.

  Args:
    robot: Name in `robot.ROBOTS`, or path of an MJCF file.
    command: Constant command, such as (1, 0, 0); None draws commands.
    noise: Factor of the observation noise.
    render_mode: "rgb_array", "human" or None.
    width: Width of frames in pixels.
    height: Height of frames in pixels.
    settings: Fields of `robot.Robot`.
  """

  vectorized_task = VectorizedVelocity
  metadata = {
    "render_modes": ["human", "rgb_array", "depth_array", "rgbd_tuple"],
    "render_fps": round(1 / velocity_task.CONTROL_SECONDS),
  }

  def __init__(
    self,
    robot: str = "go1",
    command: Sequence[float] | None = None,
    noise: float = 1.0,
    render_mode: str | None = None,
    width: int = 480,
    height: int = 480,
    **settings: Any,
  ) -> None:
    self._robot = robot_lib.find(robot, settings)
    self._settings = repr((self._robot, command, noise))
    self._loaded_model = robot_lib.load_model(self._robot, visible=render_mode is not None)
    timestep = self._loaded_model.opt.timestep
    num_steps = round(velocity_task.CONTROL_SECONDS / timestep)
    if not math.isclose(num_steps * timestep, velocity_task.CONTROL_SECONDS):
      raise config.ConfigError(
        f"{self._robot.scene}: a step lasts {velocity_task.CONTROL_SECONDS} s, which must be a "
        f"multiple of the time step of MuJoCo, {timestep} s. Set `timestep`."
      )
    super().__init__(
      str(robot_lib.find_scene(self._robot.scene)), num_steps, None, render_mode, width, height
    )
    self.task = velocity_task.VelocityTask(self.model, self._robot, command, noise)
    self.memory = self.task.memory(1)
    observ = self.task.observe(self._simulation(), self.memory, [np.random.default_rng()])
    self.observation_space = gymnasium.spaces.Dict(
      {
        name: gymnasium.spaces.Box(-np.inf, np.inf, part[0].shape, np.float64)
        for name, part in observ.items()
      }
    )
    self.mujoco_renderer.default_cam_config = {
      **{"trackbodyid": 1, "azimuth": 120, "elevation": -20},
      "distance": 4 * self.task.height + 0.5,
    }

  def step(self, action: np.ndarray) -> Any:
    """Steps the robot for 0.02 s."""
    actions = np.asarray(action, np.float64)[None]
    self.data.ctrl[:] = self.task.targets(self.memory, actions)[0]
    mujoco.mj_step(self.model, self.data, self.frame_skip)
    step = self.task.step(self._simulation(), self.memory, actions, [self.np_random])
    fallen = bool(step.fallen[0])
    info = self.task.info(self.memory[0], fallen)
    parts = {f"reward_{name}": values[0] for name, values in step.parts.items()}
    if self.render_mode == "human":
      self.render()
    return (
      {name: part[0] for name, part in step.observ.items()},
      float(step.reward[0]),
      fallen,
      bool(step.left_ground[0]),
      {**info, **parts},
    )

  def reset_model(self) -> Any:
    """Begins an episode; see `gymnasium.Env.reset`."""
    self.memory, qpos, qvel = self.task.begin(self.np_random)
    if np.isfinite(self.task.ground):
      qpos[2] += self._ground_height(*qpos[:2])
    self.data.ctrl[:] = self.task.target
    self.set_state(qpos, qvel)
    return self.observe()

  @property
  def max_command(self) -> tuple[float, float, float]:
    """Largest commands of the task: m/s, m/s, rad/s."""
    return self._robot.max_command

  def set_command(self, command: Sequence[float]) -> None:
    """Sets the command until the next call or the end of the episode.

    Args:
      command: Forward and left velocity in m/s, turning velocity in rad/s.
    """
    self.memory["command"], self.memory["steps_left"] = command, np.iinfo(np.int64).max

  def observe(self) -> dict[str, np.ndarray]:
    """Returns the observation of the current state and command."""
    observ = self.task.observe(self._simulation(), self.memory, [self.np_random])
    return {name: part[0] for name, part in observ.items()}

  def mirrors(self) -> tuple[mirror.Mirror, mirror.Mirror]:
    """Returns the mirrors of observation and action; see `mirror.of_env`."""
    return self.task.mirrors(mirror.ModelMirror(self.model, self.task.standing))

  def render(self) -> Any:
    """Draws the robot, its command (green) and its velocity (blue)."""
    viewer = self.mujoco_renderer._get_viewer(self.render_mode)
    start = self.data.qpos[:3] + (0, 0, 0.5 * self.task.height)
    rotation = self.data.xmat[1].reshape(3, 3)
    arrows = (
      (rotation @ (*self.memory["command"][0, :2], 0), _COMMAND_COLOR),
      (self.data.qvel[:3] * (1, 1, 0), _VELOCITY_COLOR),
    )
    for velocity, color in arrows:
      length = np.linalg.norm(velocity)
      if length > 0.01:
        viewer.add_marker(
          type=mujoco.mjtGeom.mjGEOM_ARROW,
          pos=start,
          mat=_frame_along(velocity),
          size=(_ARROW_WIDTH, _ARROW_WIDTH, 2 * length * _SECONDS_OF_ARROW),
          rgba=color,
          label="",
        )
    return super().render()

  def _initialize_simulation(self) -> tuple[mujoco.MjModel, mujoco.MjData]:
    model = self._loaded_model
    model.vis.global_.offwidth = max(model.vis.global_.offwidth, self.width)
    model.vis.global_.offheight = max(model.vis.global_.offheight, self.height)
    return model, mujoco.MjData(model)

  def _set_action_space(self) -> gymnasium.spaces.Box:
    self.action_space = gymnasium.spaces.Box(-1, 1, (self.model.nu,), np.float32)
    return self.action_space

  def _simulation(self) -> velocity_task.Simulation:
    data = self.data
    return velocity_task.Simulation(
      *(values[None] for values in (data.qpos, data.qvel, data.sensordata, data.actuator_force))
    )

  def _ground_height(self, x: float, y: float) -> float:
    """Returns the height of the ground at a position, in m."""
    (geom,) = np.flatnonzero(self.model.geom_type == mujoco.mjtGeom.mjGEOM_HFIELD)
    mujoco.mj_kinematics(self.model, self.data)
    top, down = np.array([x, y, 100.0]), np.array([0.0, 0.0, -1.0])
    return top[2] - mujoco.mj_rayHfield(self.model, self.data, geom, top, down)


def _frame_along(direction: np.ndarray) -> np.ndarray:
  """Returns a rotation matrix, [9], whose third axis has a direction."""
  axis = direction / np.linalg.norm(direction)
  side = np.cross(axis, (0, 0, 1) if abs(axis[2]) < 0.9 else (1, 0, 0))
  side /= np.linalg.norm(side)
  return np.stack([side, np.cross(axis, side), axis], 1).ravel()
