"""Keeps what the running episodes are while they are played."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from agents.environments.data import episodes


class EpisodeLog:
  """Keeps seed and actions of the running episodes while they are played.

  Whole batches of actions are kept, one step after the other in one array, so
  that recording a step, and reading an episode, cost one copy. The array has
  room for steps to come; what began before every running episode is forgotten.

  Args:
    run_seed: Seed from which the episodes' seeds are derived.
    amount: Number of environments, B.
    rows: Which of them record their steps here; all by default. What becomes
      of the others is told by `adopt`.
  """

  def __init__(self, run_seed: int, amount: int, rows: slice | None = None):
    self._run_seed = run_seed
    self._amount = amount
    self._rows = rows or slice(0, amount)
    self._running: episodes.EpisodeState | None = None
    self._room = np.zeros(0)  # The running actions end at `_end` of its rows.
    self._end = 0
    self._recorded = amount  # Environments that have recorded the last step.

  def begin(self, seeds: Sequence[int] | None = None) -> list[int]:
    """Return the seed of every environment's episode 0.

    Args:
      seeds: Of those environments that record here, if it is not the default.
    """
    amount = self._amount
    all_seeds = [episodes.episode_seed(self._run_seed, index, 0)
                 for index in range(amount)]
    if seeds is not None:
      all_seeds[self._rows] = seeds
    self.load(episodes.EpisodeState(
        np.zeros(amount, np.int64), np.array(all_seeds, np.int64), np.zeros(0),
        np.zeros(amount, np.float32), np.zeros(amount, np.int64),
        np.zeros((0, amount))))
    return all_seeds

  def append(self, first: int, action: np.ndarray, active: np.ndarray,
             reward: np.ndarray, ended: np.ndarray
             ) -> dict[int, episodes.Episode]:
    """Record a step of the N environments that begin with `first`.

    All environments record one step before any records the next, those with
    smaller indices first.

    Args:
      first: Index of the first of them.
      action: Array of shape [N, ...], as sent to the environments.
      active: Bool array of shape [N]; the others wait to begin their episode.
      reward: Array of shape [N].
      ended: Bool array of shape [N]; these have begun their next episode.
    Returns:
      The episodes that ended, by index, still without their info.
    """
    rows = slice(first, first + len(action))
    if first == self._rows.start:
      self._add_row((self._amount, *action.shape[1:]), action.dtype)
    running = self.running
    running.actions[-1, rows] = action
    self._recorded = rows.stop
    score = running.score[rows]
    score += reward
    finished = {}
    fresh = ended | ~active
    if fresh.any():
      for index in (first + np.flatnonzero(ended)).tolist():
        finished[index] = episodes.Episode(
            int(running.seed[index]), running.episode_actions(index),
            float(running.score[index]), {})
        self._number(index, self.next_seed(index))
      score[ended] = 0
      running.first[rows][fresh] = len(running.actions)
      oldest = running.first.min()
      running.first[:] -= oldest
      self._running = running._replace(actions=running.actions[oldest:])
    return finished

  def skip(self, index: int) -> int:
    """Go on to an environment's next episode, as one could not begin.

    Returns:
      The seed of the one that could not.
    """
    seed = int(self.running.seed[index])
    self._number(index, self.next_seed(index))
    return seed

  def break_off(self, index: int, seed: int):
    """Go on to an environment's next episode, which has begun with this seed.
    """
    self._number(index, seed)
    self.running.score[index] = 0
    self.running.first[index] = len(self.running.actions)

  def next_seed(self, index: int) -> int:
    """Return the seed that an environment's next episode has by default."""
    return episodes.episode_seed(
        self._run_seed, index, int(self.running.episode[index]) + 1)

  def _number(self, index: int, seed: int):
    self.running.episode[index] += 1
    self.running.seed[index] = seed

  def _add_row(self, shape: tuple[int, ...], dtype: np.dtype):
    """Lengthen the running actions by a step, whose actions are still unset.

    Never overwrites what was taken, as snapshots look at it.
    """
    running, amount = self.running, len(self.running.actions)
    if self._end == len(self._room):
      self._room = np.empty((max(2 * amount, 64), *shape), dtype)
      if amount:
        self._room[:amount] = running.actions
      self._end = amount
    self._end += 1
    self._running = running._replace(
        actions=self._room[self._end - amount - 1:self._end])

  def skip_all(self) -> list[int]:
    """Go on to all environments' next episodes; return the seeds of these."""
    running, seeds = self.running, []
    for index in range(self._amount):
      self.skip(index)
      seeds.append(int(running.seed[index]))
    running.score[:] = 0
    running.first[:] = 0
    self._running = running._replace(actions=running.actions[:0])
    return seeds

  def history(self, rows: slice
              ) -> tuple[list[int], list[int], list[np.ndarray]]:
    """Return number, seed and actions of the running episodes of some rows."""
    running, range_ = self.running, range(self._amount)[rows]
    actions = []
    for index in range_:
      taken = running.episode_actions(index)
      # Others may be a step ahead.
      actions.append(taken if index < self._recorded else taken[:-1])
    return (running.episode[rows].tolist(), running.seed[rows].tolist(),
            actions)

  @property
  def running(self) -> episodes.EpisodeState:
    """The present moment, without observations, to be asked for every step."""
    assert self._running is not None
    return self._running

  @property
  def begun(self) -> bool:
    """Whether there are episodes at all."""
    return self._running is not None

  def snapshot(self, observ: np.ndarray) -> episodes.EpisodeState:
    """Return the present moment, of which the latest observations are given."""
    return self.running.copy()._replace(observ=observ)

  def part(self, observ: np.ndarray) -> episodes.Part:
    """Return the present moment of the environments that record here.

    Args:
      observ: Their latest observations, [N, ...].
    """
    running, rows = self.running, self._rows
    return episodes.Part(
        rows, running.episode[rows], running.seed[rows], observ,
        running.score[rows], running.length[rows])

  def adopt(self, part: episodes.Part, actions: np.ndarray | None):
    """Take over what has become of environments that do not record here.

    They have made as many steps, or are where an episode begins.

    Args:
      part: Of these environments.
      actions: The latest of all environments, [T, B, ...]; None if the log
        knows them.
    """
    running, rows = self.running, part.rows
    running.episode[rows], running.seed[rows] = part.episode, part.seed
    running.score[rows] = part.score
    running.first[rows] = len(running.actions) - part.length
    if actions is None:
      return
    steps = min(len(running.actions), len(actions))
    running.actions[len(running.actions) - steps:, rows] = (
        actions[len(actions) - steps:, rows])

  def load(self, running: episodes.EpisodeState):
    """Continue from a snapshot."""
    self._running = running.copy()
    # There is no room, so that a step is recorded elsewhere.
    self._room, self._end = running.actions, len(running.actions)
    self._recorded = self._amount
