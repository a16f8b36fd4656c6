"""Gymnasium's view of environments that a few processes step."""

from __future__ import annotations

import contextlib
import copy
import os
import weakref
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import vector
from gymnasium.vector import utils

from agents import spaces as spaces_lib
from agents.environments.blocks import base
from agents.environments.blocks import vector_block
from agents.environments.data import infos
from agents.environments.data import mujoco_warnings
from agents.environments.workers import pool
from agents.environments.workers import remote_block
from agents.environments.workers import shared_memory


class VectorEnv(vector.VectorEnv):
  """Does what `gymnasium.vector.SyncVectorEnv` does, in a few processes.

  Everything it returns is equal, infos included; only `final_obs` is always a
  copy. Actions are those of the environments' own space, cast to its type.

      envs = vector_env.VectorEnv(
          [lambda: gymnasium.make("HalfCheetah-v5")] * 64)

  Args:
    constructors: Functions without arguments that return environments whose
      spaces are equal; Box, Discrete, MultiDiscrete, MultiBinary, Dict, Tuple.
    workers: How many processes step them; by default one for each core. With
      0, this process does. Or `WorkerPool` that other batches may use, too.
    autoreset_mode: When the episode after one that ended begins: within the
      same step, by the next step, or not before you reset it.
  """

  def __init__(
      self, constructors: Sequence[base.Constructor],
      workers: pool.WorkerPool | int | None = None,
      autoreset_mode: vector.AutoresetMode = vector.AutoresetMode.NEXT_STEP):
    if not constructors:
      raise ValueError("A vector needs at least one environment.")
    self.num_envs = len(constructors)
    self.autoreset_mode = vector.AutoresetMode(autoreset_mode)
    mujoco_warnings.capture()
    probe = constructors[0]()
    try:
      self.metadata = {
          **probe.metadata, "autoreset_mode": self.autoreset_mode}
      self.render_mode = probe.render_mode
      self.single_observation_space = probe.observation_space
      self.single_action_space = probe.action_space
    finally:
      probe.close()
    self.observation_space = utils.batch_space(
        self.single_observation_space, self.num_envs)
    self.action_space = utils.batch_space(
        self.single_action_space, self.num_envs)
    spaces = self.single_observation_space, self.single_action_space
    for space in spaces:
      spaces_lib.dtype(space)  # Raises TypeError for what no array holds.
    num_bytes = vector_block.vector_layout(self.num_envs, *spaces).num_bytes
    descriptor = shared_memory.create(num_bytes)
    with contextlib.ExitStack() as stack:
      stack.callback(os.close, descriptor)
      self._arrays = vector_block.vector_views(
          shared_memory.attach(os.dup(descriptor)), self.num_envs, *spaces)
      self._block: vector_block.VectorBlock | remote_block.RemoteBlock
      if workers is None:
        workers = pool.cores()
      if isinstance(workers, int) and workers:
        workers = stack.enter_context(
            pool.WorkerPool(min(self.num_envs, workers)))
      if isinstance(workers, pool.WorkerPool):
        self._block = workers.open(
            vector_block.VectorBlock, constructors, 0, spaces, descriptor, None,
            self.autoreset_mode)
      else:
        self._block = vector_block.VectorBlock(
            constructors, 0, spaces, self._arrays, self.autoreset_mode)
      stack.callback(self._block.close)
      # Also when this is forgotten, or the interpreter exits.
      self._end = weakref.finalize(self, stack.pop_all().close)
    self._observs = vector_block.nested("observ", spaces[0], self._arrays)
    self._actions = vector_block.nested("action", spaces[1], self._arrays)

  def reset(self, *, seed: int | Sequence[int | None] | None = None,
            options: dict[str, Any] | None = None
            ) -> tuple[Any, dict[str, Any]]:
    """Begin new episodes, if there is `options["reset_mask"]` where it is true.

    Args:
      seed: Of the first environment, the next one's being larger by one; or one
        for each. Without a seed, an environment goes on with its own random
        numbers.
      options: For the environments.
    """
    if isinstance(seed, (int, np.integer)):
      seed = [int(seed) + index for index in range(self.num_envs)]
    seeds = [None] * self.num_envs if seed is None else list(seed)
    if len(seeds) != self.num_envs:
      raise ValueError(f"`seed` must hold {self.num_envs}, one for each "
                       f"environment. Received: {len(seeds)}.")
    mask = np.ones(self.num_envs, np.bool_)
    if options is not None and "reset_mask" in options:
      options = dict(options)
      mask = options.pop("reset_mask")
      if (not isinstance(mask, np.ndarray) or mask.dtype != np.bool_
          or mask.shape != (self.num_envs,) or not mask.any()):
        raise ValueError(
            "`options['reset_mask']` must be an array of type bool and shape "
            f"({self.num_envs},), true somewhere. Received: {mask!r}.")
    arguments = [{"seed": seed, "options": options} if chosen else None
                 for seed, chosen in zip(seeds, mask, strict=True)]
    answers: dict[int, infos.Columns] = {}
    for answer in self._opened.reset(arguments):
      answers.update(answer)
    return copy.deepcopy(self._observs), self._batch(answers)

  def step(self, actions: Any) -> tuple[
      Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
    """Step all environments; those whose turn it is begin their next episode.
    """
    self.step_async(actions)
    return self.step_wait()

  def step_async(self, actions: Any):
    """Begin a step; the workers go on while you do something else."""
    block = self._opened
    _assign(self._actions, actions)
    block.step_async()

  def step_wait(self) -> tuple[
      Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
    """End the step that has begun, and return what `step` does."""
    answers = self._opened.step_wait()
    reward, terminated, truncated = (self._arrays[name].copy() for name in (
        "reward", "terminated", "truncated"))
    return (copy.deepcopy(self._observs), reward, terminated, truncated,
            self._batch(answers))

  def render(self) -> tuple[Any, ...]:
    """Return what each environment draws."""
    return self.call("render")

  def call(self, name: str, /, *args, **kwargs) -> tuple[Any, ...]:
    """Call a method of every environment, or return what is not a method."""
    return self.call_some([True] * self.num_envs, name, *args, **kwargs)

  def call_some(self, chosen: Sequence[bool], name: str, /, *args, **kwargs
                ) -> tuple[Any, ...]:
    """Call a method where `chosen` is true, and return what these say."""
    return tuple(self._opened.call(name, args, kwargs, chosen))

  def get_attr(self, name: str) -> tuple[Any, ...]:
    """Return an attribute of every environment."""
    return self.call(name)

  def set_attr(self, name: str, values: Any):
    """Set an attribute of every environment.

    Args:
      name: Of the attribute.
      values: A list or tuple with one for each environment, or one for all.
    """
    if not isinstance(values, (list, tuple)):
      values = [values] * self.num_envs
    if len(values) != self.num_envs:
      raise ValueError(f"`values` must hold {self.num_envs}, one for each "
                       f"environment. Received: {len(values)}.")
    self._opened.set(name, values, [True] * self.num_envs)

  # Of many, as in SyncVectorEnv; the base class has those of one.
  @property  # type: ignore
  def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore
    """Copies of the environments' random number generators."""
    return self.get_attr("np_random")

  @property
  def np_random_seed(self) -> tuple[int, ...]:  # type: ignore
    """The seeds of these generators."""
    return self.get_attr("np_random_seed")

  def close_extras(self, **_):
    """Close all environments and end the processes."""
    self._end()

  @property
  def _opened(self) -> vector_block.VectorBlock | remote_block.RemoteBlock:
    if not self._end.alive:
      raise gymnasium.error.ClosedEnvironmentError(
          "The environments are closed.")
    return self._block

  def _batch(self, answers: dict[int, infos.Columns]) -> dict[str, Any]:
    parts = [answers[first] for first in sorted(answers)]
    return infos.batch(parts, self.num_envs, self._add_info)


def _assign(arrays: Any, values: Any):
  """Copy actions, however nested, into arrays of the same shapes."""
  if isinstance(arrays, dict):
    for key, array in arrays.items():
      _assign(array, values[key])
  elif isinstance(arrays, tuple):
    for array, value in zip(arrays, values, strict=True):
      _assign(array, value)
  else:
    if np.shape(values) != arrays.shape:  # It might broadcast.
      raise ValueError(f"Actions must have shape {arrays.shape}. "
                       f"Received: {np.shape(values)}.")
    np.copyto(arrays, values, casting="same_kind")
