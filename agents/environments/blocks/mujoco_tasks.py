"""Vectorized steps of Gymnasium's MuJoCo tasks.

After each simulated step, Gymnasium computes observation, reward and info of
one environment in Python. This module computes the observations, rewards and
infos of all environments together, in a fraction of the time. The formulas and
their order of operations are copied from Gymnasium's v5 tasks, so the results
are bit-equal to Gymnasium's.
"""

import collections
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np


class TaskStep(NamedTuple):
  """Results of one step of N environments."""

  observ: np.ndarray  # [N, ...]
  reward: np.ndarray  # [N]
  terminated: np.ndarray  # [N]
  info: Callable[[int], dict[str, Any]]  # Maps a row of the arrays to an info.


class VectorizedMujocoTask:
  """Steps N environments of one task; subclasses contain its formulas.

  The reward is a sum of named parts, such as "reward_forward". Time limits and
  other wrappers are not applied.

  Args:
    envs: N environments without wrappers, with equal settings.
  """

  # The control cost is computed from actions of this type.
  _control_type: Any = np.float32
  _max_speed = np.inf  # Bound of the absolute value of observed velocities.
  # Fields of `MjData` that are observed besides positions and velocities, each
  # with the index of its first observed row.
  _extra_fields: tuple[tuple[str, int], ...] = ()

  def __init__(self, envs: Sequence[Any]) -> None:
    import mujoco  # Imported here because other tasks run without MuJoCo.

    self._mj_step = mujoco.mj_step
    self._mj_contact_forces = mujoco.mj_rnePostConstraint
    self._envs = list(envs)
    self._simulations: dict[int, tuple[Any, Any, np.ndarray, int]] = {}
    for index, env in enumerate(envs):
      self.replace(index, env)
    self._position = self._positions(range(len(envs)))
    self._reward_sums: dict[str, np.ndarray] = collections.defaultdict(lambda: np.zeros(len(envs)))

  def replace(self, index: int, env: Any) -> None:
    """Replaces an environment.

    Args:
      index: Index of the environment.
      env: New environment without wrappers.
    """
    self._envs[index] = env
    # Reading MuJoCo's attributes takes long.
    self._simulations[index] = env.model, env.data, env.data.ctrl, env.frame_skip
    # Arrays of `MjData` by field, cached until an environment is replaced.
    self._fields: dict[str, list[np.ndarray]] = {}

  def begin_episode(self, index: int, reward_sums: dict[str, float]) -> None:
    """Stores position and reward sums of an environment after reset or replay.

    Args:
      index: Index of the environment.
      reward_sums: Sum of each reward part over the episode so far, by name.
    """
    self._position[index] = self._positions([index])[0]
    for name in [*self._reward_sums, *reward_sums]:
      self._reward_sums[name][index] = reward_sums.get(name, 0.0)

  def simulate(self, index: int, action: np.ndarray) -> None:
    """Simulates one step of one environment.

    Args:
      index: Index of the environment.
      action: Action in the environment's action space, of shape [A].
    """
    model, data, control, frame_skip = self._simulations[index]
    control[:] = action
    self._mj_step(model, data, frame_skip)
    self._mj_contact_forces(model, data)

  def compute_step(self, indices: list[int], actions: np.ndarray) -> TaskStep:
    """Computes the results of a step after `simulate`.

    Args:
      indices: Indices of the simulated environments, in increasing order.
      actions: Actions of these environments, of shape [len(indices), A].
    """
    env = self._envs[0]  # All environments have the same settings.
    position = self._positions(indices)
    velocity = (position - self._position[indices]) / env.dt
    self._position[indices] = position
    qpos, qvel = self._gather("qpos", indices), self._gather("qvel", indices)
    excludes_position = env._exclude_current_positions_from_observation
    observ = [
      qpos[:, position.shape[1] if excludes_position else 0 :],
      np.clip(qvel, -self._max_speed, self._max_speed),
    ]
    reward = env._forward_reward_weight * velocity[:, 0]
    cost = env._ctrl_cost_weight * _sum_of_squares(actions.astype(self._control_type))
    parts = {"reward_forward": reward, "reward_ctrl": -cost}
    terminated = np.zeros(len(indices), bool)
    if (healthy := self._healthy(qpos, qvel)) is not None:
      parts["reward_survive"] = healthy * env._healthy_reward
      reward = reward + parts["reward_survive"]
      terminated = ~healthy & env._terminate_when_unhealthy
    if contact := self._contact(indices):
      forces, contact_cost = contact
      parts["reward_contact"] = -contact_cost
      cost = cost + contact_cost
      for name, first_row in self._extra_fields:
        if getattr(env, f"_include_{name}_in_observation"):
          field = forces if name == "cfrc_ext" else self._gather(name, indices)
          observ.append(field[:, first_row:].reshape(len(indices), -1))
    for name, values in parts.items():
      self._reward_sums[name][indices] += values

    def info(row: int) -> dict[str, Any]:
      common = {"x_position": qpos[row, 0], "x_velocity": velocity[row, 0]}
      rewards = {name: values[row] for name, values in parts.items()}
      return {**common, **self._extra_info(qpos[row], velocity[row]), **rewards}

    return TaskStep(np.concatenate(observ, 1), reward - cost, terminated, info)

  def reward_sums(self, index: int) -> dict[str, float]:
    """Returns the sum of each reward part over the episode so far, by name.

    Args:
      index: Index of the environment.
    """
    return {name: float(values[index]) for name, values in self._reward_sums.items()}

  def _gather(self, name: str, indices: Sequence[int]) -> np.ndarray:
    """Returns one field of `MjData` of some environments.

    Returns:
      Array of shape [len(indices), ...].
    """
    if name not in self._fields:
      self._fields[name] = [getattr(env.data, name) for env in self._envs]
    fields = [self._fields[name][index] for index in indices]
    return np.concatenate(fields).reshape(len(fields), *fields[0].shape)

  def _positions(self, indices: Sequence[int]) -> np.ndarray:
    """Returns the positions from which velocities are computed.

    Returns:
      Array of shape [len(indices), 1] with x, or [len(indices), 2] with x, y.
    """
    return self._gather("qpos", indices)[:, :1]

  def _healthy(self, qpos: np.ndarray, qvel: np.ndarray) -> np.ndarray | None:
    """Returns a bool array, [len(qpos)], that is true for healthy robots.

    Returns None if the task does not define healthy states.
    """
    return None

  def _contact(self, indices: Sequence[int]) -> tuple[np.ndarray, np.ndarray] | None:
    """Returns contact forces and contact costs of some environments.

    Returns:
      Arrays of shape [len(indices), bodies, 6] and [len(indices)]; None if the
      task has no contact cost.
    """
    return None

  def _extra_info(self, qpos: np.ndarray, velocity: np.ndarray) -> dict[str, Any]:
    """Returns the task-specific entries of one environment's info."""
    return {}


class _HalfCheetah(VectorizedMujocoTask):
  """Rewards forward velocity and never terminates."""


class _Walker2d(VectorizedMujocoTask):
  """Terminates if height or angle of the torso leaves its healthy range."""

  _max_speed = 10

  def _healthy(self, qpos: np.ndarray, qvel: np.ndarray) -> np.ndarray:
    env, z, angle = self._envs[0], qpos[:, 1], qpos[:, 2]
    return _between(z, env._healthy_z_range) & _between(angle, env._healthy_angle_range)

  def _extra_info(self, qpos: np.ndarray, velocity: np.ndarray) -> dict[str, Any]:
    return {"z_distance_from_origin": qpos[1] - self._envs[0].init_qpos[1]}


class _Hopper(_Walker2d):
  """Like Walker2d; also terminates if another state leaves its range."""

  def _healthy(self, qpos: np.ndarray, qvel: np.ndarray) -> np.ndarray:
    state = np.concatenate((qpos, qvel), 1)[:, 2:]
    in_range = _between(state, self._envs[0]._healthy_state_range).all(1)
    return super()._healthy(qpos, qvel) & in_range


class _Ant(VectorizedMujocoTask):
  """Moves on a plane; contact forces are observed and reduce the reward."""

  _extra_fields: tuple[tuple[str, int], ...] = (("cfrc_ext", 1),)

  def _positions(self, indices: Sequence[int]) -> np.ndarray:
    main = self._envs[0].data.body(self._envs[0]._main_body).id
    return self._gather("xpos", indices)[:, main, :2]

  def _healthy(self, qpos: np.ndarray, qvel: np.ndarray) -> np.ndarray:
    low, high = self._envs[0]._healthy_z_range
    z = qpos[:, 2]
    return np.isfinite(qpos).all(1) & np.isfinite(qvel).all(1) & (low <= z) & (z <= high)

  def _contact(self, indices: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    env = self._envs[0]
    forces = np.clip(self._gather("cfrc_ext", indices), *env._contact_force_range)
    return forces, env._contact_cost_weight * _sum_of_squares(forces)

  def _extra_info(self, qpos: np.ndarray, velocity: np.ndarray) -> dict[str, Any]:
    return {
      "y_position": qpos[1],
      "y_velocity": velocity[1],
      "distance_from_origin": np.linalg.norm(qpos[:2], ord=2),
    }


class _Humanoid(_Ant):
  """Like Ant, but rewards the velocity of the center of mass."""

  _control_type = np.float64
  _extra_fields = (("cinert", 1), ("cvel", 1), ("qfrc_actuator", 6), ("cfrc_ext", 1))

  def _positions(self, indices: Sequence[int]) -> np.ndarray:
    mass_center = sys.modules[type(self._envs[0]).__module__].mass_center
    return np.stack(
      [mass_center(self._envs[index].model, self._envs[index].data) for index in indices]
    )

  def _healthy(self, qpos: np.ndarray, qvel: np.ndarray) -> np.ndarray:
    return _between(qpos[:, 2], self._envs[0]._healthy_z_range)

  def _contact(self, indices: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    env, forces = self._envs[0], self._gather("cfrc_ext", indices)
    cost = env._contact_cost_weight * _sum_of_squares(forces)
    return forces, np.clip(cost, *env._contact_cost_range)


def _sum_of_squares(values: np.ndarray) -> np.ndarray:
  """Returns the sum of squares of each row."""
  return np.square(values.reshape(len(values), -1)).sum(1)


def _between(values: np.ndarray, bounds: tuple[float, float]) -> np.ndarray:
  low, high = bounds
  return (low < values) & (values < high)


# Vectorized tasks by Gymnasium's environment class, written `module:Class`.
TASKS_BY_CLASS: dict[str, type[VectorizedMujocoTask]] = {
  "gymnasium.envs.mujoco.half_cheetah_v5:HalfCheetahEnv": _HalfCheetah,
  "gymnasium.envs.mujoco.walker2d_v5:Walker2dEnv": _Walker2d,
  "gymnasium.envs.mujoco.hopper_v5:HopperEnv": _Hopper,
  "gymnasium.envs.mujoco.ant_v5:AntEnv": _Ant,
  "gymnasium.envs.mujoco.humanoid_v5:HumanoidEnv": _Humanoid,
}
