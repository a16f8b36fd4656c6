"""Vectorized steps of Gymnasium's MuJoCo tasks.

After each simulated step, Gymnasium computes observation, reward and info of
one environment in Python. This module computes the observations, rewards and
infos of all environments together, in a fraction of the time. The formulas and
their order of operations are copied from Gymnasium's v5 tasks, so the results
are bit-equal to Gymnasium's.

The environments are simulated in one `MjData`, which stays in the CPU cache.
MuJoCo's steps depend only on model and integration state, so the environments
take turns by loading and storing their states. A step of HalfCheetah takes 28
instead of 37 us if one process has 256 environments.
"""

import collections
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np


class TaskStep(NamedTuple):
  """Results of one step of N environments."""

  observ: np.ndarray  # [N, ...], of the type that `spaces.dtype` returns.
  reward: np.ndarray  # [N]
  terminated: np.ndarray  # [N]
  info: Callable[[int], dict[str, Any]]  # Maps a row of the arrays to an info.
  truncated: np.ndarray | bool = False  # [N], apart from time limits.


class VectorizedMujocoTask:
  """Steps N environments of one task; subclasses contain its formulas.

  The reward is a sum of named parts, such as "reward_forward". Time limits and
  other wrappers are not applied.

  Args:
    envs: N environments without wrappers, with equal settings.
    share_models: Whether environments with equal models are simulated with the
      same `MjModel`. False if the models change between episodes.
  """

  # The control cost is computed from actions of this type.
  _control_type: Any = np.float32
  _num_axes = 1  # Number of axes of the velocity.
  # Fields of `MjData` that the formulas read besides the state.
  _fields: tuple[str, ...] = ()
  # Fields of `MjModel` that the formulas read.
  _model_fields: tuple[str, ...] = ()
  # Observed fields, each with the index of its first observed row.
  _observed_fields: tuple[tuple[str, int], ...] = ()

  def __init__(self, envs: Sequence[Any], share_models: bool = True) -> None:
    import mujoco  # Imported here because other tasks run without MuJoCo.

    self._set_state, self._get_state = mujoco.mj_setState, mujoco.mj_getState
    self._step = mujoco.mj_step
    self._compute_contact_forces = mujoco.mj_rnePostConstraint
    self._envs = list(envs)
    self._share_models = share_models
    self._model, state = envs[0].model, mujoco.mjtState
    self._state_type = int(state.mjSTATE_INTEGRATION)  # All inputs of `mj_step`.
    # States before and after the latest step, [N, state size].
    self._before, self._state = np.zeros(
      (2, len(envs), mujoco.mj_stateSize(self._model, self._state_type))
    )

    def columns(part: Any) -> slice:
      start, size = (
        mujoco.mj_stateSize(self._model, parts)
        for parts in (self._state_type & (int(part) - 1), int(part))
      )
      return slice(start, start + size)

    self._qpos = self._state[:, columns(state.mjSTATE_QPOS)]
    self._qvel = self._state[:, columns(state.mjSTATE_QVEL)]
    self._control = self._before[:, columns(state.mjSTATE_CTRL)]
    self._model_bytes = _model_bytes(self._model)
    self._data = mujoco.MjData(self._model)
    self._views = [getattr(self._data, name) for name in self._fields]
    # Fields of all environments, each of shape [N, ...].
    self._copies = {
      name: np.zeros((len(envs), *getattr(source, name).shape))
      for source, names in ((self._data, self._fields), (self._model, self._model_fields))
      for name in names
    }
    self._has_stepped = np.zeros(len(envs), bool)
    # Arguments of each environment's simulation.
    self._simulations: list[tuple[Any, ...]] = [()] * len(envs)
    self._reward_sums: dict[str, np.ndarray] = collections.defaultdict(lambda: np.zeros(len(envs)))
    self._position = np.zeros((len(envs), self._num_axes))
    for index, env in enumerate(envs):
      self.replace(index, env)

  def replace(self, index: int, env: Any) -> None:
    """Replaces an environment.

    Args:
      index: Index of the environment.
      env: New environment without wrappers.
    """
    self._envs[index] = env
    model = env.model
    # Equal models are shared, because the caches hold one model, but not many.
    if self._share_models and np.array_equal(_model_bytes(model), self._model_bytes):
      model = self._model
    states = self._before[index], self._state[index]
    self._simulations[index] = model, self._data, *states, env.frame_skip
    self.begin_episode(index, {})

  def begin_episode(self, index: int, reward_sums: dict[str, float]) -> None:
    """Reads the state of an environment after a reset or a replay.

    Args:
      index: Index of the environment.
      reward_sums: Sum of each reward part over the episode so far, by name.
    """
    data = self._envs[index].data
    self._has_stepped[index] = False
    self._get_state(self._envs[index].model, data, self._state[index], self._state_type)
    for name in self._fields:
      self._copies[name][index] = getattr(data, name)
    for name in self._model_fields:
      self._copies[name][index] = getattr(self._envs[index].model, name)
    self._position[index] = self._positions([index])[0]
    for name in [*self._reward_sums, *reward_sums]:
      self._reward_sums[name][index] = reward_sums.get(name, 0.0)

  def set_actions(self, indices: Any, actions: np.ndarray) -> None:
    """Sets the actions of the next steps.

    Args:
      indices: Indices of the environments that will be simulated, or a slice.
      actions: Actions in the action space, of shape [number of indices, A].
    """
    self._before[indices] = self._state[indices]
    self._control[indices] = actions
    self._has_stepped[indices] = True

  def simulate(self, index: int) -> None:
    """Simulates one step of one environment.

    Args:
      index: Index of the environment.
    """
    model, data, before, after, frame_skip = self._simulations[index]
    self._set_state(model, data, before, self._state_type)
    self._step(model, data, frame_skip)
    if "cfrc_ext" in self._fields:
      self._compute_contact_forces(model, data)
    for name, view in zip(self._fields, self._views, strict=True):
      self._copies[name][index] = view
    self._get_state(model, data, after, self._state_type)

  def update_env(self, index: int) -> None:
    """Repeats the latest step in the `MjData` of an environment.

    The environment then has the data that its own `step` would have left.

    Args:
      index: Index of the environment.
    """
    if self._has_stepped[index]:
      env = self._envs[index]
      self._set_state(env.model, env.data, self._before[index], self._state_type)
      self._step(env.model, env.data, env.frame_skip)
      self._compute_contact_forces(env.model, env.data)

  def compute_step(self, indices: Any, actions: np.ndarray) -> TaskStep:
    """Computes the results of a step after `simulate`.

    Args:
      indices: Indices of the simulated environments, in increasing order, or a
        slice.
      actions: Actions of these environments, of shape [number of indices, A].
    """
    env = self._envs[0]  # All environments have the same settings.
    position = self._positions(indices)
    velocity = (position - self._position[indices]) / env.dt
    self._position[indices] = position
    qpos, qvel = self._qpos[indices], self._qvel[indices]
    excludes_position = env._exclude_current_positions_from_observation
    observ = [qpos[:, self._num_axes if excludes_position else 0 :], self._observed(qvel)]
    reward = env._forward_reward_weight * velocity[:, 0]
    cost = env._ctrl_cost_weight * _sum_of_squares(actions.astype(self._control_type))
    parts = {"reward_forward": reward, "reward_ctrl": -cost}
    terminated = np.zeros(len(qpos), bool)
    if (healthy := self._healthy(qpos, qvel)) is not None:
      parts["reward_survive"] = healthy * env._healthy_reward
      reward = reward + parts["reward_survive"]
      terminated = ~healthy & env._terminate_when_unhealthy
    cost = cost + self._add_contact(indices, observ, parts)
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

  def _positions(self, indices: Any) -> np.ndarray:
    """Returns the positions from which velocities are computed.

    Returns:
      Array of shape [number of indices, axes].
    """
    return self._qpos[indices, :1]

  def _observed(self, qvel: np.ndarray) -> np.ndarray:
    """Returns observed velocities."""
    return qvel

  def _healthy(self, qpos: np.ndarray, qvel: np.ndarray) -> np.ndarray | None:
    """Returns a bool array, [len(qpos)], that is true for healthy robots.

    Returns None if the task does not define healthy states.
    """
    return None

  def _add_contact(
    self, indices: Any, observ: list[np.ndarray], parts: dict[str, np.ndarray]
  ) -> np.ndarray | float:
    """Adds observed contacts to `observ`, and their cost to `parts`.

    Returns:
      Contact costs, of shape [number of indices]; 0 if the task has none.
    """
    return 0.0

  def _extra_info(self, qpos: np.ndarray, velocity: np.ndarray) -> dict[str, Any]:
    """Returns the task-specific entries of one environment's info."""
    return {}


class _HalfCheetah(VectorizedMujocoTask):
  """Rewards forward velocity and never terminates."""


class _Walker2d(VectorizedMujocoTask):
  """Terminates if height or angle of the torso leaves its healthy range."""

  def _observed(self, qvel: np.ndarray) -> np.ndarray:
    return np.clip(qvel, -10, 10)

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

  _num_axes = 2
  _fields: tuple[str, ...] = ("xpos", "cfrc_ext")
  _observed_fields: tuple[tuple[str, int], ...] = (("cfrc_ext", 1),)

  def _positions(self, indices: Any) -> np.ndarray:
    main = self._data.body(self._envs[0]._main_body).id
    return self._copies["xpos"][indices, main, :2]

  def _healthy(self, qpos: np.ndarray, qvel: np.ndarray) -> np.ndarray:
    low, high = self._envs[0]._healthy_z_range
    z = qpos[:, 2]
    return np.isfinite(qpos).all(1) & np.isfinite(qvel).all(1) & (low <= z) & (z <= high)

  def _add_contact(
    self, indices: Any, observ: list[np.ndarray], parts: dict[str, np.ndarray]
  ) -> np.ndarray:
    forces, cost = self._contact(indices)
    parts["reward_contact"] = -cost
    for name, first_row in self._observed_fields:
      if getattr(self._envs[0], f"_include_{name}_in_observation"):
        field = forces if name == "cfrc_ext" else self._copies[name][indices]
        observ.append(field[:, first_row:].reshape(len(field), -1))
    return cost

  def _contact(self, indices: Any) -> tuple[np.ndarray, np.ndarray]:
    """Returns contact forces and contact costs of some environments.

    Returns:
      Arrays of shape [number of indices, bodies, 6] and [number of indices].
    """
    env = self._envs[0]
    forces = np.clip(self._copies["cfrc_ext"][indices], *env._contact_force_range)
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
  _model_fields = ("body_mass",)
  _fields = ("xipos", "cinert", "cvel", "qfrc_actuator", "cfrc_ext")
  _observed_fields = (("cinert", 1), ("cvel", 1), ("qfrc_actuator", 6), ("cfrc_ext", 1))

  def _positions(self, indices: Any) -> np.ndarray:
    masses = self._copies["body_mass"][indices]
    center = (masses[..., None] * self._copies["xipos"][indices]).sum(1)
    return (center / masses.sum(1, keepdims=True))[:, :2]

  def _healthy(self, qpos: np.ndarray, qvel: np.ndarray) -> np.ndarray:
    return _between(qpos[:, 2], self._envs[0]._healthy_z_range)

  def _contact(self, indices: Any) -> tuple[np.ndarray, np.ndarray]:
    env, forces = self._envs[0], self._copies["cfrc_ext"][indices]
    cost = env._contact_cost_weight * _sum_of_squares(forces)
    return forces, np.clip(cost, *env._contact_cost_range)


def _model_bytes(model: Any) -> np.ndarray:
  """Returns a MuJoCo model as bytes, [num_bytes] uint8."""
  import mujoco

  buffer = np.zeros(mujoco.mj_sizeModel(model), np.uint8)
  mujoco.mj_saveModel(model, None, buffer)
  return buffer


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
