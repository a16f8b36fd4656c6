"""Many environments as one, with a batch dimension."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

import numpy as np

from agents import spaces
from agents.environments import chosen as chosen_lib
from agents.environments import group as group_lib
from agents.environments import turns as turns_lib
from agents.environments.blocks import base
from agents.environments.blocks import gymnasium_block
from agents.environments.data import buffer_layout
from agents.environments.data import episode_log
from agents.environments.data import episode_statistics
from agents.environments.data import episodes
from agents.environments.data import failure_budget
from agents.environments.data import mujoco_warnings
from agents.environments.workers import pool


class Step(NamedTuple):
  """One step of all B environments.

  Observations of Dict and Tuple spaces are arrays with a field for each part,
  such as `observ["camera"]` or `observ["0"]`, see `agents.spaces`.
  """

  observ: np.ndarray  # [B, ...], to act on; a reset one where an episode ended.
  next_observ: np.ndarray  # [B, ...], the true successor, never a reset.
  reward: np.ndarray  # [B] float32
  terminated: np.ndarray  # [B] bool, no future reward exists.
  truncated: np.ndarray  # [B] bool, stopped although it could go on.
  valid: np.ndarray  # [B] bool, false where the row must not be learned from.


class Rollout(NamedTuple):
  """T steps of all B environments; a row where it is not valid never happened.
  """

  observ: np.ndarray  # [T, B, ...], that the policy acted on.
  action: np.ndarray  # [T, B, ...], as it chose them.
  next_observ: np.ndarray  # [T, B, ...], the true successor, never a reset.
  reward: np.ndarray  # [T, B] float32
  terminated: np.ndarray  # [T, B] bool
  truncated: np.ndarray  # [T, B] bool
  valid: np.ndarray  # [T, B] bool


class BatchEnv:
  """Environments that start, step and end their episodes side by side.

  Every episode begins with a seed derived from (run seed, index, episode
  number), so nothing depends on how the environments share the workers. The
  actions of running episodes are kept; `restore` rebuilds a `snapshot` of them.

  In several groups, some environments can step while actions are chosen for
  others: `exchange` begins a step of one group and returns what came of the
  last step of the next one, so that groups take turns.

  Args:
    constructors: Functions without arguments that return environments whose
      spaces are alike.
    workers: Processes to step them in; None steps them in this process.
    seed: Run seed.
    groups: Into how many groups of equal size they are divided.
    incidents: How many episodes may be broken off because their environment
      failed in a step, or did not begin; by default as many as the workers
      have, without workers none. Such a step is not valid, and the next episode
      begins.
    infos: Whether to keep what each step and reset says in its info, as
      `infos` and `reset_infos`.
    lazy: Whether to build the environments when they are needed. One is built
      and closed at once in any case, for its spaces.
    block: Steps a group in this process, where there are no workers.
    rows: Which of the environments are stepped here, B of them; by default
      all. Others are stepped elsewhere; `snapshot` wants to be told of them.
  """

  def __init__(self, constructors: Sequence[base.Constructor],
               workers: pool.WorkerPool | None = None, seed: int = 0,
               groups: int = 1,
               incidents: failure_budget.FailureBudget | None = None,
               infos: bool = False, lazy: bool = False,
               block: Callable[..., Any] = gymnasium_block.Block,
               rows: slice | None = None):
    self.rows = rows or slice(0, len(constructors))
    self._size = self.rows.stop - self.rows.start
    if not self._size:
      raise ValueError("A batch needs at least one environment.")
    if groups < 1 or self._size % groups:
      raise ValueError(f"{self._size} environments can't be divided "
                       f"into {groups} groups of equal size.")
    self.whole = len(constructors)  # Environments, here and elsewhere.
    mujoco_warnings.capture()
    probe = constructors[0]()
    try:
      self.observation_space = probe.observation_space
      self.action_space = probe.action_space
    finally:
      probe.close()
    spaces.check(self.observation_space, self.action_space)
    self.groups = groups
    size = self._size // groups
    # Of one group.
    self.action_layout = buffer_layout.action_layout(size, self.action_space)
    self.step_layout = buffer_layout.step_layout(size, self.observation_space)
    # How many of them step at the same time.
    self.parallel = 1 if workers is None else min(len(workers), self._size)
    if workers is not None:
      incidents = workers.incidents  # Of all batches together.
    self.incidents = incidents or failure_budget.FailureBudget()
    self.is_closed = False
    self._constructors = list(constructors)
    self._workers = workers
    self._block = block
    # Of blocks: seed, whether to survive failures, whether to report infos.
    self._options = seed, self.incidents.most > 0, infos
    self._log = episode_log.EpisodeLog(seed, self.whole, self.rows)
    self._outcomes = episode_statistics.Outcomes(
        self._log, self.incidents, self.whole, self.parallel, infos)
    self._turns = turns_lib.Turns(self._log, self._outcomes)
    if not lazy:
      self._open()

  def _open(self):
    """Build all environments."""
    size = self._size // self.groups
    try:
      for first in range(self.rows.start, self.rows.stop, size):
        self._turns.groups.append(group_lib.open_group(
            str(self._constructors[0]), self._constructors[first:first + size],
            first, (self.observation_space, self.action_space), self._log,
            self._workers, self._block, self._options))
    except BaseException:
      self.close()
      raise

  def __len__(self) -> int:
    return self._size

  @property
  def finished(self) -> list[episodes.Episode]:
    """Episodes that ended, in order of time; yours to empty."""
    return self._outcomes.finished

  @property
  def final_observ(self) -> list[np.ndarray]:
    """Last observations of these episodes, each [...]; yours to empty, too."""
    return self._outcomes.final_observ

  @property
  def step_seconds(self) -> float:
    """Time spent waiting for the environments."""
    return self._outcomes.step_seconds

  @property
  def least_seconds(self) -> float:
    """What it would have been, had all workers been stepping all the time."""
    return self._outcomes.least_seconds

  @property
  def infos(self) -> list[dict[str, Any]]:
    """Those of the latest steps, also where these ended an episode."""
    return self._outcomes.infos[self.rows]

  @property
  def reset_infos(self) -> list[dict[str, Any]]:
    """Those of the resets that began the running episodes."""
    return self._outcomes.reset_infos[self.rows]

  def reset(self, seeds: Sequence[int] | None = None,
            indices: Sequence[int] | None = None) -> np.ndarray:
    """Begin episode 0 of every environment, or the next one of some.

    Args:
      seeds: One for each of these episodes; derived from the run seed by
        default, as those of all later episodes are.
      indices: Environments that break off their episodes and begin their next
        ones, while the others stay where they are.
    Returns:
      Observations of shape [B, ...].
    """
    amount = self._size if indices is None else len(indices)
    if seeds is not None and len(seeds) != amount:
      raise ValueError(f"`seeds` must hold {amount} numbers, one for each "
                       f"environment. Received: {len(seeds)}.")
    if indices is None:
      return self._opened.reset(seeds)
    indices = chosen_lib.Chosen(self.rows, indices).indices
    if not (self._turns.even and self._log.begun):
      raise RuntimeError("Only where all environments have begun, and none is "
                         "ahead of others, can some of them be reset.")
    if seeds is None:
      seeds = [self._log.next_seed(index) for index in indices]
    return self._opened.begin_next(dict(zip(indices, seeds, strict=True)))

  def step(self, action: np.ndarray, active: np.ndarray | None = None) -> Step:
    """Step the environments, and begin a new episode where one ended.

    Args:
      action: Array of shape [B, ...]; floats in [-1, 1] or integers from 0.
      active: Bool array of shape [B], by default all true. The others wait,
        which they can only before the first step of an episode.
    """
    active = np.ones(self._size, bool) if active is None else active
    shape = self.action_layout.fields[0].shape[1:]
    for name, array, expected in (("action", action, (self._size, *shape)),
                                  ("active", active, (self._size,))):
      if np.shape(array) != expected:
        raise ValueError(f"`{name}` must have shape {expected}. "
                         f"Received: {np.shape(array)}.")
    if self._turns.ahead:
      raise RuntimeError("Some environments are ahead of others; only "
                         "`exchange` can go on from here.")
    groups = self._opened.groups
    if self._log.begun:
      for group in groups:  # Before any of them begins its step.
        group.check_active(active[self._here(group)])
    answers = [self.exchange(action[self._here(group)],
                             active[self._here(group)]) for group in groups]
    answers = [*answers[self.groups - 1:], *self.drain()]
    views = [self.step_layout.views(packed) for packed in answers]
    fields = {name: np.concatenate([view[name] for view in views])
              for name in views[0]}
    next_observ = fields["observ"].copy()
    for group in groups:
      ended = group.arrays["terminated"] | group.arrays["truncated"]
      next_observ[self._here(group)][ended] = (
          group.arrays["final_observ"][ended])
    return Step(next_observ=next_observ, **fields)

  def exchange(self, action: np.ndarray, active: np.ndarray | None = None
               ) -> np.ndarray:
    """Begin a step of the group whose turn it is, and end one of the next.

    That is the same step if there is one group. Of a group that has not begun a
    step, only the observations are of any use.

    Args:
      action: Array of shape [N, ...] for a group of N; see `step`.
      active: Bool array of shape [N].
    Returns:
      Bytes of `step_layout`, a new array. True successors are the
      observations, and `final_observ` where an episode ended.
    """
    return self._opened.exchange(action, active)

  def drain(self) -> list[np.ndarray]:
    """End the steps of all groups that are stepping, in order of their turns.

    Returns:
      For each, what `exchange` would have returned.
    """
    return self._turns.drain()

  def part(self) -> episodes.Part:
    """Return what `snapshot` elsewhere needs to know of this moment."""
    return self._log.part(self._opened.observ)

  def snapshot(self, elsewhere: Sequence[episodes.Part] = (),
               actions: np.ndarray | None = None) -> episodes.EpisodeState:
    """Return seeds and actions of the running episodes.

    Args:
      elsewhere: Where all environments are that are not stepped here.
      actions: What all B have done since the snapshot before, [T, B, ...].
    Raises:
      RuntimeError: If a step has failed or is under way, so that some
        environments have gone on and others haven't.
    """
    if not self._turns.even:
      raise RuntimeError("There is no snapshot of half a step.")
    observ = self._opened.observ
    if elsewhere:
      here, observ = observ, np.zeros(
          (self.whole, *observ.shape[1:]), observ.dtype)
      observ[self.rows] = here
    if actions is not None:
      actions = spaces.from_bytes(
          actions, self.action_layout.fields[0].dtype)
    for part in elsewhere:
      self._log.adopt(part, actions)
      observ[part.rows] = part.observ
    return self._log.snapshot(observ)

  def restore(self, running: episodes.EpisodeState) -> bool:
    """Rebuild running episodes by replaying them.

    Returns:
      Whether they go on; where nothing repeats, as in EnvPool, the episodes
      behind them begin.
    Raises:
      ReplayError: If the last observations are not the same bits as before.
    """
    if len(running.seed) != self.whole:
      raise ValueError(f"The episodes are of {len(running.seed)} "
                       f"environments, the batch has {self.whole}.")
    return self._opened.restore(running)

  def rollout(self, policy: Callable[[np.ndarray], np.ndarray], steps: int
              ) -> Rollout:
    """Let a policy act for a while, from where the environments are.

    Args:
      policy: From observations of shape [B, ...] to actions of shape [B, ...].
      steps: Number of batched steps, T.
    """
    if steps < 1:
      raise ValueError(f"`steps` must be at least 1. Received: {steps}.")
    observ = self._opened.observ if self._log.begun else self.reset()
    dtype, taken = self.action_layout.fields[0].dtype, []
    for _ in range(steps):
      action = spaces.converted(policy(observ), dtype)
      observed, step = observ, self.step(action)
      taken.append((observed, action.copy(), step.next_observ, step.reward,
                    step.terminated, step.truncated, step.valid))
      observ = step.observ
    return Rollout(*map(np.stack, zip(*taken, strict=True)))

  def call(self, name: str, /, *args, indices: Sequence[int] | None = None,
           **kwargs) -> list[Any]:
    """Call a method of all environments, or of some, and return the results.

    Args:
      name: Of the method; it is looked for in wrappers, too.
      args: Of the method.
      indices: Whose method, in which order; all by default.
      kwargs: Of the method. (One named `indices` it can only get through
        `args`.)
    """
    return chosen_lib.Chosen(self.rows, indices).ask(
        self._opened.at_rest, lambda block, chosen: block.call(
            name, args, kwargs, chosen))

  def get(self, name: str, indices: Sequence[int] | None = None) -> list[Any]:
    """Return an attribute of all environments, or of some."""
    return chosen_lib.Chosen(self.rows, indices).ask(
        self._opened.at_rest, lambda block, chosen: block.get(name, chosen))

  def set(self, name: str, values: Sequence[Any],
          indices: Sequence[int] | None = None):
    """Set an attribute of all environments, or of some.

    It is gone when an environment is built anew, because it failed or its
    worker died. What has to last belongs into the constructor.

    Args:
      name: Of the attribute.
      values: One for each of the environments.
      indices: Which environments; all by default.
    """
    amount = self._size if indices is None else len(indices)
    if len(values) != amount:
      raise ValueError(f"`values` must hold {amount}, one for each "
                       f"environment. Received: {len(values)}.")
    chosen_lib.Chosen(self.rows, indices).set(
        self._opened.at_rest, name, values)

  def close(self):
    """Close every environment. Can be repeated."""
    self.is_closed = True
    self._turns.close()

  def __enter__(self) -> BatchEnv:
    return self

  def __exit__(self, *_):
    self.close()

  def _here(self, group: group_lib.Group) -> slice:
    """Return where a group is among the environments that are stepped here."""
    first = self.rows.start
    return slice(group.rows.start - first, group.rows.stop - first)

  @property
  def _opened(self) -> turns_lib.Turns:
    if self.is_closed:
      raise RuntimeError("The environments are closed.")
    if not self._turns.groups:
      self._open()
    return self._turns
