"""An episode is (seed, actions): enough to rebuild any state by replay."""

from __future__ import annotations

import dataclasses
from typing import Any
from typing import NamedTuple

import numpy as np


def episode_seed(run_seed: int, index: int, episode: int) -> int:
  """Seed of one episode of one environment, in [0, 2^31).

  Args:
    run_seed: Seed of the run.
    index: Environment within the batch.
    episode: Number of the episode within that environment, from 0.
  """
  sequence = np.random.SeedSequence(run_seed, spawn_key=(index, episode))
  # Simulators that keep the seed in a C int want 31 bits.
  return int(sequence.generate_state(1)[0]) & 0x7FFFFFFF


@dataclasses.dataclass(frozen=True, eq=False)
class Episode:
  """An episode that was played to its end, and all it takes to play it again.
  """

  seed: int
  action: np.ndarray  # [L, ...], as the agent chose them.
  score: float  # Sum of its rewards.
  info: dict[str, Any]  # Numbers in that of its last step; "reward_parts" are
                        # sums of what the environment reports as `reward_...`.

  @property
  def length(self) -> int:
    """Steps."""
    return len(self.action)

  def __eq__(self, other: object) -> bool:
    return isinstance(other, Episode) and (
        (self.seed, self.score, self.info) == (
            other.seed, other.score, other.info)
        and np.array_equal(self.action, other.action))


class EpisodeState(NamedTuple):
  """The running episode of every environment, at one moment."""

  episode: np.ndarray  # [B] int64, its number, from 0.
  seed: np.ndarray  # [B] int64
  observ: np.ndarray  # [B, ...], the latest.
  score: np.ndarray  # [B] float32, sum of its rewards so far.
  first: np.ndarray  # [B] int64, position of its first action in `actions`.
  actions: np.ndarray  # [T, B, ...], one row for each step.

  def copy(self) -> EpisodeState:
    """Return what stays as it is; actions that were taken never change."""
    return EpisodeState(self.episode.copy(), self.seed.copy(), self.observ.copy(),
                   self.score.copy(), self.first.copy(), self.actions)

  @property
  def length(self) -> np.ndarray:
    """Steps of each episode so far, [B]."""
    return len(self.actions) - self.first

  def episode_actions(self, index: int) -> np.ndarray:
    """Return one environment's actions, of shape [steps, ...]."""
    return self.actions[self.first[index]:, index].copy()

  def arrays(self) -> dict[str, np.ndarray]:
    """Return what a checkpoint holds; actions lie one after the other."""
    actions = [self.episode_actions(index) for index in range(len(self.seed))]
    return {
        "episode": self.episode, "seed": self.seed, "observ": self.observ,
        "score": self.score, "length": self.length,
        "action": np.concatenate([x for x in actions if len(x)] or [
            np.zeros(0)])}

  @classmethod
  def from_arrays(cls, arrays: dict[str, np.ndarray]) -> EpisodeState:
    """Undo `arrays`.

    Raises:
      KeyError: If some are missing.
      ValueError: If there are others, or they do not fit each other.
    """
    names = {"episode", "seed", "observ", "score", "length", "action"}
    if unknown := sorted(arrays.keys() - names):
      raise ValueError(f"Nobody knows what {', '.join(unknown)} would be.")
    length = arrays["length"]
    if length.min() < 0 or length.sum() != len(arrays["action"]):
      raise ValueError("There are more actions than steps, or less.")
    steps, action = int(length.max()), arrays["action"]
    first = steps - length
    rows = np.zeros((steps, len(length), *action.shape[1:]), action.dtype)
    for index, actions in enumerate(
        np.split(action, np.cumsum(length)[:-1])):
      if len(actions):
        rows[first[index]:, index] = actions
    return cls(arrays["episode"].copy(), arrays["seed"].copy(),
               arrays["observ"].copy(), arrays["score"].copy(), first, rows)


class Part(NamedTuple):
  """The running episodes of those N environments that one machine steps."""

  rows: slice  # Where they are within the batch.
  episode: np.ndarray  # [N] int64, as all else like that of `EpisodeState`.
  seed: np.ndarray  # [N] int64
  observ: np.ndarray  # [N, ...]
  score: np.ndarray  # [N] float32
  length: np.ndarray  # [N] int64
