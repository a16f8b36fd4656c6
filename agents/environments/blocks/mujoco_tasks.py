"""Gymnasium's MuJoCo tasks, vectorized over environments, with the same bits.

In a step of these tasks, Python computes observation, reward and info after
the simulation. Computing them for all environments at once takes a fraction of
the time. The formulas are those of Gymnasium's v5 tasks, in the same order of
operations.
"""

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from agents.environments.data import episodes

Info = dict[str, Any]


class TaskStep(NamedTuple):
  """Results of one step of N environments."""

  observ: np.ndarray  # [N, ...]
  reward: np.ndarray  # [N]
  terminated: np.ndarray  # [N]
  reward_parts: dict[str, np.ndarray]  # By their names in infos, each [N].
  other_info: Callable[[int], Info]  # From a row, the rest of its info.

  def numbers(self, row: int) -> dict[str, bool | int | float]:
    """Return the numbers in the info of one environment.

    Args:
      row: Index in [0, N).
    """
    parts = {name: values[row] for name, values in self.reward_parts.items()}
    return episodes.numbers({**self.other_info(row), **parts})


class VectorizedMujocoTask:
  """Steps environments of one task; subclasses contain the task's formulas.

  Time limits and other wrappers are not applied.

  Args:
    envs: Environments without wrappers, with equal settings.
  """

  def __init__(self, envs: Sequence[Any]):
    import mujoco  # Imported here because other tasks run without MuJoCo.
    self._mj_step = mujoco.mj_step
    self._mj_contact_forces = mujoco.mj_rnePostConstraint
    self._envs = list(envs)
    self._env = envs[0]  # For settings that are equal in all.
    self._simulations = [_simulation(env) for env in envs]
    self._fields: dict[str, list[np.ndarray]] = {}
    self._position = self._positions(slice(None))
    self._reward_sums: dict[str, np.ndarray] = {}

  def replace(self, index: int, env: Any):
    """Replace an environment.

    Args:
      index: Index of the environment.
      env: New environment without wrappers.
    """
    self._envs[index] = env
    self._env = self._envs[0]
    self._simulations[index] = _simulation(env)
    self._fields = {}

  def begin_episode(self, index: int,
                    reward_sums: dict[str, float] | None = None):
    """Continue from the present state of an environment's simulation.

    Args:
      index: Index of the environment.
      reward_sums: Sums of the parts of its reward so far, by name.
    """
    self._position[index] = self._positions([index])[0]
    for values in self._reward_sums.values():
      values[index] = 0.0
    for name, value in (reward_sums or {}).items():
      self._sums_of(name)[index] = value

  def simulate(self, index: int, action: np.ndarray):
    """Advance the simulation of one environment by a step.

    Args:
      index: Index of the environment.
      action: Action of the environment's space, of shape [A].
    """
    model, data, control, frame_skip = self._simulations[index]
    control[:] = action
    self._mj_step(model, data, frame_skip)
    self._mj_contact_forces(model, data)

  def compute_step(self, indices: list[int], actions: np.ndarray) -> TaskStep:
    """Return the results of a step after the simulations.

    Args:
      indices: Simulated environments, in increasing order.
      actions: Actions of these environments, [len(indices), A].
    """
    rows = slice(None) if len(indices) == len(self._envs) else indices
    position = self._positions(rows)
    velocity = (position - self._position[rows]) / self._env.dt
    self._position[rows] = position
    step = self._compute_step(rows, actions, position, velocity)
    for name, values in step.reward_parts.items():
      self._sums_of(name)[rows] += values
    return step

  def reward_sums(self, index: int) -> dict[str, float]:
    """Return the sums of the parts of an environment's reward, by name.

    Args:
      index: Index of the environment.
    """
    return {name: float(values[index])
            for name, values in self._reward_sums.items()}

  def _sums_of(self, name: str) -> np.ndarray:
    return self._reward_sums.setdefault(name, np.zeros(len(self._envs)))

  def _gather(self, name: str, rows: slice | list[int]) -> np.ndarray:
    """Return a field of the simulations' data, [N, ...]."""
    if name not in self._fields:
      self._fields[name] = [getattr(env.data, name) for env in self._envs]
    fields = self._fields[name]
    if not isinstance(rows, slice):
      fields = [fields[row] for row in rows]
    return np.concatenate(fields).reshape(len(fields), *fields[0].shape)

  def _positions(self, rows: slice | list[int]) -> np.ndarray:
    """Return the positions for the velocity of the reward, [N] or [N, 2]."""
    return self._gather("qpos", rows)[:, 0]

  def _compute_step(self, rows: slice | list[int], actions: np.ndarray,
                    position: np.ndarray, velocity: np.ndarray) -> TaskStep:
    raise NotImplementedError

  def _state(self, rows: slice | list[int], num_hidden: int
             ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return qpos, its observed part, and qvel."""
    qpos = self._gather("qpos", rows)
    hides = self._env._exclude_current_positions_from_observation
    return (qpos, qpos[:, num_hidden if hides else 0:],
            self._gather("qvel", rows))

  def _terminated(self, healthy: np.ndarray) -> np.ndarray:
    return ~healthy & self._env._terminate_when_unhealthy


class _HalfCheetah(VectorizedMujocoTask):
  """Rewards speed and never terminates."""

  def _compute_step(self, rows, actions, position, velocity):
    _, observed, qvel = self._state(rows, 1)
    forward = self._env._forward_reward_weight * velocity
    cost = self._env._ctrl_cost_weight * _squares(actions)
    return TaskStep(
        np.concatenate((observed, qvel), 1), forward - cost,
        np.zeros(len(observed), bool),
        {"reward_forward": forward, "reward_ctrl": -cost},
        lambda row: {"x_position": position[row], "x_velocity": velocity[row]})


class _Walker2d(VectorizedMujocoTask):
  """Terminates if height or angle of the torso is unhealthy."""

  def _compute_step(self, rows, actions, position, velocity):
    env = self._env
    qpos, observed, qvel = self._state(rows, 1)
    healthy = self._healthy(qpos, qvel)
    forward = env._forward_reward_weight * velocity
    survive = healthy * env._healthy_reward
    cost = env._ctrl_cost_weight * _squares(actions)
    return TaskStep(
        np.concatenate((observed, np.clip(qvel, -10, 10)), 1),
        forward + survive - cost, self._terminated(healthy),
        {"reward_forward": forward, "reward_ctrl": -cost,
         "reward_survive": survive},
        lambda row: {
            "x_position": position[row],
            "z_distance_from_origin": qpos[row, 1] - env.init_qpos[1],
            "x_velocity": velocity[row]})

  def _healthy(self, qpos: np.ndarray, qvel: np.ndarray) -> np.ndarray:
    return (_between(qpos[:, 1], self._env._healthy_z_range)
            & _between(qpos[:, 2], self._env._healthy_angle_range))


class _Hopper(_Walker2d):
  """Like Walker2d, with bounds for the other states."""

  def _healthy(self, qpos, qvel):
    state = np.concatenate((qpos, qvel), 1)[:, 2:]
    return super()._healthy(qpos, qvel) & (
        _between(state, self._env._healthy_state_range).all(1))


class _Ant(VectorizedMujocoTask):
  """Moves on a plane; contact forces cost reward and are observed."""

  def _positions(self, rows):
    main = self._env.data.body(self._env._main_body).id
    return self._gather("xpos", rows)[:, main, :2]

  def _compute_step(self, rows, actions, position, velocity):
    env = self._env
    qpos, observed, qvel = self._state(rows, 2)
    low, high = env._healthy_z_range
    z = qpos[:, 2]
    healthy = (np.isfinite(qpos).all(1) & np.isfinite(qvel).all(1)
               & (low <= z) & (z <= high))
    forces = np.clip(self._gather("cfrc_ext", rows), *env._contact_force_range)
    forward = velocity[:, 0] * env._forward_reward_weight
    survive = healthy * env._healthy_reward
    cost = env._ctrl_cost_weight * _squares(actions)
    contact = env._contact_cost_weight * _squares(forces)
    observ = [observed, qvel]
    if env._include_cfrc_ext_in_observation:
      observ.append(_flat(forces[:, 1:]))
    return TaskStep(
        np.concatenate(observ, 1), forward + survive - (cost + contact),
        self._terminated(healthy),
        {"reward_forward": forward, "reward_ctrl": -cost,
         "reward_contact": -contact, "reward_survive": survive},
        lambda row: _on_plane(qpos[row], velocity[row]))


class _Humanoid(VectorizedMujocoTask):
  """Like Ant, with the center of mass and more observed fields."""

  def _positions(self, rows):
    envs = self._envs[rows] if isinstance(rows, slice) else [
        self._envs[row] for row in rows]
    center = sys.modules[type(self._env).__module__].mass_center
    return np.stack([center(env.model, env.data) for env in envs])

  def _compute_step(self, rows, actions, position, velocity):
    env = self._env
    qpos, observed, qvel = self._state(rows, 2)
    healthy = _between(qpos[:, 2], env._healthy_z_range)
    forces = self._gather("cfrc_ext", rows)
    forward = env._forward_reward_weight * velocity[:, 0]
    survive = healthy * env._healthy_reward
    cost = env._ctrl_cost_weight * _squares(self._gather("ctrl", rows))
    contact = np.clip(
        env._contact_cost_weight * _squares(forces), *env._contact_cost_range)
    observ = [observed, qvel]
    if env._include_cinert_in_observation is True:
      observ.append(_flat(self._gather("cinert", rows)[:, 1:]))
    if env._include_cvel_in_observation is True:
      observ.append(_flat(self._gather("cvel", rows)[:, 1:]))
    if env._include_qfrc_actuator_in_observation is True:
      observ.append(self._gather("qfrc_actuator", rows)[:, 6:])
    if env._include_cfrc_ext_in_observation is True:
      observ.append(_flat(forces[:, 1:]))
    return TaskStep(
        np.concatenate(observ, 1), forward + survive - (cost + contact),
        self._terminated(healthy),
        {"reward_survive": survive, "reward_forward": forward,
         "reward_ctrl": -cost, "reward_contact": -contact},
        lambda row: _on_plane(qpos[row], velocity[row]))


def _simulation(env: Any) -> tuple[Any, Any, np.ndarray, int]:
  """Return what `simulate` reads; MuJoCo's attributes are slow."""
  return env.model, env.data, env.data.ctrl, env.frame_skip


def _squares(values: np.ndarray) -> np.ndarray:
  """Return the sum of squares of each row."""
  return np.square(values.reshape(len(values), -1)).sum(1)


def _flat(values: np.ndarray) -> np.ndarray:
  return values.reshape(len(values), -1)


def _between(values: np.ndarray, bounds: tuple[float, float]) -> np.ndarray:
  low, high = bounds
  return (low < values) & (values < high)


def _on_plane(qpos: np.ndarray, velocity: np.ndarray) -> Info:
  return {"x_position": qpos[0], "y_position": qpos[1],
          "distance_from_origin": np.linalg.norm(qpos[:2], ord=2),
          "x_velocity": velocity[0], "y_velocity": velocity[1]}


# By module and name of Gymnasium's classes.
TASKS_BY_CLASS: dict[str, type[VectorizedMujocoTask]] = {
    "gymnasium.envs.mujoco.half_cheetah_v5:HalfCheetahEnv": _HalfCheetah,
    "gymnasium.envs.mujoco.walker2d_v5:Walker2dEnv": _Walker2d,
    "gymnasium.envs.mujoco.hopper_v5:HopperEnv": _Hopper,
    "gymnasium.envs.mujoco.ant_v5:AntEnv": _Ant,
    "gymnasium.envs.mujoco.humanoid_v5:HumanoidEnv": _Humanoid,
}
