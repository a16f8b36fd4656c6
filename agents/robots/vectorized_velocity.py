"""Vectorized steps of `VelocityEnv`; see `mujoco_tasks`."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from agents import spaces
from agents.environments.blocks import mujoco_tasks
from agents.robots import velocity_task


class VectorizedVelocity(mujoco_tasks.VectorizedMujocoTask):
  """Steps N robots of one model.

  Args:
    envs: N instances of `VelocityEnv` without wrappers.
    share_models: See `VectorizedMujocoTask`.
  """

  _fields = ("sensordata", "actuator_force")

  def __init__(self, envs: Sequence[Any], share_models: bool = True) -> None:
    self._memory = envs[0].task.memory(len(envs))
    self._observ_type = spaces.dtype(envs[0].observation_space)[0]
    super().__init__(envs, share_models)

  def begin_episode(self, index: int, reward_sums: dict[str, float]) -> None:
    """See `VectorizedMujocoTask.begin_episode`."""
    super().begin_episode(index, reward_sums)
    self._memory[index] = self._envs[index].memory[0]

  def set_actions(self, indices: Any, actions: np.ndarray) -> None:
    """See `VectorizedMujocoTask.set_actions`."""
    task, memory = self._envs[0].task, self._memory[indices]
    super().set_actions(indices, task.targets(memory, actions.astype(np.float64)))

  def update_env(self, index: int) -> None:
    """See `VectorizedMujocoTask.update_env`."""
    super().update_env(index)
    self._envs[index].memory[0] = self._memory[index]

  def compute_step(self, indices: Any, actions: np.ndarray) -> mujoco_tasks.TaskStep:
    """See `VectorizedMujocoTask.compute_step`."""
    # Copies the rows: sums over views of them could have other last bits.
    indices = np.arange(len(self._envs))[indices]
    task, memory = self._envs[0].task, self._memory[indices]
    simulation = velocity_task.Simulation(
      self._qpos[indices],
      self._qvel[indices],
      *(self._copies[name][indices] for name in self._fields),
    )
    rngs = [self._envs[index].np_random for index in indices]
    step = task.step(simulation, memory, actions.astype(np.float64), rngs)
    self._memory[indices] = memory
    parts = {f"reward_{name}": values for name, values in step.parts.items()}
    for name, values in parts.items():
      self._reward_sums[name][indices] += values
    observ = np.empty(len(indices), self._observ_type)
    for name, part in step.observ.items():
      observ[name] = part

    def info(row: int) -> dict[str, Any]:
      rewards = {name: values[row] for name, values in parts.items()}
      return {**task.info(memory[row], bool(step.fallen[row])), **rewards}

    return mujoco_tasks.TaskStep(observ, step.reward, step.fallen, info, step.left_ground)
