"""Reward terms of legged robots, for N robots at once.

Most terms come from the tasks of MuJoCo Playground (Zakka et al. 2025). There
are changes for robots of any size: torque and power are divided by the robot's
weight, and the pose is the mean over the joints. The height of a foot is
measured from the lowest foot, so that it has the same meaning on rough ground.
"""

import dataclasses

import numpy as np

# Weight of each term per second. Negative weights belong to costs.
WEIGHTS = {
  "tracking_linear": 2.0,
  "tracking_angular": 0.5,
  "gait": 2.0,
  "pose": 0.1,
  "vertical_speed": -0.5,
  "roll_pitch_speed": -0.1,
  "tilt": -5.0,
  "slip": -0.1,
  "torque": -0.025,
  "power": -0.125,
  "action_rate": -0.01,
  "stand_still": -2.0,
  "joint_limits": -1.0,
}
_TRACKING_WIDTH = 0.5  # m/s and rad/s
_POSE_WIDTH = 0.1  # rad²
_GAIT_FACTOR = 4.0
_COST_FACTOR = 0.3


@dataclasses.dataclass
class Motion:
  """Movement of N robots in one step, with J joints and F feet.

  Velocities of the root are those in its own frame: forward, left, up.
  """

  linear: np.ndarray  # [N, 3] velocity in m/s
  angular: np.ndarray  # [N, 3] velocity in rad/s
  up: np.ndarray  # [N, 3] direction opposite to gravity
  joints: np.ndarray  # [N, J] angles relative to the standing pose in rad
  joint_speeds: np.ndarray  # [N, J] in rad/s
  beyond_limits: np.ndarray  # [N] sum of angles beyond the joints' limits in rad
  torque: np.ndarray  # [N] sum of absolute torques / weight in m
  power: np.ndarray  # [N] mechanical power / weight in m/s
  action_change: np.ndarray  # [N, A]
  contact: np.ndarray  # [N, F] bool
  foot_height: np.ndarray  # [N, F] above the lowest foot in m
  gait_height: np.ndarray  # [N, F] height that the gait requires in m
  foot_velocity: np.ndarray  # [N, F, 3] in m/s
  fallen: np.ndarray  # [N] bool


def terms(motion: Motion, command: np.ndarray, step_height: float) -> dict[str, np.ndarray]:
  """Returns the reward terms without weights, each [N], by name.

  Args:
    motion: Movement of the robots.
    command: Commanded velocities, [N, 3]: forward and left in m/s, turning in
      rad/s.
    step_height: Height of a foot during a step in m.
  """
  moves = np.abs(command).sum(1) > 0
  foot_error = (motion.foot_height - motion.gait_height) / step_height
  foot_speed = np.square(motion.foot_velocity[..., :2]).sum(-1)
  return {
    "tracking_linear": np.exp(
      -np.linalg.norm(motion.linear[:, :2] - command[:, :2], axis=1) / _TRACKING_WIDTH
    ),
    "tracking_angular": np.exp(-np.abs(motion.angular[:, 2] - command[:, 2]) / _TRACKING_WIDTH),
    "gait": np.exp(-_GAIT_FACTOR * np.square(foot_error).sum(1)),
    "pose": np.exp(-np.square(motion.joints).mean(1) / _POSE_WIDTH),
    "vertical_speed": np.square(motion.linear[:, 2]),
    "roll_pitch_speed": np.square(motion.angular[:, :2]).sum(1),
    "tilt": np.square(motion.up[:, :2]).sum(1),
    "slip": (motion.contact * foot_speed).sum(1),
    "torque": motion.torque,
    "power": motion.power,
    "action_rate": np.square(motion.action_change).sum(1),
    "stand_still": ~moves * np.abs(motion.joints).mean(1),
    "joint_limits": motion.beyond_limits,
  }


def total(parts: dict[str, np.ndarray]) -> np.ndarray:
  """Returns the reward per second, [N].

  Costs reduce the share of the other terms that a robot receives, as in
  Margolis and Agrawal (2022). If costs were added, a robot that makes mistakes
  would earn most if it fell early.

  Args:
    parts: Terms times their weights, each [N], by name.
  """
  values = np.array(list(parts.values()))
  earned, costs = np.maximum(values, 0).sum(0), np.minimum(values, 0).sum(0)
  return earned * np.exp(_COST_FACTOR * costs)
