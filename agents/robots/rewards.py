"""Reward terms of legged robots, for N robots at once.

Terms and weights come from the Go1 task of MuJoCo Playground (Zakka et al.
2025). There are three changes for robots of any size. Torque and power are
divided by the robot's weight. The term for the pose uses the mean over the
joints. The height of a foot is measured from the lowest foot, so that terms
have the same meaning on rough ground.
"""

import dataclasses

import numpy as np

# Weight of each term per second.
WEIGHTS = {
  "tracking_linear": 1.5,
  "tracking_angular": 0.75,
  "vertical_speed": -0.5,
  "roll_pitch_speed": -0.05,
  "tilt": -5.0,
  "pose": 0.5,
  "torque": -0.025,
  "power": -0.125,
  "action_rate": -0.01,
  "clearance": -1.0,
  "swing_height": -0.2,
  "slip": -0.1,
  "air_time": 0.1,
  "gait": 0.0,
  "stand_still": -2.0,
  "joint_limits": -1.0,
  "alive": 0.0,
  "fall": -1.0,
}
# Squared errors in m²/s² and rad²/s² at which the two parts of a reward have
# fallen to 1/e. One rewards precision, the other guides a robot that stands.
_TRACKING_WIDTHS = 0.25, 2.0
_POSE_WIDTH = 0.1  # rad²
_GAIT_WIDTH = 0.01  # m²
_MIN_AIR_TIME = 0.1  # s
_COST_FACTOR = 0.5


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
  landed: np.ndarray  # [N, F] bool, whether a step has ended
  air_time: np.ndarray  # [N, F] duration of a step so far in s
  foot_height: np.ndarray  # [N, F] above the lowest foot in m
  peak_height: np.ndarray  # [N, F] largest height of a step so far in m
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
  foot_speed = np.square(motion.foot_velocity[..., :2]).sum(-1)
  return {
    "tracking_linear": _tracking(np.square(motion.linear[:, :2] - command[:, :2]).sum(1)),
    "tracking_angular": _tracking(np.square(motion.angular[:, 2] - command[:, 2])),
    "vertical_speed": np.square(motion.linear[:, 2]),
    "roll_pitch_speed": np.square(motion.angular[:, :2]).sum(1),
    "tilt": np.square(motion.up[:, :2]).sum(1),
    "pose": np.exp(-np.square(motion.joints).mean(1) / _POSE_WIDTH),
    "torque": motion.torque,
    "power": motion.power,
    "action_rate": np.square(motion.action_change).sum(1),
    "clearance": (np.sqrt(foot_speed) * np.abs(motion.foot_height - step_height)).sum(1),
    "swing_height": moves
    * (motion.landed * np.square(motion.peak_height / step_height - 1)).sum(1),
    "slip": moves * (motion.contact * foot_speed).sum(1),
    "air_time": moves * (motion.landed * (motion.air_time - _MIN_AIR_TIME)).sum(1),
    "gait": np.exp(-np.square(motion.foot_height - motion.gait_height).sum(1) / _GAIT_WIDTH),
    "stand_still": ~moves * np.abs(motion.joints).mean(1),
    "joint_limits": motion.beyond_limits,
    "alive": np.ones(len(command)),
    "fall": motion.fallen.astype(float),
  }


def _tracking(squared_error: np.ndarray) -> np.ndarray:
  """Returns the reward for a squared error of a velocity, from 0 to 1."""
  return np.mean([np.exp(-squared_error / width) for width in _TRACKING_WIDTHS], axis=0)


def total(parts: dict[str, np.ndarray], weights: dict[str, float]) -> np.ndarray:
  """Returns the reward per second, [N], which is never negative.

  Costs reduce the share of the other terms that a robot receives, as in
  Margolis and Agrawal (2022). If costs were added, a robot that makes mistakes
  would earn most if it fell early.

  Args:
    parts: Terms times their weights, each [N], by name.
    weights: Weight of each term; negative for costs.
  """
  earned = np.sum([values for name, values in parts.items() if weights[name] > 0], axis=0)
  costs = np.sum([values for name, values in parts.items() if weights[name] < 0], axis=0)
  return np.maximum(earned, 0) * np.exp(_COST_FACTOR * costs)
