"""Reward terms equal loops over robots, joints and feet."""

import math

import numpy as np
import pytest

from agents.robots import rewards

_ROBOTS, _JOINTS, _FEET = 5, 3, 2
_STEP_HEIGHT = 0.1


@pytest.fixture
def motion():
  rng = np.random.default_rng(0)

  def draw(*shape):
    return rng.normal(size=(_ROBOTS, *shape))

  return rewards.Motion(
    linear=draw(3),
    angular=draw(3),
    up=draw(3),
    joints=draw(_JOINTS),
    joint_speeds=draw(_JOINTS),
    beyond_limits=abs(draw()),
    torque=abs(draw()),
    power=abs(draw()),
    action_change=draw(_JOINTS),
    contact=draw(_FEET) > 0,
    foot_height=abs(draw(_FEET)) / 10,
    gait_height=abs(draw(_FEET)) / 10,
    foot_velocity=draw(_FEET, 3),
    fallen=draw() > 0,
  )


def test_terms_equal_naive_formulas(motion):
  command = np.random.default_rng(1).normal(size=(_ROBOTS, 3))
  command[0] = 0
  terms = rewards.terms(motion, command, _STEP_HEIGHT)
  assert terms.keys() == rewards.WEIGHTS.keys()
  for row in range(_ROBOTS):
    for name, expected in _naive_terms(motion, row, command[row]).items():
      assert terms[name][row] == pytest.approx(expected), name


def _naive_terms(motion, row, command):
  x, y, z = motion.linear[row]
  roll, pitch, yaw = motion.angular[row]
  moves = any(command)
  feet = range(_FEET)
  error = [
    (motion.foot_height[row, foot] - motion.gait_height[row, foot]) / _STEP_HEIGHT for foot in feet
  ]
  return {
    "tracking_linear": math.exp(-math.hypot(x - command[0], y - command[1]) / 0.5),
    "tracking_angular": math.exp(-abs(yaw - command[2]) / 0.5),
    "gait": math.exp(-4 * sum(each**2 for each in error)),
    "pose": math.exp(-sum(angle**2 for angle in motion.joints[row]) / _JOINTS / 0.1),
    "vertical_speed": z**2,
    "roll_pitch_speed": roll**2 + pitch**2,
    "tilt": motion.up[row, 0] ** 2 + motion.up[row, 1] ** 2,
    "slip": sum(
      math.hypot(*motion.foot_velocity[row, foot, :2]) ** 2
      for foot in feet
      if motion.contact[row, foot]
    ),
    "torque": motion.torque[row],
    "power": motion.power[row],
    "action_rate": sum(change**2 for change in motion.action_change[row]),
    "stand_still": (not moves) * sum(abs(angle) for angle in motion.joints[row]) / _JOINTS,
    "joint_limits": motion.beyond_limits[row],
  }


def test_costs_reduce_the_reward_but_never_below_zero():
  parts = {"earned": np.array([3.0, 3.0]), "cost": np.array([0.0, -4.0])}
  np.testing.assert_allclose(rewards.total(parts), [3.0, 3 * math.exp(-0.3 * 4)])
