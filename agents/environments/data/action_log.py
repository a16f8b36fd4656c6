"""Records seeds and actions of the running episodes."""

import types
from collections.abc import Mapping, Sequence

import numpy as np

from agents.environments.blocks import base
from agents.environments.data import episode_data
from agents.environments.data import failure_budget as failure_budget_lib


class ActionLog:
  """Records the running episodes of B environments, and collects ended ones.

  One array contains the actions of all environments, with one row per step.
  Recording a step and reading an episode therefore cost one copy each. The
  array has spare rows for later steps. Recorded rows are never overwritten,
  because snapshots share them. A new array replaces a full one, and omits the
  steps before the oldest running episode.

  Args:
    run_seed: Seed from which the episodes' seeds are derived.
    size: Number of environments, B.
    first: Index of the first environment within the batch of the run.
    failure_budget: Limits the episodes that may fail; by default, none may.

  Attributes:
    begun: Whether `begin` or `load` has been called.
    first: Index of the first environment within the batch of the run.
  """

  def __init__(
    self,
    run_seed: int,
    size: int,
    first: int = 0,
    failure_budget: failure_budget_lib.FailureBudget | None = None,
  ) -> None:
    self._run_seed = run_seed
    self._size = size
    self.first = first
    self._failure_budget = failure_budget or failure_budget_lib.FailureBudget()
    self._finished: list[episode_data.Episode] = []
    self._final_observ: list[np.ndarray] = []
    self.begun = False
    # Every step changes these arrays. Actions are recorded up to row `_end`,
    # exclusively.
    self._running: episode_data.EpisodeState
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
      seeds = [
        episode_data.episode_seed(self._run_seed, self.first + index, 0) for index in range(size)
      ]
    self.load(
      episode_data.EpisodeState(
        np.zeros(size, np.int64),
        np.array(seeds, np.int64),
        np.zeros(0),
        np.zeros(size, np.float32),
        np.zeros(size, np.int64),
        np.zeros((0, size)),
      )
    )
    return list(seeds)

  def record_step(
    self, arrays: dict[str, np.ndarray], reports: Mapping[int, base.StepReport], may_wait: bool
  ) -> None:
    """Records one step of all environments and its reports.

    Args:
      arrays: Fields of the batch's buffer after the step.
      reports: Reports of episodes that ended or failed, by index in the run's
        batch.
      may_wait: Whether some environments may be inactive.

    Raises:
      EnvironmentFailure: If more episodes fail than the budget allows.
    """
    ended = episode_data.ended(arrays) if reports or may_wait else None  # None in most steps.
    next_seeds = {
      index - self.first: report.next_seed
      for index, report in reports.items()
      if report.next_seed and not report.failed_resets
    }
    finished = self.record(arrays["action"], arrays["active"], arrays["reward"], ended, next_seeds)
    for offset, episode in finished.items():
      report = reports[self.first + offset]
      if isinstance(report.outcome, str):
        self._fail(report.outcome, offset, episode.seed, episode.action)
      else:
        episode.info.update(report.outcome)
        self._finished.append(episode)
        self._final_observ.append(arrays["final_observ"][offset].copy())
      for text in report.failed_resets:
        self._fail(text, offset, self.begin_next(offset), episode.action[:0])

  def take_finished(self) -> list[episode_data.Episode]:
    """Returns the episodes that ended since the previous call, in order."""
    finished, self._finished = self._finished, []
    return finished

  def take_final_observ(self) -> list[np.ndarray]:
    """Returns the final observations of ended episodes since the previous call.

    Returns:
      One array of shape [...] per episode, in order of time.
    """
    final_observ, self._final_observ = self._final_observ, []
    return final_observ

  def record(
    self,
    action: np.ndarray,
    active: np.ndarray,
    reward: np.ndarray,
    ended: np.ndarray | None,
    next_seeds: Mapping[int, int] = types.MappingProxyType({}),
  ) -> dict[int, episode_data.Episode]:
    """Records one step of all environments.

    Args:
      action: Array of shape [B, ...], as sent to the environments.
      active: Bool array of shape [B], false for environments that wait before
        the first step of their episode.
      reward: Array of shape [B].
      ended: Bool array of shape [B], true where an episode ended and the next
        one has begun. None if no episode has ended and all environments are
        active.
      next_seeds: Seeds of next episodes by index of the environment. Missing
        seeds are derived from the run seed.

    Returns:
      The episodes that ended, by index, with empty infos.
    """
    if self._end == len(self._running.actions):
      self._add_rows(action)
    running = self._running
    running.actions[self._end] = action
    self._end += 1
    np.add(running.score, reward, out=running.score)
    finished: dict[int, episode_data.Episode] = {}
    if ended is not None:
      for index in np.flatnonzero(ended).tolist():
        actions = running.actions[running.first_row[index] : self._end, index].copy()
        score = float(running.score[index])
        seed = self.begin_next(index, next_seeds.get(index))
        finished[index] = episode_data.Episode(seed, actions, score, {}, self.first + index)
      running.first_row[~active] = self._end
    return finished

  def begin_next(self, index: int, seed: int | None = None) -> int:
    """Records that an environment's next episode has begun.

    Args:
      index: Index of the environment.
      seed: Seed of the next episode, by default derived from the run seed.

    Returns:
      Seed of the previous episode.
    """
    running = self._running
    previous = int(running.seed[index])
    running.seed[index] = self.next_seed(index) if seed is None else seed
    running.episode[index] += 1
    running.score[index] = 0
    running.first_row[index] = self._end
    return previous

  def next_seed(self, index: int) -> int:
    """Returns the default seed of an environment's next episode.

    Args:
      index: Index of the environment.

    Returns:
      Integer in [0, 2^31).
    """
    return episode_data.episode_seed(
      self._run_seed, self.first + index, int(self._running.episode[index]) + 1
    )

  @property
  def length(self) -> np.ndarray:
    """Number of steps of each running episode, [B]."""
    return self._end - self._running.first_row

  @property
  def state(self) -> episode_data.EpisodeState:
    """Running episodes without observations; later steps change the arrays."""
    running = self._running
    oldest = running.first_row.min()
    actions = running.actions[oldest : self._end]
    return running._replace(first_row=running.first_row - oldest, actions=actions)

  def snapshot(self, observ: np.ndarray) -> episode_data.EpisodeState:
    """Returns a copy of the running episodes.

    Args:
      observ: Latest observations, [B, ...].

    Returns:
      State that later steps do not change.
    """
    return self.state.copy()._replace(observ=observ)

  def load(self, state: episode_data.EpisodeState) -> None:
    """Continues from a snapshot.

    Args:
      state: Running episodes of the B environments.
    """
    # This array has no spare rows, so the next step allocates a new array.
    self._running, self._end = state.copy(), len(state.actions)
    self.begun = True

  def _fail(self, text: str, offset: int, seed: int, action: np.ndarray) -> None:
    failed = failure_budget_lib.FailedEpisode(self.first + offset, seed, action)
    if not self._failure_budget.record(failure_budget_lib.Failure(text, (failed,))):
      raise base.EnvironmentFailure(text)

  def _add_rows(self, action: np.ndarray) -> None:
    """Replaces the full array of actions by an array with spare rows."""
    state = self.state
    steps = len(state.actions)
    actions = np.empty((max(2 * steps, 64), *action.shape), action.dtype)
    if steps:
      actions[:steps] = state.actions
    self._running, self._end = state._replace(actions=actions), steps
