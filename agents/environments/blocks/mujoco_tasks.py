"""Gymnasium's MuJoCo robots, all of a block at a time, to the same bits.

Part of a robot's step is what Python computes around the simulator:
observation, reward, info. For all robots at once that takes next to nothing,
see docs/performance.md. The formulas are those of Gymnasium's v5 tasks, in the
same order of operations.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

import numpy as np

from agents.environments.making import wrappers

Info = dict[str, Any]


class Stepped(NamedTuple):
  """What came of a step of n robots."""

  observ: np.ndarray  # [n, ...]
  reward: np.ndarray  # [n]
  terminated: np.ndarray  # [n]
  parts: dict[str, np.ndarray]  # Of the reward, as infos name them, each [n].
  rest: Callable[[int], Info]  # All else in the info of one of the n.

  def numbers(self, row: int) -> dict[str, bool | int | float]:
    """Return the numbers in the info of one of the n."""
    parts = {name: values[row] for name, values in self.parts.items()}
    return wrappers.numbers({**self.rest(row), **parts})


class Robots:
  """Steps robots of one kind; subclasses know what a task makes of a step.

  What ends episodes from outside, such as a time limit, is not considered.

  Args:
    robots: Environments without wrappers, all with the same settings.
  """

  def __init__(self, robots: Sequence[Any]):
    import mujoco  # Which takes time, and is there only for who has robots.
    self._simulate = mujoco.mj_step, mujoco.mj_rnePostConstraint
    self._robots = list(robots)
    self._simulations = [_simulation(each) for each in robots]
    self._fields: dict[str, list[np.ndarray]] = {}
    self._position = self._positions(slice(None))
    self._sums: dict[str, np.ndarray] = {}

  def replace(self, index: int, robot: Any):
    """Take another robot for one of them."""
    self._robots[index] = robot
    self._simulations[index] = _simulation(robot)
    self._fields = {}

  def begin(self, index: int, sums: dict[str, float] | None = None):
    """Go on from what a robot's simulation was set to.

    Args:
      index: Of the robot.
      sums: Of the parts of its reward so far.
    """
    self._position[index] = self._positions([index])[0]
    for values in self._sums.values():
      values[index] = 0.0
    for name, value in (sums or {}).items():
      self._sum(name)[index] = value

  def simulate(self, index: int, action: np.ndarray):
    """Do the part of a robot's step that takes the time."""
    step, forces = self._simulate
    model, data, control, frame_skip = self._simulations[index]
    control[:] = action
    step(model, data, frame_skip)
    forces(model, data)

  def outcome(self, chosen: list[int], actions: np.ndarray) -> Stepped:
    """Return what came of the simulations of some robots.

    Args:
      chosen: Their indices, in order.
      actions: Those that were simulated, [len(chosen), ...].
    """
    rows = slice(None) if len(chosen) == len(self._robots) else chosen
    after = self._positions(rows)
    velocity = (after - self._position[rows]) / self._like.dt
    self._position[rows] = after
    stepped = self._outcome(rows, actions, after, velocity)
    for name, values in stepped.parts.items():
      self._sum(name)[rows] += values
    return stepped

  @property
  def _like(self) -> Any:
    """One of them, for what is the same for all."""
    return self._robots[0]

  def sums(self, index: int) -> dict[str, float]:
    """Return the sums of the parts of a robot's reward."""
    return {name: float(values[index]) for name, values in self._sums.items()}

  def _sum(self, name: str) -> np.ndarray:
    return self._sums.setdefault(name, np.zeros(len(self._robots)))

  def _gather(self, name: str, rows: slice | list[int]) -> np.ndarray:
    """Return a field of the simulators' data, [n, ...]."""
    if name not in self._fields:
      self._fields[name] = [getattr(each.data, name) for each in self._robots]
    fields = self._fields[name]
    if not isinstance(rows, slice):
      fields = [fields[row] for row in rows]
    return np.concatenate(fields).reshape(len(fields), *fields[0].shape)

  def _positions(self, rows: slice | list[int]) -> np.ndarray:
    """Return the positions whose change is the velocity, [n] or [n, 2]."""
    return self._gather("qpos", rows)[:, 0]

  def _outcome(self, rows: slice | list[int], actions: np.ndarray,
               position: np.ndarray, velocity: np.ndarray) -> Stepped:
    raise NotImplementedError

  def _state(self, rows: slice | list[int], hidden: int
             ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return qpos, what is seen of it, and qvel."""
    qpos = self._gather("qpos", rows)
    hide = self._like._exclude_current_positions_from_observation
    return qpos, qpos[:, hidden if hide else 0:], self._gather("qvel", rows)

  def _terminated(self, healthy: np.ndarray) -> np.ndarray:
    return ~healthy & self._like._terminate_when_unhealthy


class _HalfCheetah(Robots):

  def _outcome(self, rows, actions, position, velocity):
    _, seen, qvel = self._state(rows, 1)
    forward = self._like._forward_reward_weight * velocity
    cost = self._like._ctrl_cost_weight * _squares(actions)
    return Stepped(
        np.concatenate((seen, qvel), 1), forward - cost,
        np.zeros(len(seen), bool),
        {"reward_forward": forward, "reward_ctrl": -cost},
        lambda row: {"x_position": position[row], "x_velocity": velocity[row]})


class _Walker2d(Robots):

  def _outcome(self, rows, actions, position, velocity):
    like = self._like
    qpos, seen, qvel = self._state(rows, 1)
    healthy = self._healthy(qpos, qvel)
    forward = like._forward_reward_weight * velocity
    survive = healthy * like._healthy_reward
    cost = like._ctrl_cost_weight * _squares(actions)
    return Stepped(
        np.concatenate((seen, np.clip(qvel, -10, 10)), 1),
        forward + survive - cost, self._terminated(healthy),
        {"reward_forward": forward, "reward_ctrl": -cost,
         "reward_survive": survive},
        lambda row: {
            "x_position": position[row],
            "z_distance_from_origin": qpos[row, 1] - like.init_qpos[1],
            "x_velocity": velocity[row]})

  def _healthy(self, qpos: np.ndarray, qvel: np.ndarray) -> np.ndarray:
    return (_between(qpos[:, 1], self._like._healthy_z_range)
            & _between(qpos[:, 2], self._like._healthy_angle_range))


class _Hopper(_Walker2d):

  def _healthy(self, qpos, qvel):
    state = np.concatenate((qpos, qvel), 1)[:, 2:]
    return super()._healthy(qpos, qvel) & (
        _between(state, self._like._healthy_state_range).all(1))


class _Ant(Robots):

  def _positions(self, rows):
    main = self._like.data.body(self._like._main_body).id
    return self._gather("xpos", rows)[:, main, :2]

  def _outcome(self, rows, actions, position, velocity):
    like = self._like
    qpos, seen, qvel = self._state(rows, 2)
    low, high = like._healthy_z_range
    z = qpos[:, 2]
    healthy = (np.isfinite(qpos).all(1) & np.isfinite(qvel).all(1)
               & (low <= z) & (z <= high))
    forces = np.clip(self._gather("cfrc_ext", rows), *like._contact_force_range)
    forward = velocity[:, 0] * like._forward_reward_weight
    survive = healthy * like._healthy_reward
    cost = like._ctrl_cost_weight * _squares(actions)
    contact = like._contact_cost_weight * _squares(forces)
    observ = [seen, qvel]
    if like._include_cfrc_ext_in_observation:
      observ.append(_flat(forces[:, 1:]))
    return Stepped(
        np.concatenate(observ, 1), forward + survive - (cost + contact),
        self._terminated(healthy),
        {"reward_forward": forward, "reward_ctrl": -cost,
         "reward_contact": -contact, "reward_survive": survive},
        lambda row: _on_plane(qpos[row], velocity[row]))


class _Humanoid(Robots):

  def _positions(self, rows):
    robots = self._robots[rows] if isinstance(rows, slice) else [
        self._robots[row] for row in rows]
    center = sys.modules[type(self._like).__module__].mass_center
    return np.stack([center(each.model, each.data) for each in robots])

  def _outcome(self, rows, actions, position, velocity):
    like = self._like
    qpos, seen, qvel = self._state(rows, 2)
    healthy = _between(qpos[:, 2], like._healthy_z_range)
    forces = self._gather("cfrc_ext", rows)
    forward = like._forward_reward_weight * velocity[:, 0]
    survive = healthy * like._healthy_reward
    cost = like._ctrl_cost_weight * _squares(self._gather("ctrl", rows))
    contact = np.clip(
        like._contact_cost_weight * _squares(forces), *like._contact_cost_range)
    observ = [seen, qvel]
    if like._include_cinert_in_observation is True:
      observ.append(_flat(self._gather("cinert", rows)[:, 1:]))
    if like._include_cvel_in_observation is True:
      observ.append(_flat(self._gather("cvel", rows)[:, 1:]))
    if like._include_qfrc_actuator_in_observation is True:
      observ.append(self._gather("qfrc_actuator", rows)[:, 6:])
    if like._include_cfrc_ext_in_observation is True:
      observ.append(_flat(forces[:, 1:]))
    return Stepped(
        np.concatenate(observ, 1), forward + survive - (cost + contact),
        self._terminated(healthy),
        {"reward_survive": survive, "reward_forward": forward,
         "reward_ctrl": -cost, "reward_contact": -contact},
        lambda row: _on_plane(qpos[row], velocity[row]))


def _simulation(robot: Any) -> tuple[Any, Any, np.ndarray, int]:
  return robot.model, robot.data, robot.data.ctrl, robot.frame_skip


def _squares(values: np.ndarray) -> np.ndarray:
  """Return the sum of squares of each row."""
  return np.square(_flat(values)).sum(1)


def _flat(values: np.ndarray) -> np.ndarray:
  return values.reshape(len(values), -1)


def _between(values: np.ndarray, bounds: tuple[float, float]) -> np.ndarray:
  low, high = bounds
  return (low < values) & (values < high)


def _on_plane(qpos: np.ndarray, velocity: np.ndarray) -> Info:
  return {"x_position": qpos[0], "y_position": qpos[1],
          "distance_from_origin": np.linalg.norm(qpos[:2], ord=2),
          "x_velocity": velocity[0], "y_velocity": velocity[1]}


# By the names of Gymnasium's classes.
KINDS: dict[str, type[Robots]] = {
    "gymnasium.envs.mujoco.half_cheetah_v5:HalfCheetahEnv": _HalfCheetah,
    "gymnasium.envs.mujoco.walker2d_v5:Walker2dEnv": _Walker2d,
    "gymnasium.envs.mujoco.hopper_v5:HopperEnv": _Hopper,
    "gymnasium.envs.mujoco.ant_v5:AntEnv": _Ant,
    "gymnasium.envs.mujoco.humanoid_v5:HumanoidEnv": _Humanoid,
}
