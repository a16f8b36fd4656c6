"""Gymnasium's `VectorEnv` interface over a few worker processes."""

from __future__ import annotations

import contextlib
import copy as copy_lib
import functools
import os
import weakref
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import vector
from gymnasium.vector import utils

from agents import spaces as spaces_lib
from agents.environments.adapters import num_workers
from agents.environments.blocks import autoreset_block, base
from agents.environments.data import infos as infos_lib
from agents.environments.data import mujoco_warnings
from agents.environments.workers import pool, shared_memory

# Observations, rewards, terminated, truncated, infos.
StepResult = tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]
Block = autoreset_block.AutoresetBlock | pool.RemoteBlock


def make_vec(env_id: str, num_envs: int, **kwargs: Any) -> VectorEnv:
  """Builds environments of a Gymnasium id, like `gymnasium.make_vec`.

  Args:
    env_id: Id of the environments.
    num_envs: Number of environments.
    kwargs: Arguments of `VectorEnv`; all others are arguments of
      `gymnasium.make`.
  """
  names = "workers", "autoreset_mode", "observation_mode", "copy", "timeout"
  options = {name: kwargs.pop(name) for name in names if name in kwargs}
  return VectorEnv([functools.partial(gymnasium.make, env_id, **kwargs)] * num_envs, **options)


class VectorEnv(vector.VectorEnv):
  """Returns the same results and infos as `gymnasium.vector.SyncVectorEnv`.

  The only difference is that `final_obs` is always a copy. Actions are cast to
  the type of the action space, but not scaled.

      envs = vector_env.VectorEnv(
          [lambda: gymnasium.make("HalfCheetah-v5")] * 64)

  Args:
    constructors: Functions without arguments that return environments with
      equal spaces of Box, Discrete, MultiDiscrete, MultiBinary, Dict or Tuple.
    workers: Number of worker processes. With 0, this process steps the
      environments. A `WorkerPool` can be shared with other batches. By default,
      there is one process per CPU core if a batched step takes long enough to
      pay for waking them, and none otherwise.
    autoreset_mode: Determines when the next episode begins: in the step that
      ends an episode, in the following step, or only by `reset`.
    observation_mode: "same" if all observation spaces must be equal.
      "different" if only their types and shapes must be equal. A tuple of the
      batched and the single space replaces both spaces.
    copy: Whether `reset` and `step` return copies of the observations.
      Otherwise, later steps change returned observations.
    timeout: Limit in seconds for a batched step or the reset of an environment,
      with processes of this object. 0 disables the limit.

  Raises:
    TypeError: If a space is not supported.
    ValueError: If there is no environment, or if spaces differ.
  """

  def __init__(
    self,
    constructors: Sequence[base.Constructor],
    workers: pool.WorkerPool | int | None = None,
    autoreset_mode: vector.AutoresetMode | str = vector.AutoresetMode.NEXT_STEP,
    observation_mode: str | tuple[gymnasium.Space, gymnasium.Space] = "same",
    copy: bool = True,
    timeout: float = 0.0,
  ) -> None:
    if not constructors:
      raise ValueError("A vector needs at least one environment.")
    if not (isinstance(observation_mode, tuple) or observation_mode in ("same", "different")):
      raise ValueError(
        "`observation_mode` must be 'same', 'different' or a tuple of two spaces. Received: "
        f"{observation_mode!r}."
      )
    self.num_envs = len(constructors)
    if timeout and not (workers is None or isinstance(workers, int) and workers):
      raise ValueError(
        "`timeout` needs processes of this vector: set `workers` to their number, or to None. "
        f"Received: {workers!r}."
      )
    self._copies = copy
    self.autoreset_mode = vector.AutoresetMode(autoreset_mode)
    mujoco_warnings.capture()
    with contextlib.closing(constructors[0]()) as env:
      self.metadata = {**env.metadata, "autoreset_mode": self.autoreset_mode}
      self.render_mode = env.render_mode
      spaces = env.observation_space, env.action_space
      if workers is None:
        # Only processes can be ended at the time limit.
        workers = pool.num_cores() if timeout else num_workers.choose(env, self.num_envs)
    self.single_observation_space, self.single_action_space = spaces
    self.observation_space, self.action_space = (
      utils.batch_space(space, self.num_envs) for space in spaces
    )
    layout = autoreset_block.vector_layout(self.num_envs, *spaces)
    with contextlib.ExitStack() as stack:
      descriptor = shared_memory.create(layout.num_bytes)
      stack.callback(os.close, descriptor)
      self._arrays = layout.views(shared_memory.attach(os.dup(descriptor)))
      if isinstance(workers, int) and workers:
        size = min(self.num_envs, workers)
        workers = stack.enter_context(pool.WorkerPool(size, timeout=timeout))
      self._block: Block
      if isinstance(workers, pool.WorkerPool):
        self._block = workers.begin_open(
          autoreset_block.AutoresetBlock,
          constructors,
          0,
          spaces,
          descriptor,
          None,
          self.autoreset_mode,
          observation_mode == "same",
        )
        workers.finish_open(self._block)
      else:
        self._block = autoreset_block.AutoresetBlock(
          constructors, 0, spaces, self._arrays, self.autoreset_mode, observation_mode == "same"
        )
      stack.callback(self._block.close)
      # Closes the environments also when the object is deleted or Python exits.
      self._finalizer = weakref.finalize(self, stack.pop_all().close)
    self._observs = autoreset_block.nested("observ", spaces[0], self._arrays)
    if isinstance(observation_mode, tuple):
      self.observation_space, self.single_observation_space = observation_mode
    elif observation_mode == "different":
      self.observation_space = utils.batch_differing_spaces(self.get_attr("observation_space"))

  def reset(
    self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
  ) -> tuple[Any, dict[str, Any]]:
    """Begins new episodes.

    Args:
      seed: One seed per environment, or an integer `s` that gives environment
        `i` the seed `s + i`. Environments without a seed continue their random
        numbers.
      options: Options of the environments. The key "reset_mask" can contain a
        bool array, [num_envs], that is true for the environments to reset. By
        default, all environments are reset.

    Returns:
      Observations and infos.

    Raises:
      ValueError: If the number of seeds is wrong, or if the mask has a wrong
        type or shape or no true element.
    """
    if isinstance(seed, (int, np.integer)):
      seed = [int(seed) + index for index in range(self.num_envs)]
    seeds = [None] * self.num_envs if seed is None else list(seed)
    self._check_length("seed", seeds)
    options = options and dict(options)
    mask = (options or {}).pop("reset_mask", np.ones(self.num_envs, np.bool_))
    if (
      not isinstance(mask, np.ndarray)
      or mask.dtype != np.bool_
      or mask.shape != (self.num_envs,)
      or not mask.any()
    ):
      raise ValueError(
        "`options['reset_mask']` must be an array of type bool and shape "
        f"({self.num_envs},) with a true element. Received: {mask!r}."
      )
    arguments = [
      {"seed": seed, "options": options} if selected else None
      for seed, selected in zip(seeds, mask, strict=True)
    ]
    infos = infos_lib.batch(self.block.reset(arguments), self.num_envs, self._add_info)
    return self._latest(), infos

  def step(self, actions: Any) -> StepResult:
    """Steps all environments; `autoreset_mode` determines when they reset.

    Args:
      actions: Actions of the batched action space.

    Returns:
      Observations, rewards, terminated, truncated and infos.

    Raises:
      ValueError: If the shape of the actions is wrong.
    """
    self.step_async(actions)
    return self.step_wait()

  def step_async(self, actions: Any) -> None:
    """Begins a step in the workers and returns at once.

    Args:
      actions: Actions of the batched action space.

    Raises:
      ValueError: If the shape of the actions is wrong.
    """
    block = self.block
    if spaces_lib.composite(self.action_space) or np.shape(actions) != self.action_space.shape:
      values = spaces_lib.values(self.action_space, actions, "action")
    else:
      values = [actions]  # A quicker way to the same result.
    for index, value in enumerate(values):
      np.copyto(self._arrays[f"action/{index}"], value, casting="same_kind")
    block.step_async()

  def step_wait(self) -> StepResult:
    """Waits for the step that `step_async` began and returns its results."""
    infos = infos_lib.batch([*self.block.step_wait().values()], self.num_envs, self._add_info)
    reward, terminated, truncated = (
      self._arrays[name].copy() for name in ("reward", "terminated", "truncated")
    )
    return self._latest(), reward, terminated, truncated, infos

  def render(self) -> tuple[Any, ...]:
    """Returns the rendered frame of each environment."""
    return self.call("render")

  def call(self, name: str, /, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
    """Calls a method, or reads an attribute, of every environment.

    Args:
      name: Name of the method or attribute.
      *args: Positional arguments of the method.
      **kwargs: Keyword arguments of the method.

    Returns:
      Result or value of each environment.
    """
    return tuple(self.block.call(name, args, kwargs, [True] * self.num_envs))

  def get_attr(self, name: str) -> tuple[Any, ...]:
    """Returns an attribute of every environment.

    Args:
      name: Name of the attribute.
    """
    return self.call(name)

  def set_attr(self, name: str, values: Any) -> None:
    """Sets an attribute of every environment.

    Args:
      name: Name of the attribute.
      values: List or tuple with one value per environment; any other object
        is the value for all environments.

    Raises:
      ValueError: If the number of values is wrong.
    """
    if not isinstance(values, (list, tuple)):
      values = [values] * self.num_envs
    self._check_length("values", values)
    self.block.set(name, list(values), [True] * self.num_envs)

  # SyncVectorEnv also returns tuples, but the base class declares one value.
  @property  # type: ignore
  def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore
    """Random number generators of the environments; copies with workers."""
    return self.get_attr("np_random")

  @property
  def np_random_seed(self) -> tuple[int, ...]:  # type: ignore
    """Seeds of the environments' random number generators."""
    return self.get_attr("np_random_seed")

  def close_extras(self, **_: Any) -> None:
    """Closes all environments, and ends processes that this object started."""
    self._finalizer()

  @property
  def block(self) -> Block:
    """Block that steps all environments and accesses selected ones.

    Raises:
      ClosedEnvironmentError: If the environments are closed.
    """
    if not self._finalizer.alive:
      raise gymnasium.error.ClosedEnvironmentError("The environments are closed.")
    return self._block

  def _latest(self) -> Any:
    """Returns the latest observations."""
    if not self._copies:
      return self._observs
    if isinstance(self._observs, np.ndarray):
      return self._observs.copy()
    return copy_lib.deepcopy(self._observs)

  def _check_length(self, name: str, values: Sequence[Any]) -> None:
    if len(values) != self.num_envs:
      raise ValueError(
        f"`{name}` must contain {self.num_envs} elements, one per "
        f"environment. Received: {len(values)}."
      )
