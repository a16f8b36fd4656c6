"""Episodes, stored as seed and actions to rebuild their states by replay."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

_NUMBERS = (int, float, np.number)
# Names of the arrays in a checkpoint, except "action".
_NAMES = ("episode", "seed", "observ", "score", "length")
_NUMPY_TYPES = {float: np.floating, int: np.integer, bool: np.bool_}


def episode_seed(run_seed: int, index: int, episode: int) -> int:
  """Derives the seed of one episode of one environment.

  Args:
    run_seed: Seed of the run.
    index: Index of the environment within the batch.
    episode: Index of the episode within that environment, from 0.

  Returns:
    Integer in [0, 2^31), because some simulators store seeds in a C int.
  """
  sequence = np.random.SeedSequence(run_seed, spawn_key=(index, episode))
  return int(sequence.generate_state(1)[0]) & 0x7FFFFFFF


def numbers(info: dict[str, Any]) -> dict[str, bool | int | float]:
  """Returns the scalar numbers of an info as Python numbers.

  Args:
    info: Info of a step.

  Returns:
    Booleans, integers and floats by key; other values are left out.
  """
  # A bool is also an int. The dict keeps the last matching type, here bool.
  return {
    str(key): number_type(value)
    for key, value in info.items()
    for number_type, numpy_type in _NUMPY_TYPES.items()
    if isinstance(value, (number_type, numpy_type))
  }


def ended(arrays: Mapping[str, np.ndarray]) -> np.ndarray:
  """Returns where an episode has ended or failed, [..., B] bool.

  Args:
    arrays: Fields of `buffer_layout.batch_layout` after steps, [..., B].
  """
  failed = arrays["active"] & ~arrays["valid"]
  return arrays["terminated"] | arrays["truncated"] | failed


def add_reward_parts(parts: dict[str, Any], info: dict[str, Any]) -> None:
  """Adds the `reward_...` numbers of an info to running sums.

  Args:
    parts: Sums by key; modified in place.
    info: Info of a step.
  """
  for key, value in info.items():
    if isinstance(key, str) and key.startswith("reward_") and isinstance(value, _NUMBERS):
      parts[key] = parts.get(key, 0.0) + float(value)


@dataclasses.dataclass(frozen=True, eq=False)
class Episode:
  """A completed episode, with the data for a replay."""

  seed: int
  action: np.ndarray  # [L, ...], as the agent sent them.
  score: float  # Sum of the rewards.
  # Numbers of the last step's info. "reward_parts" contains the sum of each
  # `reward_...` number over the episode.
  info: dict[str, Any]
  environment: int = 0  # Index of the environment within its batch.

  @property
  def length(self) -> int:
    """Number of steps."""
    return len(self.action)

  def __eq__(self, other: object) -> bool:
    return isinstance(other, Episode) and (
      (self.seed, self.score, self.info, self.environment)
      == (other.seed, other.score, other.info, other.environment)
      and np.array_equal(self.action, other.action)
    )


class EpisodeState(NamedTuple):
  """The running episodes of B environments at one moment."""

  episode: np.ndarray  # [B] int64, index of the episode, from 0.
  seed: np.ndarray  # [B] int64
  observ: np.ndarray  # [B, ...], latest observations.
  score: np.ndarray  # [B] float32, sum of the rewards so far.
  first_row: np.ndarray  # [B] int64, row of the first action in `actions`.
  actions: np.ndarray  # [T, B, ...], one row per step.

  def copy(self) -> EpisodeState:
    """Returns a copy that later steps do not change.

    The copy shares `actions`, because recorded actions are never overwritten.
    """
    return EpisodeState._make([*map(np.copy, self[:-1]), self.actions])

  @property
  def length(self) -> np.ndarray:
    """Number of steps of each running episode, [B]."""
    return len(self.actions) - self.first_row

  def episode_actions(self, index: int) -> np.ndarray:
    """Returns the actions of one running episode.

    Args:
      index: Index of the environment.

    Returns:
      Array of shape [steps, ...].
    """
    return self.actions[self.first_row[index] :, index].copy()

  def arrays(self) -> dict[str, np.ndarray]:
    """Returns the arrays of a checkpoint, with all actions concatenated."""
    actions = [self.episode_actions(index) for index in range(len(self.seed))]
    return {
      **{name: getattr(self, name) for name in _NAMES},
      "action": np.concatenate([x for x in actions if len(x)] or [np.zeros(0)]),
    }

  @classmethod
  def from_arrays(cls, arrays: dict[str, np.ndarray]) -> EpisodeState:
    """Rebuilds the state from the result of `arrays`.

    Args:
      arrays: Arrays by name.

    Returns:
      The state.

    Raises:
      KeyError: If an array is missing.
      ValueError: If an array is unknown or the lengths disagree.
    """
    if unknown := sorted(arrays.keys() - {*_NAMES, "action"}):
      raise ValueError(f"Unknown arrays in the checkpoint: {', '.join(unknown)}.")
    length = arrays["length"]
    if length.min() < 0 or length.sum() != len(arrays["action"]):
      raise ValueError(
        "The checkpoint is damaged: the number of actions differs from the "
        "number of steps of the running episodes."
      )
    steps, action = int(length.max()), arrays["action"]
    first = steps - length
    rows = np.zeros((len(length), steps, *action.shape[1:]), action.dtype)
    rows[np.arange(steps) >= first[:, None]] = action
    return cls._make([*(arrays[name].copy() for name in _NAMES[:-1]), first, rows.swapaxes(0, 1)])

  def rows(self, rows: slice) -> EpisodeState:
    """Returns the state of some environments.

    Args:
      rows: Slice of the environments' indices.
    """
    return EpisodeState._make([*(array[rows] for array in self[:-1]), self.actions[:, rows]])
