"""Steps a block of environments and writes what they return into arrays.

A worker process holds one block of every batch; the serial mode holds the
whole batch as one block. Both run this same code.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

import gymnasium
import numpy as np

from agents import spaces as spaces_lib
from agents.environments.blocks import base
from agents.environments.blocks import mujoco_block
from agents.environments.blocks import mujoco_tasks
from agents.environments.data import buffer_layout
from agents.environments.data import episodes
from agents.environments.making import action_scaling
from agents.environments.making import wrappers

_MOST_RESETS = 10  # In a row that may fail, before that is an error.

# By offset within the block, of what ended and what failed; see `Report`.
Outcomes = dict[int, dict[str, Any] | str]


class Report(NamedTuple):
  """What became of an episode, and of those that should have followed."""

  # Numbers of the last info, with sums of what the environment reports of the
  # reward under "reward_parts"; where the step failed, what there is to say.
  outcome: dict[str, Any] | str
  skipped: tuple[str, ...] = ()  # Why the next episodes did not begin.
  # Where infos are asked for: that of the step, and of the reset behind it.
  info: dict[str, Any] | None = None
  reset_info: dict[str, Any] | None = None


class Block(base.BlockBase):
  """Environments `first` to `first + len(constructors)` of a batch.

  Args:
    constructors: Functions without arguments that return environments.
    first: Index of the first one within the batch.
    spaces: Observation and action space that all must have.
    arrays: Fields of `layout.batch_views` for these environments only.
    run_seed: Seed from which each episode's own seed is derived.
    tolerant: Where an environment raises in a step or in the reset behind it,
      or returns what is not finite, build another and go on with the next
      episode.
    infos: Whether to report what each step and each reset says in its info.
    alive: Called after each environment that was built or reset, and each step
      that was replayed.
  """

  views = staticmethod(buffer_layout.batch_views)
  repeats = True  # Seed and actions of an episode are enough to rebuild it.

  def __init__(
      self, constructors: Sequence[base.Constructor], first: int,
      spaces: tuple[gymnasium.Space, gymnasium.Space],
      arrays: dict[str, np.ndarray], run_seed: int, tolerant: bool = False,
      infos: bool = False, alive: Callable[[], None] = lambda: None):
    self._tolerant = tolerant
    self._infos = infos
    self._arrays = arrays
    self._run_seed = run_seed
    self._to_env = action_scaling.action_converter(spaces[1])
    self._observed = spaces_lib.columns(arrays["observ"])
    self._observe = spaces_lib.writer(spaces[0], arrays["observ"])
    self._episodes = [0] * len(constructors)
    self._reward_parts: list[dict[str, float]] = [{} for _ in constructors]
    self._reset_infos: list[dict[str, Any]] = [{} for _ in constructors]
    super().__init__(constructors, first, spaces, alive)
    # Where infos are asked for, each environment has to tell its own.
    self._robots = None if infos else mujoco_block.of(self._envs)
    self._limits: list[tuple[int, int | None]] = [(0, None)] * len(self._envs)

  def reset(self, seeds: Sequence[int]) -> list[dict[str, Any]]:
    """Begin episode 0 of every environment with the given seeds.

    Returns:
      For each, its info if that is asked for.
    """
    for offset, seed in enumerate(seeds):
      self._episodes[offset] = 0
      self._begin(offset, int(seed))
    return self._reset_infos

  def begin_next(self, seeds: Sequence[int | None]) -> list[dict[str, Any]]:
    """Break off the episodes for whose followers there are seeds; see `reset`.
    """
    for offset, seed in enumerate(seeds):
      if seed is not None:
        self._episodes[offset] += 1
        self._begin(offset, int(seed))
    return self._reset_infos

  def step_async(self):
    """Begin a step, which is nothing where `step_wait` does all of it."""

  def step_discard(self, seconds: float | None = None):
    """End a step that nobody wants to know of any more."""

  def step_wait(self) -> dict[int, Report]:
    """Step by the action array, write the others, reset where it ended.

    Environments that are not active wait: their observation stays.

    Returns:
      What is to be said of episodes that ended, by index in the batch. Where
      an environment failed, its step is not valid.
    """
    start = time.perf_counter()
    arrays = self._arrays
    actions = self._to_env(arrays["action"])
    observs, rewards = arrays["observ"], arrays["reward"]
    active = arrays["valid"][:] = arrays["active"]
    for name in ("reward", "terminated", "truncated"):
      arrays[name][:] = 0
    offsets = np.flatnonzero(active).tolist()
    infos: dict[int, dict[str, Any]] = {}  # By offset.
    if self._robots:
      outcomes = self._step_robots(self._robots, offsets, actions)
    else:
      outcomes, infos = self._step_each(offsets, actions)
    for offset in self._not_finite():
      if not isinstance(outcomes.get(offset), str):
        self._lengths[offset] -= 1  # It is this step that failed.
        outcomes[offset] = self._failed(ValueError(
            f"The observation {observs[offset]!r} or the reward "
            f"{rewards[offset]!r} is not finite. Did the simulation become "
            "unstable?"), offset)
    reports = {self._first + offset: Report({}, (), info)
               for offset, info in infos.items()}
    for offset, outcome in outcomes.items():
      if isinstance(outcome, str):
        for name in ("valid", "reward", "terminated", "truncated"):
          arrays[name][offset] = 0
        self._replace(offset)
      else:
        arrays["final_observ"][offset] = observs[offset]
      skipped = tuple(self._begin_next(offset))
      reports[self._first + offset] = Report(
          outcome, skipped, infos.get(offset), self._reset_infos[offset])
    arrays["seconds"][:] = (time.perf_counter() - start) / len(self._envs)
    return reports

  def replay(self, episode: Sequence[int], seeds: Sequence[int],
             actions: Sequence[np.ndarray]):
    """Rebuild running episodes from their seeds and actions.

    Args:
      episode: Number of each environment's running episode.
      seeds: What each was begun with.
      actions: For each, its actions so far, of shape [steps, ...].
    """
    for offset, env in enumerate(self._envs):
      self._begin(offset, int(seeds[offset]))
      self._episodes[offset] = int(episode[offset])
      with self._explained(offset, "step() of a replay"):
        for action in self._to_env(actions[offset]):
          observ, _, _, _, info = env.step(action)
          self._count(offset, info)
          self._observe(offset, observ)
          self._alive()
      if self._robots:
        self._robots.begin(offset, self._reward_parts[offset])

  def _step_each(self, offsets: list[int], actions: Any
                 ) -> tuple[Outcomes, dict[int, dict[str, Any]]]:
    """Step one environment after the other; return outcomes and infos."""
    arrays = self._arrays
    outcomes: Outcomes = {}
    infos = {}
    for offset in offsets:
      try:
        observ, arrays["reward"][offset], terminated, truncated, info = (
            self._envs[offset].step(actions[offset]))
        self._observe(offset, observ)
        self._count(offset, info)
        if self._infos:
          infos[offset] = dict(info)  # A reset may use the same one again.
        if terminated or truncated:
          arrays["terminated"][offset] = terminated
          arrays["truncated"][offset] = truncated
          outcomes[offset] = {
              **wrappers.numbers(info),
              "reward_parts": self._reward_parts[offset]}
      except BaseException as error:
        outcomes[offset] = self._failed(error, offset)
    return outcomes, infos

  def _step_robots(self, together: mujoco_tasks.Robots, offsets: list[int],
                   actions: np.ndarray) -> Outcomes:
    """The same for robots that are stepped at once."""
    arrays = self._arrays
    outcomes: Outcomes = {}
    for offset in offsets:
      try:
        together.simulate(offset, actions[offset])
      except BaseException as error:
        outcomes[offset] = self._failed(error, offset)
    offsets = [offset for offset in offsets if offset not in outcomes]
    if not offsets:
      return outcomes
    stepped = together.outcome(offsets, actions[offsets])
    arrays["observ"][offsets] = stepped.observ
    arrays["reward"][offsets] = stepped.reward
    arrays["terminated"][offsets] = stepped.terminated
    for row, offset in enumerate(offsets):
      self._lengths[offset] += 1
      longest, cut = self._limits[offset]
      terminated = stepped.terminated[row]
      truncated = self._lengths[offset] >= longest
      cut_short = self._lengths[offset] == cut and not (terminated or truncated)
      if terminated or truncated or cut_short:
        arrays["truncated"][offset] = truncated or cut_short
        outcomes[offset] = {
            **stepped.numbers(row),
            **({"cut_short": True} if cut_short else {}),
            "reward_parts": together.sums(offset)}
    return outcomes

  def _replace(self, offset: int):
    super()._replace(offset)
    if self._robots:
      self._robots.replace(offset, self._envs[offset].unwrapped)

  def _chosen(self, chosen: Sequence[bool]) -> list[tuple[int, gymnasium.Env]]:
    # Whoever reaches into environments may change them, each in its own way.
    if self._robots:
      for offset, env in enumerate(self._envs):
        mujoco_block.skip(env, self._lengths[offset])
        self._reward_parts[offset] = self._robots.sums(offset)
      self._robots = None
    return super()._chosen(chosen)

  def _begin(self, offset: int, seed: int):
    self._seeds[offset] = seed
    self._lengths[offset] = 0
    self._reward_parts[offset] = {}
    with self._explained(offset, "reset()"):
      observ, info = self._envs[offset].reset(seed=seed)
      spaces_lib.values(self._spaces[0], observ)  # Raises where it can't be.
      self._observe(offset, observ)
      if not all(np.isfinite(part[offset]).all() for part in self._observed):
        raise ValueError(f"The observation {observ!r} is not finite.")
    if self._infos:
      self._reset_infos[offset] = dict(info)  # So may a step.
    if self._robots:
      self._robots.begin(offset)
      self._limits[offset] = mujoco_block.limits(self._envs[offset])
    self._alive()

  def _begin_next(self, offset: int) -> Iterator[str]:
    """Begin the next episode that can begin, and say why others could not."""
    for attempt in range(_MOST_RESETS):
      self._episodes[offset] += 1
      seed = episodes.episode_seed(
          self._run_seed, self._first + offset, self._episodes[offset])
      try:
        self._begin(offset, seed)
        return
      except Exception as error:
        failure = error.__cause__
        if (not self._tolerant or attempt == _MOST_RESETS - 1
            or not isinstance(failure, base.EnvironmentFailure)):
          raise
        yield str(failure)
        self._replace(offset)

  def _not_finite(self) -> list[int]:
    """Return where there are numbers that nothing can be learned from."""
    found: set[int] = set()
    for values in (*self._observed, self._arrays["reward"]):
      if values.dtype == np.float32 and not np.isfinite(values).all():
        found.update(np.argwhere(~np.isfinite(values))[:, 0].tolist())
    return sorted(found)

  def _failed(self, error: BaseException, offset: int) -> str:
    """Return what there is to say of a step that failed, if that is tolerated.
    """
    if not (self._tolerant and isinstance(error, Exception)):
      self._fail(error, offset, "step()")
    return str(self._failure(error, offset, "step()"))

  def _count(self, offset: int, info: dict[str, Any]):
    """Count a step and sum what its info says of the reward."""
    self._lengths[offset] += 1
    wrappers.add_reward_parts(self._reward_parts[offset], info)
