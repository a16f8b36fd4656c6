"""Steps a block of environments by the rules of `gymnasium.vector`.

`AutoresetBlock` differs from `GymnasiumBlock` in three ways: it does not scale
actions, it keeps the type of observations, and it begins later episodes without
seeds, so that environments continue their random numbers.
"""

import copy
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import vector
from gymnasium.spaces import utils as space_utils
from gymnasium.vector import utils

from agents import spaces as spaces_lib
from agents.environments.blocks import base
from agents.environments.data import buffer_layout
from agents.environments.data import infos as infos_lib


def vector_layout(
  size: int, observation: gymnasium.Space, action: gymnasium.Space
) -> buffer_layout.Layout:
  """Returns the layout of the arrays of a vector environment.

  Args:
    size: Number of environments.
    observation: Observation space of one environment.
    action: Action space of one environment.

  Raises:
    TypeError: If a space is not supported; see `agents.spaces`.
  """
  return buffer_layout.Layout(
    [
      *(
        (f"{name}/{index}", leaf.space.dtype, leaf.shape)
        for name, space in (("action", action), ("observ", observation))
        for index, leaf in enumerate(spaces_lib.leaves(utils.batch_space(space, size)))
      ),
      ("reward", np.float64, (size,)),
      ("terminated", np.bool_, (size,)),
      ("truncated", np.bool_, (size,)),
    ]
  )


def nested(name: str, space: gymnasium.Space, arrays: dict[str, np.ndarray]) -> Any:
  """Returns the arrays of a space, nested like Gymnasium's batched values.

  Args:
    name: "action" or "observ".
    space: Space of one environment.
    arrays: Fields of `vector_layout`, for all or for some environments.
  """
  parts = iter([arrays[key] for key in arrays if key.startswith(f"{name}/")])
  # `vector_layout` lists the arrays in the order of `batch_space`, too.
  return utils.create_empty_array(utils.batch_space(space), fn=lambda *_, **__: next(parts))


class AutoresetBlock(base.BlockBase):
  """Steps some environments of a `VectorEnv`.

  Args:
    constructors: Functions without arguments that return environments.
    first: Index of the first environment within the vector.
    spaces: Observation and action space that all environments must have.
    arrays: Fields of `vector_layout` for these environments.
    mode: Determines when the next episode begins.
    equal_spaces: Whether observation spaces must be equal, and not only their
      types and shapes.
  """

  layout = staticmethod(vector_layout)

  def __init__(
    self,
    constructors: Sequence[base.Constructor],
    first: int,
    spaces: tuple[gymnasium.Space, gymnasium.Space],
    arrays: dict[str, np.ndarray],
    mode: vector.AutoresetMode,
    equal_spaces: bool = True,
  ) -> None:
    self._arrays = arrays
    self._mode = mode
    self._equal_spaces = equal_spaces
    self._observ_arrays = nested("observ", spaces[0], arrays)
    self._action_arrays = nested("action", spaces[1], arrays)
    self._actions_space = utils.batch_space(spaces[1], len(constructors))
    self._observs: list[Any] = [None] * len(constructors)
    super().__init__(constructors, first, spaces)

  def reset(self, arguments: Sequence[dict[str, Any] | None]) -> list[infos_lib.Columns]:
    """Begins episodes of some environments.

    Args:
      arguments: Keyword arguments of each environment's `reset`; None for
        environments that continue.

    Returns:
      The infos of this block, as the only element of a list.
    """
    infos = {
      self._first + offset: self._begin(offset, **kwargs)
      for offset, kwargs in enumerate(arguments)
      if kwargs is not None
    }
    self._write_observs()
    return [infos_lib.gather(infos)]

  def step(self) -> dict[int, infos_lib.Columns]:
    """Steps with the actions in the arrays, and writes the other arrays.

    Returns:
      The infos of this block under the index of its first environment; an
      empty dict if all infos are empty.

    Raises:
      RuntimeError: If an episode has ended and autoreset is disabled.
    """
    actions = self._action_arrays  # Copied, as environments may keep actions.
    if isinstance(actions, np.ndarray):
      actions = actions.copy()
    else:
      actions = utils.iterate(self._actions_space, copy.deepcopy(actions))
    arrays, envs, observs = self._arrays, self._envs, self._observs
    waits = self._mode != vector.AutoresetMode.SAME_STEP
    begins = (arrays["terminated"] | arrays["truncated"]).tolist()
    if not waits:
      arrays["terminated"][:] = arrays["truncated"][:] = False
    reward, infos = arrays["reward"], {}
    self._lengths += 1
    for offset, action in enumerate(actions):
      if waits and begins[offset]:
        info = self._begin_next(offset)
      else:
        try:  # The context manager `_explained` would slow down every step.
          observs[offset], reward[offset], terminated, truncated, info = envs[offset].step(action)
        except BaseException as error:
          self._fail(error, offset, "step()")
        if terminated or truncated:
          info = self._end(offset, terminated, truncated, info)
      if info:
        infos[self._first + offset] = info
    self._write_observs()
    return {self._first: infos_lib.gather(infos)} if infos else {}

  def step_async(self) -> None:
    """Does nothing, because `step_wait` does the whole step."""

  step_wait = step

  def call(self, name: str, args: tuple, kwargs: dict, selected: Sequence[bool]) -> list[Any]:
    """Calls a method of selected environments, or returns an attribute.

    Args:
      name: Name of the method or attribute.
      args: Positional arguments of the method.
      kwargs: Keyword arguments of the method.
      selected: For each environment of the block, whether it is selected.

    Returns:
      Result of each selected environment.
    """

    def call(_: int, env: gymnasium.Env) -> Any:
      value = env.get_wrapper_attr(name)
      return value(*args, **kwargs) if callable(value) else value

    return self._access(selected, f"{name}()", call)

  def _fits(self, env: gymnasium.Env) -> bool:
    """Returns whether an environment has the spaces of this block."""
    if self._equal_spaces:
      return super()._fits(env)
    observation, action = self._spaces
    return env.action_space == action and space_utils.is_space_dtype_shape_equiv(
      env.observation_space, observation
    )

  def _begin_next(self, offset: int) -> dict[str, Any]:
    """Begins the next episode in a step of its own; returns the info."""
    if self._mode == vector.AutoresetMode.DISABLED:
      raise RuntimeError(
        f"The episode of environment {self._first + offset} has ended. "
        "Begin the next episode with reset(options={'reset_mask': ...})."
      )
    self._arrays["reward"][offset] = 0
    return self._begin(offset)

  def _end(
    self, offset: int, terminated: bool, truncated: bool, info: dict[str, Any]
  ) -> dict[str, Any]:
    """Ends an episode; returns the info of the step."""
    if self._mode == vector.AutoresetMode.SAME_STEP:
      # Copies, because environments may reuse the array and the dict.
      info = {
        "final_obs": copy.deepcopy(self._observs[offset]),
        "final_info": dict(info),
        **self._begin(offset),
      }
    self._arrays["terminated"][offset] = terminated
    self._arrays["truncated"][offset] = truncated
    return info

  def _begin(self, offset: int, **kwargs: Any) -> dict[str, Any]:
    """Resets an environment; returns the info."""
    self._seeds[offset] = kwargs.get("seed")
    self._lengths[offset] = 0
    with self._explained(offset, "reset()"):
      self._observs[offset], info = self._envs[offset].reset(**kwargs)
    for name in ("terminated", "truncated"):
      self._arrays[name][offset] = False
    if self.heartbeat:
      self.heartbeat()
    return info

  def _write_observs(self) -> None:
    space = self._spaces[0]
    try:
      utils.concatenate(space, self._observs, self._observ_arrays)
    except Exception:
      # Writes each observation separately, to name the environment in errors.
      for offset, observ in enumerate(self._observs):
        with self._explained(offset, "its observation"):
          array: Any = utils.create_empty_array(space)
          utils.concatenate(space, [observ], array)
      raise
