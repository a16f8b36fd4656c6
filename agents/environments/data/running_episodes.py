"""Records seed and actions of the running episodes."""

from collections.abc import Sequence

import numpy as np

from agents.environments.data import episodes


class EpisodeLog:
  """Records seed and actions of the running episodes of B environments.

  The log stores whole batches of actions, one step after the other in one
  array, so that recording a step and reading an episode cost one copy each.
  The array has spare rows for later steps. Rows from before the start of the
  oldest running episode are dropped.

  Args:
    run_seed: Seed from which the episodes' seeds are derived.
    size: Number of environments, B.
    first: Index of the first environment within the batch of the run.

  The attribute `begun` is true while episodes are running.
  """

  def __init__(self, run_seed: int, size: int, first: int = 0):
    self._run_seed = run_seed
    self._size = size
    self._first = first
    self._state: episodes.EpisodeState | None = None
    self.begun = False
    self._storage = np.zeros(0)  # The running actions end at row `_end`.
    self._end = 0

  def begin(self, seeds: Sequence[int] | None = None) -> list[int]:
    """Starts episode 0 of every environment.

    Args:
      seeds: Seeds of these episodes; derived from the run seed by default.

    Returns:
      Seed of each environment's episode 0.
    """
    size = self._size
    if seeds is None:
      seeds = [self._seed(index, 0) for index in range(size)]
    self.load(episodes.EpisodeState(
        np.zeros(size, np.int64), np.array(seeds, np.int64), np.zeros(0),
        np.zeros(size, np.float32), np.zeros(size, np.int64),
        np.zeros((0, size))))
    return list(seeds)

  def record(self, action: np.ndarray, active: np.ndarray, reward: np.ndarray,
             ended: np.ndarray) -> dict[int, episodes.Episode]:
    """Records one step of all environments.

    Args:
      action: Array of shape [B, ...], as sent to the environments.
      active: Bool array of shape [B]; the others wait before their episode.
      reward: Array of shape [B].
      ended: Bool array of shape [B]; these have begun their next episode.

    Returns:
      The episodes that ended, by index, with empty infos.
    """
    self._add_row(action.shape, action.dtype)
    state = self.state
    state.actions[-1] = action
    state.score[:] += reward
    finished = {}
    fresh = ended | ~active
    if fresh.any():
      for index in np.flatnonzero(ended).tolist():
        finished[index] = episodes.Episode(
            int(state.seed[index]), state.episode_actions(index),
            float(state.score[index]), {})
        state.seed[index] = self.next_seed(index)
        state.episode[index] += 1
      state.score[ended] = 0
      state.first[fresh] = len(state.actions)
      oldest = state.first.min()
      state.first[:] -= oldest
      self._state = state._replace(actions=state.actions[oldest:])
    return finished

  def skip(self, index: int) -> int:
    """Advances an environment after the reset of its episode failed.

    Args:
      index: Index of the environment.

    Returns:
      Seed of the skipped episode.
    """
    seed = int(self.state.seed[index])
    self._advance(index, self.next_seed(index))
    return seed

  def break_off(self, index: int, seed: int):
    """Replaces an environment's running episode by its next one.

    Args:
      index: Index of the environment.
      seed: Seed with which the next episode has begun.
    """
    self._advance(index, seed)
    self.state.score[index] = 0
    self.state.first[index] = len(self.state.actions)

  def skip_all(self) -> list[int]:
    """Advances all environments to their next episodes.

    Returns:
      Seeds of these episodes.
    """
    state, seeds = self.state, []
    for index in range(self._size):
      self.skip(index)
      seeds.append(int(state.seed[index]))
    state.score[:] = 0
    state.first[:] = 0
    self._state = state._replace(actions=state.actions[:0])
    return seeds

  def next_seed(self, index: int) -> int:
    """Returns the default seed of an environment's next episode.

    Args:
      index: Index of the environment.

    Returns:
      Integer in [0, 2^31).
    """
    return self._seed(index, int(self.state.episode[index]) + 1)

  def history(self) -> tuple[list[int], list[int], list[np.ndarray]]:
    """Returns number, seed and actions of each running episode."""
    state = self.state
    return (state.episode.tolist(), state.seed.tolist(),
            [state.episode_actions(index) for index in range(self._size)])

  @property
  def state(self) -> episodes.EpisodeState:
    """The running episodes, without observations; changed by every step."""
    assert self._state is not None
    return self._state

  def snapshot(self, observ: np.ndarray) -> episodes.EpisodeState:
    """Returns a copy of the running episodes.

    Args:
      observ: Latest observations, [B, ...].

    Returns:
      State that later steps do not change.
    """
    return self.state.copy()._replace(observ=observ)

  def load(self, state: episodes.EpisodeState):
    """Continues from a snapshot.

    Args:
      state: Running episodes of the B environments.
    """
    self._state = state.copy()
    self.begun = True
    # Without spare rows, the next step allocates an array of its own.
    self._storage, self._end = state.actions, len(state.actions)

  def _seed(self, index: int, episode: int) -> int:
    return episodes.episode_seed(
        self._run_seed, self._first + index, episode)

  def _advance(self, index: int, seed: int):
    self.state.episode[index] += 1
    self.state.seed[index] = seed

  def _add_row(self, shape: tuple[int, ...], dtype: np.dtype):
    """Appends a row for the actions of a step, without initializing it.

    Earlier rows are never overwritten, because snapshots refer to them.
    """
    state, steps = self.state, len(self.state.actions)
    if self._end == len(self._storage):
      self._storage = np.empty((max(2 * steps, 64), *shape), dtype)
      if steps:
        self._storage[:steps] = state.actions
      self._end = steps
    self._end += 1
    self._state = state._replace(
        actions=self._storage[self._end - steps - 1:self._end])
