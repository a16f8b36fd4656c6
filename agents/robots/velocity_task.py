"""The task of a legged robot: to walk with commanded velocities.

All functions compute N robots at once. `VelocityEnv` uses them for one robot,
`VectorizedVelocity` for all robots of a worker.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from agents import config
from agents.robots import gait, mirror, rewards
from agents.robots import robot as robot_lib

CONTROL_SECONDS = 0.02  # Per step of the agent.
_MEAN_COMMAND_SECONDS = 5.0
# Probabilities that the parts of a command are not zero, as in Playground.
_NONZERO = np.array([0.9, 0.25, 0.5])
# Half widths of the uniform observation noise, as in Playground.
_NOISE = {"linear": 0.1, "angular": 0.2, "up": 0.05, "joints": 0.03, "joint_speeds": 1.5}
_MIN_UPRIGHT = 0.5  # Cosine of the tilt at which a robot has fallen.
_MIN_HEIGHT = 0.35  # Height of the root above the feet, as a share of standing.
_MAX_START_SPEED = 0.5  # m/s and rad/s
_MARGIN = 1.0  # Meters at the border of a limited ground.


class Simulation(NamedTuple):
  """State of N simulated robots after a step."""

  qpos: np.ndarray  # [N, nq]
  qvel: np.ndarray  # [N, nv]
  sensors: np.ndarray  # [N, S], see `robot.load_model`.
  forces: np.ndarray  # [N, A], of the actuators.


class Step(NamedTuple):
  """Results of one step of N robots."""

  observ: dict[str, np.ndarray]  # Each [N, ...].
  reward: np.ndarray  # [N]
  fallen: np.ndarray  # [N] bool
  left_ground: np.ndarray  # [N] bool
  parts: dict[str, np.ndarray]  # Weighted terms of `rewards`, each [N].


class VelocityTask:
  """Formulas of the task for one robot model.

  The memory of N robots is a structured array, [N], with the command, the
  latest action, the phase of the gait, and sums over the episode.

  Args:
    model: `mujoco.MjModel` of `robot.load_model`.
    robot: Description of the robot.
    command: Constant command; None draws commands.
    noise: Factor of the observation noise.

  Raises:
    ConfigError: If an argument or a weight is invalid.
  """

  def __init__(
    self,
    model: Any,
    robot: robot_lib.Robot,
    command: Sequence[float] | None = None,
    noise: float = 1.0,
  ) -> None:
    import mujoco

    _check(robot, command, noise)
    self.robot = robot
    self._command = command
    joints = model.actuator_trnid[:, 0]
    self._positions, self._speeds = model.jnt_qposadr[joints], model.jnt_dofadr[joints]
    self._limits = np.where(model.jnt_limited[joints, None], model.jnt_range[joints], np.inf)
    self._limits[:, 0] = np.where(model.jnt_limited[joints], self._limits[:, 0], -np.inf)
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, model.key(robot.keyframe).id)
    mujoco.mj_forward(model, data)
    self.standing = data.qpos.copy()
    self.target = data.ctrl.copy()
    self._num_feet = len(robot.feet)
    soles = self._foot_values(data.sensordata[None], 1)
    self.height = float(data.qpos[2] - soles[0, :, 2].min())
    self._gait = gait.Gait(model, data, robot)
    self._weight = float(model.body_subtreemass[1] * np.linalg.norm(model.opt.gravity))
    floors = model.geom_type == mujoco.mjtGeom.mjGEOM_HFIELD
    self.ground = float(model.hfield_size[0, :2].min()) - _MARGIN if floors.any() else math.inf
    self._weights = {**rewards.WEIGHTS, **robot.weights}
    num = model.nu
    widths = [_NOISE[name] for name in ("linear", "angular", "up") for _ in range(3)]
    self._noise = noise * np.array(
      widths + [_NOISE["joints"]] * num + [_NOISE["joint_speeds"]] * num
    )
    self._memory_type = np.dtype(
      [
        ("command", np.float64, (3,)),
        ("steps_left", np.int64),
        ("action", np.float64, (num,)),
        *((name, np.float64) for name in ("phase", "linear", "angular", "work")),
        ("steps", np.int64),
      ]
    )

  def memory(self, size: int) -> np.ndarray:
    """Returns the memory of robots, [size]."""
    return np.zeros(size, self._memory_type)

  def begin(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draws the start of an episode.

    Args:
      rng: Random numbers of the robot.

    Returns:
      Memory of the robot, [1], and positions and velocities of its joints. The
      height of the root is that above a flat ground.
    """
    memory = self.memory(1)
    memory["phase"] = rng.uniform(0, 2 * np.pi)
    self._draw_command(memory[0], rng)
    qpos, qvel = self.standing.copy(), np.zeros(len(self.standing) - 1)
    yaw = rng.uniform(-np.pi, np.pi)
    if math.isfinite(self.ground):
      qpos[:2] = rng.uniform(-self.ground / 2, self.ground / 2, 2)
    qpos[3:7] = np.cos(yaw / 2), 0, 0, np.sin(yaw / 2)
    qpos[self._positions] *= rng.uniform(0.8, 1.2, len(self._positions))
    qvel[:6] = rng.uniform(-_MAX_START_SPEED, _MAX_START_SPEED, 6)
    return memory, qpos, qvel

  def targets(self, memory: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """Returns the targets of the actuators, [N, A].

    Args:
      memory: Memory of the robots before the step, [N].
      actions: Corrections of the gait in [-1, 1], [N, A].
    """
    offsets = self._gait.offsets(memory["phase"], memory["command"])
    return self.target + offsets + self.robot.action_scale * actions

  def observe(
    self, simulation: Simulation, memory: np.ndarray, rngs: Sequence[np.random.Generator]
  ) -> dict[str, np.ndarray]:
    """Returns the observations of the robots.

    Args:
      simulation: State of the N robots.
      memory: Memory of the robots, [N].
      rngs: Random numbers of each robot.

    Returns:
      "state", the noisy observation of the policy, and "privileged_state",
      which only simulations know.
    """
    motion = self._motion(simulation, memory, memory["action"])
    return self._observe(motion, simulation, memory, rngs)

  def step(
    self,
    simulation: Simulation,
    memory: np.ndarray,
    actions: np.ndarray,
    rngs: Sequence[np.random.Generator],
  ) -> Step:
    """Computes the results of a simulated step.

    Args:
      simulation: State of the N robots after the step.
      memory: Memory of the robots, [N]; modified in place.
      actions: Actions of the step, [N, A].
      rngs: Random numbers of each robot.
    """
    memory["phase"] += 2 * np.pi * CONTROL_SECONDS * self.robot.step_frequency
    motion = self._motion(simulation, memory, actions)
    command = memory["command"]
    terms = rewards.terms(motion, command, self.robot.step_height)
    parts = {name: weight * terms[name] for name, weight in self._weights.items() if weight}
    reward = CONTROL_SECONDS * rewards.total(parts)
    memory["action"] = actions
    memory["linear"] += np.linalg.norm(motion.linear[:, :2] - command[:, :2], axis=1)
    memory["angular"] += np.abs(motion.angular[:, 2] - command[:, 2])
    memory["work"] += motion.power * self._weight * CONTROL_SECONDS
    memory["steps"] += 1
    memory["steps_left"] -= 1
    for row in np.flatnonzero(memory["steps_left"] <= 0).tolist():
      self._draw_command(memory[row], rngs[row])
    return Step(
      self._observe(motion, simulation, memory, rngs),
      reward,
      motion.fallen,
      np.abs(simulation.qpos[:, :2]).max(1) > self.ground,
      {name: CONTROL_SECONDS * values for name, values in parts.items()},
    )

  def info(self, memory: Any, fallen: bool) -> dict[str, Any]:
    """Returns the measurements of an episode so far.

    Args:
      memory: Memory of one robot.
      fallen: Whether the robot has fallen.
    """
    steps = max(1, int(memory["steps"]))
    return {
      "metric_survived": not fallen,
      "metric_error_linear": float(memory["linear"] / steps),
      "metric_error_angular": float(memory["angular"] / steps),
      "metric_power": float(memory["work"] / (steps * CONTROL_SECONDS)),
    }

  def mirrors(self, model: mirror.ModelMirror) -> tuple[mirror.Mirror, mirror.Mirror]:
    """Returns the mirrors of the observation and of the action.

    Args:
      model: Mirror of the robot's model.

    Raises:
      ConfigError: If feet that are mirror images step at the same time.
    """
    vector, axis = mirror.signs([1, -1, 1]), mirror.signs([-1, 1, -1])
    actuators, feet = model.actuators, self._gait.mirror()
    # The gait of the mirrored robot is half a cycle ahead.
    measured = [vector, axis, vector, actuators, actuators]
    known = [actuators, mirror.signs([1, -1, -1]), mirror.signs([-1, -1])]
    privileged = [feet, feet, feet, mirror.grouped(feet, [1, -1, 1]), actuators]
    # Parts of observations are in alphabetical order.
    parts = [*measured, *known, *privileged, *measured, *known]
    return mirror.Mirror.join(parts), actuators

  def _draw_command(self, memory: Any, rng: np.random.Generator) -> None:
    """Draws the next command of one robot, and the steps until it changes."""
    seconds = rng.exponential(_MEAN_COMMAND_SECONDS)
    memory["steps_left"] = max(1, round(seconds / CONTROL_SECONDS))
    limits = np.array(self.robot.max_command)
    drawn = rng.uniform(-limits, limits) * (rng.uniform(size=3) < _NONZERO)
    memory["command"] = drawn if self._command is None else self._command

  def _motion(
    self, simulation: Simulation, memory: np.ndarray, actions: np.ndarray
  ) -> rewards.Motion:
    """Returns the movement of the robots."""
    qpos, qvel = simulation.qpos, simulation.qvel
    rotation = _rotation(qpos[:, 3:7])
    up = rotation[:, 2]
    positions = self._foot_values(simulation.sensors, 1)
    foot_height = positions[..., 2] - positions[..., 2].min(1, keepdims=True)
    # `take` returns rows in C order. With another order, the last bits of sums
    # would depend on the number of robots.
    angles, speeds = qpos.take(self._positions, 1), qvel.take(self._speeds, 1)
    beyond = np.maximum(self._limits[:, 0] - angles, 0) + np.maximum(angles - self._limits[:, 1], 0)
    moves = np.abs(memory["command"]).sum(1) > 0
    return rewards.Motion(
      linear=np.einsum("nij,ni->nj", rotation, qvel[:, :3]),
      angular=qvel[:, 3:6],
      up=up,
      joints=angles - self.standing[self._positions],
      joint_speeds=speeds,
      beyond_limits=beyond.sum(1),
      torque=np.abs(simulation.forces).sum(1) / self._weight,
      power=np.abs(simulation.forces * speeds).sum(1) / self._weight,
      action_change=actions - memory["action"],
      contact=simulation.sensors[:, : self._num_feet] > 0,
      foot_height=foot_height,
      gait_height=self._gait.heights(memory["phase"], moves),
      foot_velocity=self._foot_values(simulation.sensors, 4),
      fallen=(up[:, 2] < _MIN_UPRIGHT)
      | (qpos[:, 2] - positions[..., 2].min(1) < _MIN_HEIGHT * self.height),
    )

  def _observe(
    self,
    motion: rewards.Motion,
    simulation: Simulation,
    memory: np.ndarray,
    rngs: Sequence[np.random.Generator],
  ) -> dict[str, np.ndarray]:
    measured = np.concatenate(
      [motion.linear, motion.angular, motion.up, motion.joints, motion.joint_speeds], 1
    )
    phase = memory["phase"][:, None]
    known = [memory["action"], memory["command"], np.cos(phase), np.sin(phase)]
    noise = np.stack([rng.uniform(-1, 1, len(self._noise)) for rng in rngs]) * self._noise
    privileged = [
      *(motion.contact, motion.foot_height, motion.gait_height),
      motion.foot_velocity.reshape(len(memory), -1),
      simulation.forces / self._weight,
    ]
    return {
      "state": np.concatenate([measured + noise, *known], 1),
      "privileged_state": np.concatenate([measured, *known, *privileged], 1),
    }

  def _foot_values(self, sensors: np.ndarray, first: int) -> np.ndarray:
    """Returns vectors that sensors measure at the feet, [N, F, 3]."""
    size = self._num_feet
    return sensors[:, first * size : (first + 3) * size].reshape(-1, size, 3)


def _check(robot: robot_lib.Robot, command: Any, noise: Any) -> None:
  """Raises ConfigError if arguments of `VelocityTask` are invalid."""
  if unknown := sorted(robot.weights.keys() - rewards.WEIGHTS.keys()):
    raise config.ConfigError(
      f"Unknown reward {unknown[0]!r} in `weights`; rewards are {', '.join(rewards.WEIGHTS)}."
    )
  parts = command if isinstance(command, (list, tuple)) else ()
  valid = [isinstance(part, (int, float)) and math.isfinite(part) for part in parts]
  if command is not None and not (len(valid) == 3 and all(valid)):
    raise config.ConfigError(
      "`command` must be three numbers, forward and left in m/s and turning in rad/s, such as "
      f"[1, 0, 0]. Received: {command!r}."
    )
  if not (isinstance(noise, (int, float)) and 0 <= noise < math.inf):
    raise config.ConfigError(f"`noise` must be a number of at least 0. Received: {noise!r}.")


def _rotation(quaternions: np.ndarray) -> np.ndarray:
  """Returns the rotation matrices, [N, 3, 3], of unit quaternions, [N, 4]."""
  w, x, y, z = quaternions.T
  return np.stack(
    [
      np.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)], -1),
      np.stack([2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)], -1),
      np.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], -1),
    ],
    1,
  )
