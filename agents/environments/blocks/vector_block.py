"""Steps a block of environments by the rules of Gymnasium's vectors.

Unlike `block.Block` it hands on actions as they are, keeps observations in
their own type, and begins episodes without seeds, by the environment's own
random numbers.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import vector
from gymnasium.vector import utils

from agents.environments.blocks import base
from agents.environments.data import buffer_layout
from agents.environments.data import infos as infos_lib

Columns = dict[int, infos_lib.Columns]  # By the first index of each share.


def vector_layout(size: int, observation: gymnasium.Space,
                  action: gymnasium.Space) -> buffer_layout.Layout:
  """Layout of all that travels between a vector and its environments."""
  return buffer_layout.Layout([
      *_specs("action", size, action), *_specs("observ", size, observation),
      ("reward", np.float64, (size,)),
      ("terminated", np.bool_, (size,)),
      ("truncated", np.bool_, (size,))])


def vector_views(buffer: np.ndarray, size: int, observation: gymnasium.Space,
                 action: gymnasium.Space) -> dict[str, np.ndarray]:
  """Return all fields of a vector."""
  return vector_layout(size, observation, action).views(buffer)


def nested(name: str, space: gymnasium.Space, arrays: dict[str, np.ndarray]
           ) -> Any:
  """Return the arrays of a space as Gymnasium nests them, on their memory.

  Args:
    name: Either "action" or "observ".
    space: Of one environment.
    arrays: Fields, of all environments or of some.
  """
  parts = iter([array for key, array in arrays.items()
                if key.partition("/")[0] == name])
  return utils.create_empty_array(space, fn=lambda *_, **__: next(parts))


class VectorBlock(base.BlockBase):
  """Environments `first` to `first + len(constructors)` of a vector.

  Args:
    constructors: Functions without arguments that return environments.
    first: Index of the first one within the vector.
    spaces: Observation and action space that all must have.
    arrays: Fields of `vector_views` for these environments only.
    mode: When the next episode begins.
  """

  views = staticmethod(vector_views)

  def __init__(self, constructors: Sequence[base.Constructor], first: int,
               spaces: tuple[gymnasium.Space, gymnasium.Space],
               arrays: dict[str, np.ndarray], mode: vector.AutoresetMode):
    self._arrays = arrays
    self._mode = mode
    self._observ_arrays = nested("observ", spaces[0], arrays)
    self._action_arrays = nested("action", spaces[1], arrays)
    self._actions_space = utils.batch_space(spaces[1], len(constructors))
    self._observs: list[Any] = [None] * len(constructors)
    super().__init__(constructors, first, spaces)

  def reset(self, arguments: Sequence[dict[str, Any] | None]) -> list[Columns]:
    """Begin episodes, with the arguments for each; none where it goes on.

    Returns:
      The infos of this share.
    """
    infos = {}
    for offset, given in enumerate(arguments):
      if given is not None:
        infos[self._first + offset] = self._begin(offset, **given)
    self._write_observs()
    return [{self._first: infos_lib.gather(infos)}]

  def step_async(self):
    """Does nothing; `step_wait` does the whole step."""

  def step_wait(self) -> Columns:
    """See `step`."""
    return self.step()

  def step(self) -> Columns:
    """Steps by the actions and writes the other arrays; returns the infos."""
    actions = utils.iterate(  # Environments may keep theirs.
        self._actions_space, copy.deepcopy(self._action_arrays))
    infos = {}
    for offset, action in enumerate(actions):
      infos[self._first + offset] = self._step(offset, action)
    self._write_observs()
    columns = infos_lib.gather(infos)
    return {self._first: columns} if columns else {}

  def call(self, name: str, args: tuple, kwargs: dict, chosen: Sequence[bool]
           ) -> list[Any]:
    """Call methods, as Gymnasium does: what can't be called is the result."""
    results = []
    for offset, env in self._selected(chosen):
      with self._explained(offset, f"{name}()"):
        found = env.get_wrapper_attr(name)
        results.append(found(*args, **kwargs) if callable(found) else found)
    return results

  def _step(self, offset: int, action: Any) -> dict[str, Any]:
    arrays, modes = self._arrays, vector.AutoresetMode
    if (arrays["terminated"][offset] or arrays["truncated"][offset]) and (
        self._mode != modes.SAME_STEP):
      if self._mode == modes.DISABLED:
        raise RuntimeError(
            f"The episode of environment {self._first + offset} has ended; "
            "begin its next one by reset(options={'reset_mask': ...}).")
      arrays["reward"][offset] = 0
      return self._begin(offset)
    self._lengths[offset] += 1
    try:
      observ, reward, terminated, truncated, info = (
          self._envs[offset].step(action))
      arrays["reward"][offset] = reward
    except BaseException as error:
      self._fail(error, offset, "step()")
    self._observs[offset] = observ
    if (terminated or truncated) and self._mode == modes.SAME_STEP:
      # Environments may use the same array and the same info again.
      final = {"final_obs": copy.deepcopy(observ), "final_info": dict(info)}
      info = {**final, **self._begin(offset)}
    arrays["terminated"][offset] = terminated
    arrays["truncated"][offset] = truncated
    return info

  def _begin(self, offset: int, **arguments) -> dict[str, Any]:
    self._seeds[offset] = arguments.get("seed")
    self._lengths[offset] = 0
    with self._explained(offset, "reset()"):
      self._observs[offset], info = self._envs[offset].reset(**arguments)
    for name in ("terminated", "truncated"):
      self._arrays[name][offset] = False
    if self.heartbeat:
      self.heartbeat()
    return info

  def _write_observs(self):
    space = self._spaces[0]
    try:
      utils.concatenate(space, self._observs, self._observ_arrays)
    except Exception:
      for offset, observ in enumerate(self._observs):  # Whose is it?
        with self._explained(offset, "its observation"):
          alone: Any = utils.create_empty_array(space)
          utils.concatenate(space, [observ], alone)
      raise


def _specs(name: str, size: int, space: gymnasium.Space
           ) -> list[buffer_layout.ArraySpec]:
  """Return one entry for each array in which Gymnasium stores a space."""
  specs: list[buffer_layout.ArraySpec] = []
  utils.create_empty_array(space, size, fn=lambda shape, dtype: specs.append(
      (f"{name}/{len(specs)}", dtype, shape)))
  return specs
