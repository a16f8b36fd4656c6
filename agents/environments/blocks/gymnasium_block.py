"""Steps a block of environments and writes the results into arrays.

Each worker process steps one block of each batch. Without workers, one block in
the main process steps the whole batch.
"""

import time
from collections.abc import Iterator, Sequence
from typing import Any

import gymnasium
import numpy as np

from agents import spaces as spaces_lib
from agents.environments.blocks import base
from agents.environments.data import buffer_layout, episode_data, played_steps
from agents.environments.making import action_scaling

_MAX_RESETS = 10  # If so many consecutive resets fail, an error is raised.

# Outcomes of the episodes that ended, as in `base.StepReport.outcome`, by the
# environment's offset in the block.
Outcomes = dict[int, dict[str, Any] | str]


class GymnasiumBlock(base.BlockBase):
  """Steps the environments of a block one by one.

  Args:
    constructors: Functions without arguments that return environments.
    first: Index of the first environment within the batch.
    spaces: Observation and action space that all environments must have.
    arrays: Fields of `buffer_layout.batch_layout` for these environments.
    run_seed: Seed from which each episode's seed is derived.
    tolerant: Whether an environment that fails is replaced by a new one, which
      begins the next episode. If false, the error is raised.
  """

  layout = staticmethod(buffer_layout.batch_layout)
  deterministic = True  # Seed and actions of an episode determine its states.

  def __init__(
    self,
    constructors: Sequence[base.Constructor],
    first: int,
    spaces: tuple[gymnasium.Space, gymnasium.Space],
    arrays: dict[str, np.ndarray],
    run_seed: int,
    tolerant: bool = False,
  ) -> None:
    self._tolerant = tolerant
    self._arrays = arrays
    self._run_seed = run_seed
    self._scale_action = action_scaling.action_converter(spaces[1])
    self._write_observ = spaces_lib.writer(spaces[0], arrays["observ"])
    self._float_columns = [
      column for column in spaces_lib.columns(arrays["observ"]) if column.dtype == np.float32
    ]
    self._episodes = [0] * len(constructors)
    self._reward_parts: list[dict[str, float]] = [{} for _ in constructors]
    # Messages of environments whose next step fails, by offset.
    self._failing: dict[int, str] = {}
    super().__init__(constructors, first, spaces)

  def reset(self, seeds: Sequence[int]) -> list[dict[str, Any]]:
    """Begins episode 0 of every environment.

    Args:
      seeds: Seed of each episode.

    Returns:
      An empty dict per environment.
    """
    self._episodes = [-1] * len(seeds)
    return self.begin_next(seeds)

  def begin_next(self, seeds: Sequence[int | None]) -> list[dict[str, Any]]:
    """Begins the next episode of some environments.

    Args:
      seeds: Seed of each environment's next episode; None continues the
        running episode.

    Returns:
      An empty dict per environment.
    """
    for offset, seed in enumerate(seeds):
      if seed is not None:
        self._episodes[offset] += 1
        self._begin(offset, int(seed))
    return [{} for _ in seeds]

  def step(self) -> dict[int, base.StepReport]:
    """Steps the active environments, and resets those whose episode ended.

    Reads the arrays "action" and "active" and writes all other arrays. The
    observations of inactive environments stay unchanged.

    Returns:
      Reports of episodes that ended, by index of the environment in the batch.
      Steps in which the environment failed are not valid.

    Raises:
      Exception: The error of an environment, if failures are not tolerated.
    """
    start = time.perf_counter()
    arrays = self._arrays
    arrays["valid"][:] = arrays["active"]
    for name in ("reward", "terminated", "truncated"):
      arrays[name][:] = 0
    offsets = np.flatnonzero(arrays["active"]).tolist()
    failed = {offset: text for offset, text in self._failing.items() if offset in offsets}
    if failed:
      offsets = [offset for offset in offsets if offset not in failed]
    outcomes = self._step_active(offsets, self._scale_action(arrays["action"])) | failed
    columns = *self._float_columns, arrays["reward"]
    if not all(np.isfinite(column).all() for column in columns):
      self._fail_not_finite(columns, outcomes)
    reports = {}
    for offset, outcome in outcomes.items():
      if isinstance(outcome, str):
        for name in ("valid", "reward", "terminated", "truncated"):
          arrays[name][offset] = 0
        self._build(offset)
      else:
        arrays["final_observ"][offset] = arrays["observ"][offset]
      reports[self._first + offset] = base.StepReport(
        outcome, tuple(self._begin_with_retries(offset)), next_seed=self._seeds[offset]
      )
    arrays["seconds"][:] = (time.perf_counter() - start) / len(self._envs)
    return reports

  def replay(
    self, episode: Sequence[int], seeds: Sequence[int], actions: Sequence[np.ndarray]
  ) -> list[float | str]:
    """Rebuilds running episodes from their seeds and actions.

    Args:
      episode: Index of each environment's running episode, from 0.
      seeds: Seed of each episode.
      actions: Actions of each episode, of shape [steps, ...].

    Returns:
      For each environment, the sum of the rewards in float32, or the message of
      the failed step. A new environment then replaces the failed one.
    """
    results: list[float | str] = []
    for offset, env in enumerate(self._envs):
      self._begin(offset, int(seeds[offset]))
      self._episodes[offset] = int(episode[offset])
      score = np.float32(0)
      try:
        for action in self._scale_action(actions[offset]):
          observ, reward, _, _, info = env.step(action)
          score += np.float32(reward)
          self._count_step(offset, info)
          self._write_observ(offset, observ)
          if self.heartbeat:
            self.heartbeat()
        results.append(float(score))
      except BaseException as error:
        results.append(self._tolerate(error, offset, "step() of a replay"))
        self._build(offset)
    return results

  def play(
    self, policy: base.Policy, episodes_left: Sequence[int], num_steps: int
  ) -> list[played_steps.PlayedSteps]:
    """Steps the environments with a policy.

    Args:
      policy: Selects the actions.
      episodes_left: Number of episodes that each environment plays. An
        environment that has played its episodes waits at the start of the next
        episode.
      num_steps: Number of steps, T.

    Returns:
      List of one element with the steps of all environments. After the last
      episode, the remaining steps are zero.
    """
    arrays, left = self._arrays, np.array(episodes_left)
    steps = {
      name: np.zeros((num_steps, *arrays[name].shape), arrays[name].dtype)
      for name in played_steps.FIELDS
    }
    reports = {}
    for step in range(num_steps):
      if not (left > 0).any():
        break
      arrays["active"][:] = left > 0
      arrays["action"][:] = spaces_lib.from_bytes(
        policy.act(arrays["observ"], self._first), arrays["action"].dtype
      )
      seeds = list(self._seeds)
      try:
        if report := self.step():
          reports[step] = report
      except BaseException as error:
        self._add_actions(error, seeds, [*steps["action"][:step], arrays["action"]])
        raise
      for name, values in steps.items():
        values[step] = arrays[name]
      left -= episode_data.ended(arrays)
      if self.heartbeat:
        self.heartbeat()
    return [played_steps.PlayedSteps(steps, reports)]

  def fail_next(self, messages: Sequence[str | None]) -> None:
    """Lets the next step of some environments fail.

    Args:
      messages: Error message of each environment; None for no failure.
    """
    self._failing = {offset: text for offset, text in enumerate(messages) if text}

  def _step_active(self, offsets: list[int], actions: Any) -> Outcomes:
    """Steps active environments; returns the outcomes of ended episodes."""
    arrays = self._arrays
    outcomes: Outcomes = {}
    for offset in offsets:
      try:
        result = self._envs[offset].step(actions[offset])
        observ, arrays["reward"][offset], terminated, truncated, info = result
        self._write_observ(offset, observ)
        self._count_step(offset, info)
        if terminated or truncated:
          arrays["terminated"][offset] = terminated
          arrays["truncated"][offset] = truncated
          parts = {"reward_parts": self._reward_parts[offset]}
          outcomes[offset] = {**episode_data.numbers(info), **parts}
      except BaseException as error:
        outcomes[offset] = self._tolerate(error, offset)
    return outcomes

  def _add_actions(
    self, error: BaseException, seeds: list[int | None], actions: list[np.ndarray]
  ) -> None:
    """Adds the latest actions of the failed episode to an error of `play`.

    Args:
      error: Error of a step.
      seeds: Seed of each environment's episode before the step.
      actions: Actions of the latest steps, including the failed one.
    """
    for failure in (error, error.__cause__):
      if isinstance(failure, base.EnvironmentFailure) and failure.environment is not None:
        offset = failure.environment - self._first
        if failure.seed == seeds[offset]:  # Otherwise, the reset after the episode failed.
          recent = actions[-(self._lengths[offset] + 1) :]
          failure.actions = [action[offset].copy() for action in recent]

  def _begin(self, offset: int, seed: int) -> None:
    """Resets an environment with a seed."""
    self._seeds[offset] = seed
    self._lengths[offset] = 0
    self._reward_parts[offset] = {}
    self._failing.pop(offset, None)
    try:
      observ, info = self._envs[offset].reset(seed=seed)
      self._write_observ(offset, observ)
      if not all(np.isfinite(column[offset]).all() for column in self._float_columns):
        raise ValueError(f"The observation {observ!r} is not finite.")
    except BaseException as error:
      self._fail(error, offset, "reset()")
    self._record_reset(offset, info)
    if self.heartbeat:
      self.heartbeat()

  def _record_reset(self, offset: int, info: dict[str, Any]) -> None:
    """Does nothing; subclasses override this hook, called after each reset."""

  def _begin_with_retries(self, offset: int) -> Iterator[str]:
    """Begins the next episode while the caller iterates over failed resets.

    Yields the message of each failed reset, and then tries again.
    """
    for attempt in range(_MAX_RESETS):
      self._episodes[offset] += 1
      seed = episode_data.episode_seed(self._run_seed, self._first + offset, self._episodes[offset])
      try:
        self._begin(offset, seed)
        return
      except Exception as error:
        failure = error.__cause__
        tolerated = self._tolerant and isinstance(failure, base.EnvironmentFailure)
        if not tolerated or attempt == _MAX_RESETS - 1:
          raise
        yield str(failure)
        self._build(offset)

  def _fail_not_finite(self, columns: Sequence[np.ndarray], outcomes: Outcomes) -> None:
    """Adds a failure for each environment that returned NaN or infinity."""
    finite = np.all([np.isfinite(x).all(tuple(range(1, x.ndim))) for x in columns], axis=0)
    for offset in np.flatnonzero(~finite).tolist():
      if not isinstance(outcomes.get(offset), str):
        self._lengths[offset] -= 1  # Error messages count completed steps.
        observ, reward = self._arrays["observ"][offset], self._arrays["reward"][offset]
        error = ValueError(
          f"The observation {observ!r} or the reward {reward!r} is not finite. "
          "Did the simulation become unstable?"
        )
        outcomes[offset] = self._tolerate(error, offset)

  def _tolerate(self, error: BaseException, offset: int, where: str = "step()") -> str:
    """Returns the message of a tolerated failure; raises any other error."""
    if not (self._tolerant and isinstance(error, Exception)):
      self._fail(error, offset, where)
    return str(self._failure(error, offset, where))

  def _count_step(self, offset: int, info: dict[str, Any]) -> None:
    """Counts a step and adds the `reward_...` numbers of its info to sums."""
    self._lengths[offset] += 1
    episode_data.add_reward_parts(self._reward_parts[offset], info)
