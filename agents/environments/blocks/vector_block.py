"""Block of environments that a Gymnasium vector environment steps."""

import time
import traceback
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import vector
from gymnasium.vector import utils

from agents import config as config_lib
from agents import spaces as spaces_lib
from agents.environments.blocks import base, custom_backend
from agents.environments.data import episode_data
from agents.environments.making import vector_envs

_Mode = vector.AutoresetMode
_NO_SEED = -1  # Later episodes continue the random numbers of the vector.


class VectorBlock(custom_backend.Backend):
  """Steps a `gymnasium.vector.VectorEnv` with any mode of autoreset.

  With next-step autoreset, an environment needs a step to begin an episode. The
  environment is not active in this step, so learning ignores it.

  Only the first reset has seeds, so single episodes cannot be replayed.

  Args:
    args: See `Backend`.
  """

  may_wait = True  # Environments may be inactive although the caller steps all.

  def __init__(self, *args: Any) -> None:
    super().__init__(*args)
    self._config, size = self.constructors[0].config, len(self.constructors)
    self._envs: Any = vector_envs.make(self._config, size)
    _check_spaces(self._config, self._envs, self.spaces)
    self._mode = self._envs.metadata["autoreset_mode"]
    observation, self._action_space = self.spaces
    self._leaves = spaces_lib.leaves(observation)
    self._columns = spaces_lib.columns(self.arrays["observ"])
    self._final_columns = spaces_lib.columns(self.arrays["final_observ"])
    self._begins = np.zeros(size, bool)  # Where the next step only resets.
    self._lengths = np.zeros(size, np.int64)
    self._reward_parts: dict[str, np.ndarray] = {}
    self._is_checked = False

  def reset(self, seeds: Sequence[int]) -> list[dict[str, Any]]:
    """Begins the first episodes.

    Args:
      seeds: Seed of each environment. The vector receives only the first one,
        as not all vectors accept several.

    Returns:
      An empty dict for each environment.

    Raises:
      ConfigError: If results of the vector have a wrong type or shape.
    """
    if not self._is_checked:
      self._check()
      self._is_checked = True
    observ, _ = self._call("reset", seed=int(seeds[0]))
    self._write(observ, slice(None))
    self._begins[:] = False
    self._lengths[:] = 0
    self._reward_parts.clear()
    return [{} for _ in seeds]

  def step_wait(self) -> dict[int, base.StepReport]:
    """Steps all environments; see `Backend.step_wait`.

    Raises:
      EnvironmentFailure: If the vector fails, or returns a number that is not
        finite.
    """
    start = time.perf_counter()
    arrays, begins = self.arrays, self._begins
    observ, reward, terminated, truncated, info = self._call("step", self._actions())
    self._write(observ, slice(None))
    for name, values in (("reward", reward), ("terminated", terminated), ("truncated", truncated)):
      arrays[name][:] = values
    arrays["valid"][:] = True
    self._lengths += 1
    if begins.any():
      self._lengths[begins] = 0
      for name in ("reward", "terminated", "truncated", "valid", "active"):
        arrays[name][begins] = 0
    self._check_finite()
    ended = arrays["terminated"] | arrays["truncated"]
    self._begins = ended if self._mode == _Mode.NEXT_STEP else np.zeros_like(ended)
    self._add_reward_parts(info, ended, ~(ended | begins))
    reports = self._end_episodes(np.flatnonzero(ended), info) if ended.any() else {}
    arrays["seconds"][:] = (time.perf_counter() - start) / len(reward)
    return reports

  def close(self) -> None:
    """Closes all environments. Repeated calls have no effect."""
    if self._envs is not None:
      self._envs.close()
      self._envs = None

  @property
  def _name(self) -> str:
    return f"The vector environment of env.id={self._config.id}"

  def _call(self, method: str, *args: Any, **kwargs: Any) -> Any:
    """Calls a method of the vector; its errors end the run with a traceback."""
    try:
      return getattr(self._envs, method)(*args, **kwargs)
    except Exception as error:
      trace = "".join(traceback.format_exception(error))
      raise base.EnvironmentFailure(f"{self._name} failed in {method}():\n\n{trace}") from error

  def _actions(self) -> Any:
    """Returns the actions in the format of the batched action space."""
    if isinstance(self._action_space, gymnasium.spaces.Discrete):  # Without a loop.
      return (self.arrays["action"] + self._action_space.start).astype(self._action_space.dtype)
    actions = self.to_env(self.arrays["action"])
    if not spaces_lib.composite(self._action_space):
      return np.asarray(actions, self._action_space.dtype)
    empty: Any = utils.create_empty_array(self._action_space, len(self._lengths))
    return utils.concatenate(self._action_space, actions, empty)

  def _write(self, observ: Any, rows: Any) -> None:
    """Writes batched observations into the array."""
    for leaf, column in zip(self._leaves, self._columns, strict=True):
      column[rows] = np.asarray(vector_envs.part(observ, leaf.path))[rows]

  def _end_episodes(self, rows: np.ndarray, info: dict[str, Any]) -> dict[int, base.StepReport]:
    """Begins the next episodes; returns the reports of the ended ones."""
    arrays = self.arrays
    arrays["final_observ"][rows] = arrays["observ"][rows]
    if self._mode == _Mode.SAME_STEP:
      final = info.get("final_obs")
      if final is None:
        raise base.EnvironmentFailure(
          f"{self._name} has same-step autoreset, but its info lacks 'final_obs' where episodes "
          "ended. Add it, or declare another autoreset_mode."
        )
      self._write_final(final, rows)
      info = info.get("final_info", info)
    reports = {}
    for row in rows.tolist():
      numbers = {
        key: values[row]
        for key, values in info.items()
        if getattr(values, "ndim", None) == 1
        and not vector_envs.has_objects(values)
        and key[:1] != "_"
      }
      parts = {name: float(sums[row]) for name, sums in self._reward_parts.items()}
      reports[self.first + row] = base.StepReport(
        {**episode_data.numbers(numbers), "reward_parts": parts}, next_seed=_NO_SEED
      )
    for sums in self._reward_parts.values():
      sums[rows] = 0
    if self._mode == _Mode.DISABLED:
      mask = np.zeros(len(self._lengths), bool)
      mask[rows] = True
      self._write(self._call("reset", options={"reset_mask": mask})[0], rows)
    if self._mode != _Mode.NEXT_STEP:
      self._lengths[rows] = 0
    return reports

  def _write_final(self, final: Any, rows: np.ndarray) -> None:
    """Writes the last observations of episodes from the info of a vector.

    Args:
      final: Batched observations, or one observation per environment in an
        array of objects.
      rows: Environments whose episodes ended.
    """
    is_list = vector_envs.has_objects(final)
    for leaf, column in zip(self._leaves, self._final_columns, strict=True):
      for row in rows.tolist():
        observ = final[row] if is_list else vector_envs.part(final, leaf.path)[row]
        column[row] = vector_envs.part(observ, leaf.path) if is_list else observ

  def _add_reward_parts(
    self, info: dict[str, Any], ended: np.ndarray, continues: np.ndarray
  ) -> None:
    """Adds the `reward_...` numbers of a step to the sums of the episodes.

    Args:
      info: Infos of the step.
      ended: Environments whose episodes ended, [B] bool.
      continues: Environments whose episodes continue, [B] bool.
    """
    final = info.get("final_info", {})
    for name in {*info, *final}:
      if name.startswith("reward_"):
        sums = self._reward_parts.setdefault(name, np.zeros(len(ended)))
        for source, rows in ((info, continues), (final or info, ended)):
          if name in source:
            sums[rows] += np.asarray(source[name], float)[rows]

  def _check_finite(self) -> None:
    arrays = self.arrays
    columns = [column for column in self._columns if column.dtype == np.float32]
    for column in (*columns, arrays["reward"]):
      if not np.isfinite(column).all():
        row = int(np.argwhere(~np.isfinite(column))[0][0])
        raise base.EnvironmentFailure(
          f"{self._name} returned a number that is not finite for environment {self.first + row}, "
          f"step {self._lengths[row]} of its episode. Did the simulation become unstable?",
          self.first + row,
        )

  def _check(self) -> None:
    """Checks the results of a reset and a step; raises ConfigError."""
    observ, _ = self._call("reset", seed=0)
    self._check_observ(observ)
    self.arrays["action"][...] = np.zeros_like(self.arrays["action"])
    observ, *rest, info = self._call("step", self._actions())
    self._check_observ(observ)
    size = len(self._lengths)
    for name, values, kinds in zip(("reward", "terminated", "truncated"), rest, ("fiu", "b", "b")):
      values = np.asarray(values)
      if values.shape != (size,) or values.dtype.kind not in kinds:
        kind = "bool" if kinds == "b" else "numbers"
        raise _error(
          self._config,
          f"step() returned `{name}` with shape {values.shape} and type {values.dtype}. Return "
          f"{kind} of shape ({size},).",
        )
    for key, values in info.items():
      if vector_envs.has_objects(values) and key not in ("final_obs", "final_info"):
        raise _error(
          self._config,
          f"the info {key!r} is an array of objects. Return numbers of shape ({size},), or remove "
          "it.",
        )

  def _check_observ(self, observ: Any) -> None:
    """Raises ConfigError unless observations have the types of their space."""
    size = len(self._lengths)
    for leaf in self._leaves:
      try:
        array = np.asarray(vector_envs.part(observ, leaf.path))
      except (KeyError, IndexError, TypeError, ValueError):
        raise _error(
          self._config, f"the observations lack the part {leaf} of their space. Return it."
        ) from None
      if array.shape != (size, *leaf.shape) or array.dtype != leaf.space.dtype:
        raise _error(
          self._config,
          f"the observations{leaf} have shape {array.shape} and type {array.dtype}, but their "
          f"space has {(size, *leaf.shape)} and {leaf.space.dtype}. Return this shape and type.",
        )
      if leaf.dtype == np.float32 and not np.isfinite(array).all():
        raise _error(
          self._config, f"the observations{leaf} contain NaN or infinity. Return finite numbers."
        )


def check(config: config_lib.Config) -> list[str]:
  """Checks whether the vector environment supports the settings of a config.

  Args:
    config: Config of the run.

  Returns:
    Notes for the user about the limits of the vector environment.

  Raises:
    ConfigError: If the vector environment does not support a setting.
  """
  if not config.algorithm.segment_length:
    raise config_lib.ConfigError(
      "env.backend=vector steps all environments together, so none can wait for the end of "
      "others' episodes: set algorithm.segment_length to a number of steps, and "
      "algorithm.update_every to null."
    )
  return custom_backend.check(config, VectorBlock)


def _check_spaces(config: config_lib.Env, envs: vector.VectorEnv, spaces: Sequence[Any]) -> None:
  """Raises ConfigError unless evaluations have the same spaces."""
  observation, action = envs.single_observation_space, envs.single_action_space
  equal = list(map(_kind, spaces_lib.leaves(observation))) == list(
    map(_kind, spaces_lib.leaves(spaces[0]))
  )
  if not (equal and action == spaces[1]):
    raise _error(
      config,
      f"the vector has the spaces {observation} and {action}, but the single environment, in which "
      f"policies are evaluated, has {spaces[0]} and {spaces[1]}.",
    )


def _kind(leaf: spaces_lib.Leaf) -> tuple[Any, ...]:
  """Returns the properties of observations that networks depend on."""
  is_box = isinstance(leaf.space, gymnasium.spaces.Box)  # Bounds have no effect.
  return leaf.path, (leaf.space.dtype, leaf.shape) if is_box else leaf.space


def _error(config: config_lib.Env, problem: str) -> config_lib.ConfigError:
  return config_lib.ConfigError(f"env.backend=vector, env.id={config.id}: {problem}")
