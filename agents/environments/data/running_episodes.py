"""Records seed and actions of the running episodes."""

from collections.abc import Sequence

import numpy as np

from agents.environments.data import episodes


class EpisodeLog:
  """Records seed and actions of the running episodes of B environments.

  The log stores whole batches of actions, one step after the other in one
  array, so that recording a step and reading an episode cost one copy each.
  The array has spare rows for later steps. Its earlier rows are never
  overwritten, because snapshots refer to them; those from before the start of
  the oldest running episode are dropped when the array is full.

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
    self.begun = False
    # Every step changes these arrays. The recorded actions end at row `_end`.
    self._running: episodes.EpisodeState
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
             ended: np.ndarray | None) -> dict[int, episodes.Episode]:
    """Records one step of all environments.

    Args:
      action: Array of shape [B, ...], as sent to the environments.
      active: Bool array of shape [B]; the others wait before their episode.
      reward: Array of shape [B].
      ended: Bool array of shape [B]; these have begun their next episode. None
        if no episode has ended and all environments are active.

    Returns:
      The episodes that ended, by index, with empty infos.
    """
    if self._end == len(self._running.actions):
      self._add_rows(action)
    running = self._running
    running.actions[self._end] = action
    self._end += 1
    np.add(running.score, reward, out=running.score)
    finished: dict[int, episodes.Episode] = {}
    if ended is None:
      return finished
    for index in np.flatnonzero(ended).tolist():
      actions = running.actions[running.first[index]:self._end, index].copy()
      score = float(running.score[index])
      finished[index] = episodes.Episode(self.skip(index), actions, score, {})
    running.first[~active] = self._end
    return finished

  def skip(self, index: int) -> int:
    """Replaces an environment's episode by its next one, with its own seed.

    Args:
      index: Index of the environment.

    Returns:
      Seed of the skipped episode.
    """
    seed = int(self._running.seed[index])
    self.break_off(index, self.next_seed(index))
    return seed

  def break_off(self, index: int, seed: int):
    """Replaces an environment's running episode by its next one.

    Args:
      index: Index of the environment.
      seed: Seed with which the next episode has begun.
    """
    running = self._running
    running.episode[index] += 1
    running.seed[index] = seed
    running.score[index] = 0
    running.first[index] = self._end

  def skip_all(self) -> list[int]:
    """Advances all environments to their next episodes.

    Returns:
      Seeds of these episodes.
    """
    for index in range(self._size):
      self.skip(index)
    return self._running.seed.tolist()

  def next_seed(self, index: int) -> int:
    """Returns the default seed of an environment's next episode.

    Args:
      index: Index of the environment.

    Returns:
      Integer in [0, 2^31).
    """
    return self._seed(index, int(self._running.episode[index]) + 1)

  @property
  def length(self) -> np.ndarray:
    """Number of steps of each running episode, [B]."""
    return self._end - self._running.first

  @property
  def state(self) -> episodes.EpisodeState:
    """The running episodes, without observations; changed by every step."""
    running = self._running
    oldest = running.first.min()
    return running._replace(first=running.first - oldest,
                            actions=running.actions[oldest:self._end])

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
    # Without spare rows, the next step allocates an array of its own.
    self._running, self._end = state.copy(), len(state.actions)
    self.begun = True

  def _seed(self, index: int, episode: int) -> int:
    return episodes.episode_seed(
        self._run_seed, self._first + index, episode)

  def _add_rows(self, action: np.ndarray):
    """Replaces the full array of actions by one with spare rows."""
    state = self.state
    steps = len(state.actions)
    actions = np.empty((max(2 * steps, 64), *action.shape), action.dtype)
    if steps:
      actions[:steps] = state.actions
    self._running, self._end = state._replace(actions=actions), steps
