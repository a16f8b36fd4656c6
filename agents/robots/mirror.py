"""Left-right symmetry of robots, derived from their MuJoCo models.

The mirror plane contains the forward and the upward axis of the robot in its
standing pose. A mirror exchanges parts of the robot, such as the left and the
right leg, and changes the signs of some numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from agents import config

_TOLERANCE = 0.01  # m, and cosines of angles between axes; robots are not exact.
_STEPS, _SPEED = 10, 0.1  # Of the simulation that verifies a mirror.
_MAX_DIFFERENCE = 0.1  # After this simulation, as a share of the movement.
# Signs of vectors (forward, left, up), and of axes of rotation.
_VECTOR, _AXIS = np.array([1, -1, 1]), np.array([-1, 1, -1])
_QUATERNION = np.array([1, -1, 1, -1])


class Mirror(NamedTuple):
  """Maps an array to that of the mirrored robot: `sign * array[order]`."""

  order: np.ndarray  # [size] int
  sign: np.ndarray  # [size]

  def __call__(self, array: np.ndarray) -> np.ndarray:
    """Returns mirrored arrays.

    Args:
      array: Array of shape [..., size].
    """
    return self.sign * array[..., self.order]

  @classmethod
  def join(cls, parts: list[Mirror]) -> Mirror:
    """Returns the mirror of concatenated arrays.

    Args:
      parts: Mirror of each array.
    """
    offsets = np.cumsum([0, *(len(part.order) for part in parts)])
    return cls(
      np.concatenate([part.order + offset for part, offset in zip(parts, offsets)]),
      np.concatenate([part.sign for part in parts]),
    )


def signs(values: Any) -> Mirror:
  """Returns a mirror that changes only signs.

  Args:
    values: Sign of each number.
  """
  return Mirror(np.arange(len(values)), np.asarray(values, float))


def grouped(parts: Mirror, values: Any) -> Mirror:
  """Returns the mirror of an array with several numbers for each part.

  Args:
    parts: Mirror of the parts.
    values: Sign of each number of a part.
  """
  size = len(values)
  index = size * np.repeat(parts.order, size) + np.tile(np.arange(size), len(parts.order))
  return Mirror(index, np.tile(np.asarray(values, float), len(parts.order)))


class ModelMirror:
  """Mirrors joints, actuators and bodies of a robot with a free joint.

  Args:
    model: `mujoco.MjModel`.
    qpos: Positions of the joints in a symmetric pose, in which the robot looks
      along the x axis.

  Attributes:
    joints: Mirror of the joints without the free joint.
    actuators: Mirror of the actuators.
    qpos: Mirror of the positions.
    qvel: Mirror of the velocities.

  Raises:
    ConfigError: If a part has no mirror image.
  """

  def __init__(self, model: Any, qpos: np.ndarray) -> None:
    import mujoco

    data = mujoco.MjData(model)
    data.qpos[:] = qpos
    mujoco.mj_forward(model, data)
    slides = model.jnt_type == mujoco.mjtJoint.mjJNT_SLIDE
    hinges = model.jnt_type == mujoco.mjtJoint.mjJNT_HINGE
    if model.jnt_type[0] != mujoco.mjtJoint.mjJNT_FREE or not (slides | hinges)[1:].all():
      raise config.ConfigError(
        "symmetry: the first joint must be free, and all others hinges or slides."
      )
    origin = qpos[:3]
    axes = np.where(slides[:, None], _VECTOR, _AXIS) * data.xaxis

    def is_image(first: int, second: int) -> bool:
      near = _close(_VECTOR * (data.xanchor[first] - origin), data.xanchor[second] - origin)
      return near and abs(axes[first] @ data.xaxis[second]) > 1 - _TOLERANCE

    index = _match(range(1, model.njnt), is_image, lambda joint: model.joint(joint).name)
    sign = np.array([axes[i + 1] @ data.xaxis[j + 1] for i, j in enumerate(index)]).round()
    self.joints = Mirror(index, sign)
    driven = model.actuator_trnid[:, 0] - 1
    actuator_of = {joint: actuator for actuator, joint in enumerate(driven.tolist())}
    self.actuators = Mirror(
      np.array([actuator_of[joint] for joint in index[driven].tolist()]), sign[driven]
    )
    self.qpos = Mirror.join([signs(_VECTOR), signs(_QUATERNION), self.joints])
    self.qvel = Mirror.join([signs(_VECTOR), signs(_AXIS), self.joints])
    self._model, self._data, self._origin = model, data, origin
    self._verify(model, qpos)

  def bodies(self) -> Mirror:
    """Returns the mirror of the bodies without the world.

    Raises:
      ConfigError: If a body has no mirror image.
    """
    positions = self._data.xipos - self._origin

    def is_image(first: int, second: int) -> bool:
      return _close(_VECTOR * positions[first], positions[second])

    images = _match(range(1, self._model.nbody), is_image, lambda body: self._model.body(body).name)
    return Mirror(images, np.ones(len(images)))

  def _verify(self, model: Any, qpos: np.ndarray) -> None:
    """Raises ConfigError unless the model behaves like its mirror image."""
    import mujoco

    rng = np.random.default_rng(0)
    velocity = _SPEED * rng.normal(size=model.nv)
    control = _SPEED * rng.normal(size=model.nu)
    results = []
    for mirrored in (False, True):
      data = mujoco.MjData(model)
      data.qpos[:] = qpos
      mujoco.mj_forward(model, data)
      data.qvel[:] = self.qvel(velocity) if mirrored else velocity
      data.ctrl[:] = self.actuators(control) if mirrored else control
      mujoco.mj_step(model, data, _STEPS)
      results.append(data.qpos.copy())
    movement = np.abs(results[0] - qpos).max()
    difference = np.abs(self.qpos(results[0]) - results[1]).max()
    if not difference <= _MAX_DIFFERENCE * movement:
      raise config.ConfigError(
        f"symmetry: in {_STEPS} steps, the robot moves by up to {movement:.2g} (m or rad), and its "
        f"mirror image differs by {difference:.2g}. The model is not symmetric."
      )


def of_env(env: gymnasium.Env) -> tuple[Mirror, Mirror]:
  """Returns the mirrors of observations and actions of an environment.

  Args:
    env: Ant-v5, or an environment whose method `mirrors` returns the same.

  Returns:
    Mirror of the observation, as a vector of its numbers, and of the action.

  Raises:
    ConfigError: If the symmetry of the environment is unknown, or its model is
      not symmetric.
  """
  robot: Any = env.unwrapped
  if robot is not env and not _only_counts(env):
    raise config.ConfigError(
      "symmetry: wrappers change the observations of the environment; set algorithm.symmetry=false."
    )
  if hasattr(robot, "mirrors"):
    return robot.mirrors()
  if type(robot).__name__ == "AntEnv":
    return _of_ant(robot)
  raise config.ConfigError(
    f"symmetry: the observations of {type(robot).__name__} have no known mirror image. Supported "
    "are Ant-v5 and legged robots, and environments with a method `mirrors`. Otherwise, set "
    "algorithm.symmetry=false."
  )


def _of_ant(robot: Any) -> tuple[Mirror, Mirror]:
  model = ModelMirror(robot.model, robot.init_qpos)
  first = 2 if robot._exclude_current_positions_from_observation else 0
  observ = [Mirror(model.qpos.order[first:] - first, model.qpos.sign[first:]), model.qvel]
  if robot._include_cfrc_ext_in_observation:
    observ.append(grouped(model.bodies(), [*_AXIS, *_VECTOR]))
  return Mirror.join(observ), model.actuators


def _only_counts(env: gymnasium.Env) -> bool:
  """Returns whether the wrappers keep observations and actions unchanged."""
  while isinstance(env, gymnasium.Wrapper):
    if env.observation_space != env.unwrapped.observation_space:
      return False
    env = env.env
  return True


def _match(
  parts: range, is_image: Callable[[int, int], bool], name: Callable[[int], str]
) -> np.ndarray:
  """Returns the index of the mirror image of each part, from 0."""
  images = []
  for part in parts:
    found = [other for other in parts if is_image(part, other)]
    if len(found) != 1:
      raise config.ConfigError(
        f"symmetry: '{name(part)}' of the model has {len(found)} mirror images; it must have one."
      )
    images.append(found[0] - parts.start)
  return np.array(images)


def _close(first: Any, second: Any) -> bool:
  return bool(np.allclose(first, second, atol=_TOLERANCE))
