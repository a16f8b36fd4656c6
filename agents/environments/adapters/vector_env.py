"""Gymnasium's `VectorEnv` interface over a few worker processes."""

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
from agents.environments.blocks import base, gymnasium_vector_block
from agents.environments.data import infos as infos_lib
from agents.environments.data import mujoco_warnings
from agents.environments.workers import pool, shared_memory

# Observations, rewards, terminated, truncated, infos.
StepResult = tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]


class VectorEnv(vector.VectorEnv):
  """Equals `gymnasium.vector.SyncVectorEnv` in every result, infos included.

  The only difference is that `final_obs` is always a copy. Actions have the
  units of the environments' action space and are cast to its type.

      envs = vector_env.VectorEnv(
          [lambda: gymnasium.make("HalfCheetah-v5")] * 64)

  Args:
    constructors: Functions without arguments that return environments with
      equal spaces of Box, Discrete, MultiDiscrete, MultiBinary, Dict or Tuple.
    workers: Number of worker processes, by default one for each core; 0 steps
      in this process. Or a `WorkerPool`, which other batches may use, too.
    autoreset_mode: Whether the next episode begins within the step that ends
      an episode, in the following step, or by `reset` only.
  Raises:
    TypeError: If no array can hold values of a space.
    ValueError: If there is no environment, or if spaces differ.
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
    with contextlib.closing(constructors[0]()) as env:
      self.metadata = {**env.metadata, "autoreset_mode": self.autoreset_mode}
      self.render_mode = env.render_mode
      spaces = env.observation_space, env.action_space
    self.single_observation_space, self.single_action_space = spaces
    self.observation_space, self.action_space = (
        utils.batch_space(space, self.num_envs) for space in spaces)
    for space in spaces:
      spaces_lib.dtype(space)
    with contextlib.ExitStack() as stack:
      self._arrays, self._block = self._open(
          stack, constructors, workers, spaces)
      # Also closes when the object is deleted or the interpreter exits.
      self._end = weakref.finalize(self, stack.pop_all().close)
    self._observs = gymnasium_vector_block.nested(
        "observ", spaces[0], self._arrays)
    self._actions = gymnasium_vector_block.nested(
        "action", spaces[1], self._arrays)

  def reset(self, *, seed: int | Sequence[int | None] | None = None,
            options: dict[str, Any] | None = None
            ) -> tuple[Any, dict[str, Any]]:
    """Begin new episodes, only where `options["reset_mask"]` is true if given.

    Args:
      seed: Seed of the first environment, increased by one for each of the
        others; or one seed per environment. Environments without a seed
        continue with their random numbers.
      options: Options of the environments.
    Returns:
      Observations and infos.
    Raises:
      ValueError: If seeds or mask do not fit the number of environments.
    """
    if isinstance(seed, (int, np.integer)):
      seed = [int(seed) + index for index in range(self.num_envs)]
    seeds = [None] * self.num_envs if seed is None else list(seed)
    self._check_length("seed", seeds)
    mask = np.ones(self.num_envs, np.bool_)
    if options is not None and "reset_mask" in options:
      options = dict(options)
      mask = options.pop("reset_mask")
      if (not isinstance(mask, np.ndarray) or mask.dtype != np.bool_
          or mask.shape != (self.num_envs,) or not mask.any()):
        raise ValueError(
            "`options['reset_mask']` must be an array of type bool and shape "
            f"({self.num_envs},) with a true element. Received: {mask!r}.")
    arguments = [{"seed": seed, "options": options} if selected else None
                 for seed, selected in zip(seeds, mask, strict=True)]
    columns: gymnasium_vector_block.Columns = {}
    for block_columns in self._open_block.reset(arguments):
      columns.update(block_columns)
    return copy.deepcopy(self._observs), self._batch_infos(columns)

  def step(self, actions: Any) -> StepResult:
    """Step all environments; the autoreset mode decides about resets.

    Args:
      actions: Actions of the batched action space.
    Returns:
      Observations, rewards, terminated, truncated and infos.
    Raises:
      ValueError: If the shape of the actions is wrong.
    """
    self.step_async(actions)
    return self.step_wait()

  def step_async(self, actions: Any):
    """Begin a step in the workers and return at once.

    Args:
      actions: Actions of the batched action space.
    Raises:
      ValueError: If the shape of the actions is wrong.
    """
    block = self._open_block
    _assign(self._actions, actions)
    block.step_async()

  def step_wait(self) -> StepResult:
    """Wait for the step that `step_async` began and return its results."""
    columns = self._open_block.step_wait()
    reward, terminated, truncated = (self._arrays[name].copy() for name in (
        "reward", "terminated", "truncated"))
    return (copy.deepcopy(self._observs), reward, terminated, truncated,
            self._batch_infos(columns))

  def render(self) -> tuple[Any, ...]:
    """Return the rendered frame of each environment."""
    return self.call("render")

  def call(self, name: str, /, *args, **kwargs) -> tuple[Any, ...]:
    """Call a method of every environment, or return an attribute.

    Args:
      name: Name of the method or attribute.
      *args: Positional arguments of the method.
      **kwargs: Keyword arguments of the method.
    Returns:
      Result of each environment.
    """
    return self.call_selected([True] * self.num_envs, name, *args, **kwargs)

  def call_selected(self, selected: Sequence[bool], name: str, /, *args,
                    **kwargs) -> tuple[Any, ...]:
    """Call a method of some environments, or return an attribute.

    Args:
      selected: For each environment, whether to call the method.
      name: Name of the method or attribute.
      *args: Positional arguments of the method.
      **kwargs: Keyword arguments of the method.
    Returns:
      Result of each selected environment.
    """
    return tuple(self._open_block.call(name, args, kwargs, list(selected)))

  def get_attr(self, name: str) -> tuple[Any, ...]:
    """Return an attribute of every environment.

    Args:
      name: Name of the attribute.
    """
    return self.call(name)

  def set_attr(self, name: str, values: Any):
    """Set an attribute of every environment.

    Args:
      name: Name of the attribute.
      values: List or tuple of one value per environment, or one for all.
    Raises:
      ValueError: If the number of values is wrong.
    """
    if not isinstance(values, (list, tuple)):
      values = [values] * self.num_envs
    self._check_length("values", values)
    self._open_block.set(name, list(values), [True] * self.num_envs)

  # SyncVectorEnv returns tuples, too; the base class declares single values.
  @property  # type: ignore
  def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore
    """Copies of the environments' random number generators."""
    return self.get_attr("np_random")

  @property
  def np_random_seed(self) -> tuple[int, ...]:  # type: ignore
    """Seeds of the environments' random number generators."""
    return self.get_attr("np_random_seed")

  def close_extras(self, **_):
    """Close all environments and end the processes."""
    self._end()

  @property
  def _open_block(
      self) -> gymnasium_vector_block.VectorBlock | pool.RemoteBlock:
    if not self._end.alive:
      raise gymnasium.error.ClosedEnvironmentError(
          "The environments are closed.")
    return self._block

  def _open(self, stack: contextlib.ExitStack,
            constructors: Sequence[base.Constructor],
            workers: pool.WorkerPool | int | None,
            spaces: tuple[gymnasium.Space, gymnasium.Space]) -> tuple[
                dict[str, np.ndarray],
                gymnasium_vector_block.VectorBlock | pool.RemoteBlock]:
    """Return shared arrays and the block; `stack` closes them."""
    layout = gymnasium_vector_block.vector_layout(self.num_envs, *spaces)
    descriptor = shared_memory.create(layout.num_bytes)
    stack.callback(os.close, descriptor)
    arrays = layout.views(shared_memory.attach(os.dup(descriptor)))
    if workers is None:
      workers = pool.num_cores()
    if isinstance(workers, int) and workers:
      workers = stack.enter_context(
          pool.WorkerPool(min(self.num_envs, workers)))
    block: gymnasium_vector_block.VectorBlock | pool.RemoteBlock
    if isinstance(workers, pool.WorkerPool):
      block = workers.open(
          gymnasium_vector_block.VectorBlock, constructors, 0, spaces,
          descriptor, None,
          self.autoreset_mode)
    else:
      block = gymnasium_vector_block.VectorBlock(
          constructors, 0, spaces, arrays, self.autoreset_mode)
    stack.callback(block.close)
    return arrays, block

  def _batch_infos(self, columns: gymnasium_vector_block.Columns
                   ) -> dict[str, Any]:
    return infos_lib.batch([columns[first] for first in sorted(columns)],
                           self.num_envs, self._add_info)

  def _check_length(self, name: str, values: Sequence[Any]):
    if len(values) != self.num_envs:
      raise ValueError(f"`{name}` must hold {self.num_envs}, one for each "
                       f"environment. Received: {len(values)}.")


def _assign(arrays: Any, values: Any):
  """Copy nested actions into arrays of the same shapes."""
  if isinstance(arrays, dict):
    for key, array in arrays.items():
      _assign(array, values[key])
  elif isinstance(arrays, tuple):
    for array, value in zip(arrays, values, strict=True):
      _assign(array, value)
  else:
    if np.shape(values) != arrays.shape:  # NumPy might broadcast them.
      raise ValueError(f"Actions must have shape {arrays.shape}. "
                       f"Received: {np.shape(values)}.")
    np.copyto(arrays, values, casting="same_kind")
