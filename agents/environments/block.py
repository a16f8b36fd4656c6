"""Steps a block of environments and writes what they return into arrays.

A worker process holds one block of every batch; the serial mode holds the
whole batch as one block. Both run this same code.
"""

from __future__ import annotations

import contextlib
import time
import traceback
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple
from typing import NoReturn

import gymnasium
import numpy as np

from agents import errors
from agents.environments import episodes
from agents.environments import mujoco_log
from agents.environments import wrappers

_MOST_RESETS = 10  # In a row that may fail, before that is an error.
Constructor = Callable[[], gymnasium.Env]


class EnvironmentFailure(errors.EnvironmentsError):
  """Says which environment failed where; the cause of the error itself.

  Args:
    message: For people.
    environment: Its index within its batch, if that is known.
    seed: Of its episode, if there is one.
  """

  def __init__(self, message: str, environment: int | None = None,
               seed: int | None = None):
    super().__init__(message)
    self.environment = environment
    self.seed = seed


class Report(NamedTuple):
  """What became of an episode, and of those that should have followed."""

  # Numbers of the last info, with sums of what the environment reports of the
  # reward under "reward_parts"; where the step failed, what there is to say.
  outcome: dict[str, Any] | str
  skipped: tuple[str, ...] = ()  # Why the next episodes did not begin.


class Block:
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
    alive: Called after each environment that was built, and each step that was
      replayed.
  """

  repeats = True  # Seed and actions of an episode are enough to rebuild it.

  def __init__(
      self, constructors: Sequence[Constructor], first: int,
      spaces: tuple[gymnasium.Space, gymnasium.Space],
      arrays: dict[str, np.ndarray], run_seed: int, tolerant: bool = False,
      alive: Callable[[], None] = lambda: None):
    self._constructors = constructors
    self._first = first
    self._spaces = spaces
    self._tolerant = tolerant
    self._alive = alive
    self._arrays = arrays
    self._run_seed = run_seed
    self._to_env = action_converter(spaces[1])
    self._names = [str(constructor) for constructor in constructors]
    self._seeds: list[int | None] = [None] * len(constructors)
    self._episodes = [0] * len(constructors)
    self._lengths = [0] * len(constructors)
    self._reward_parts: list[dict[str, float]] = [{} for _ in constructors]
    self._envs: list[gymnasium.Env] = []
    mujoco_log.capture()
    try:
      for offset, constructor in enumerate(constructors):
        with self._explained(offset, "its constructor"):
          self._envs.append(constructor())
          self._check_env(offset)
        alive()
    except BaseException:
      self.close()
      raise

  def reset(self, seeds: Sequence[int]):
    """Begin episode 0 of every environment with the given seeds."""
    for offset, seed in enumerate(seeds):
      self._episodes[offset] = 0
      self._begin(offset, int(seed))

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
    outcomes: dict[int, dict[str, Any] | str] = {}  # By offset.
    for offset in np.flatnonzero(active).tolist():
      try:
        observ, rewards[offset], terminated, truncated, info = (
            self._envs[offset].step(actions[offset]))
        observs[offset] = observ
        self._count(offset, info)
        if terminated or truncated:
          arrays["terminated"][offset] = terminated
          arrays["truncated"][offset] = truncated
          outcomes[offset] = {
              **wrappers.numbers(info),
              "reward_parts": self._reward_parts[offset]}
      except BaseException as error:
        outcomes[offset] = self._failed(error, offset)
    for offset in self._not_finite():
      if not isinstance(outcomes.get(offset), str):
        self._lengths[offset] -= 1  # It is this step that failed.
        outcomes[offset] = self._failed(ValueError(
            f"The observation {observs[offset]!r} or the reward "
            f"{rewards[offset]!r} is not finite. Did the simulation become "
            "unstable?"), offset)
    reports = {}
    for offset, outcome in outcomes.items():
      if isinstance(outcome, str):
        for name in ("valid", "reward", "terminated", "truncated"):
          arrays[name][offset] = 0
        self._replace(offset)
      else:
        arrays["final_observ"][offset] = observs[offset]
      reports[self._first + offset] = Report(
          outcome, tuple(self._begin_next(offset)))
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
          self._arrays["observ"][offset] = observ
          self._alive()

  def call(self, name: str, args: tuple, kwargs: dict) -> list[Any]:
    """Call a method of every environment."""
    results = []
    for offset, env in enumerate(self._envs):
      with self._explained(offset, f"{name}()"):
        results.append(env.get_wrapper_attr(name)(*args, **kwargs))
    return results

  def get(self, name: str) -> list[Any]:
    """Return an attribute of every environment."""
    results = []
    for offset, env in enumerate(self._envs):
      with self._explained(offset, f"attribute '{name}'"):
        results.append(env.get_wrapper_attr(name))
    return results

  def close(self):
    """Close every environment, also when one of them fails to."""
    envs, self._envs = self._envs, []
    with contextlib.ExitStack() as stack:
      for offset, env in enumerate(envs):
        stack.callback(self._close, offset, env)

  def _check_env(self, offset: int):
    env, spaces = self._envs[offset], self._spaces
    self._names[offset] = (
        env.spec.id if env.spec else type(env.unwrapped).__name__)
    if (env.observation_space, env.action_space) != spaces:
      raise ValueError(
          f"Its spaces are {env.observation_space} and {env.action_space}, "
          f"those of environment 0 are {spaces[0]} and {spaces[1]}; "
          "environments of a batch must be alike.")

  def _close(self, offset: int, env: gymnasium.Env):
    with self._explained(offset, "close()"):
      env.close()

  def _begin(self, offset: int, seed: int):
    self._seeds[offset] = seed
    self._lengths[offset] = 0
    self._reward_parts[offset] = {}
    with self._explained(offset, "reset()"):
      observ, _ = self._envs[offset].reset(seed=seed)
      observs = self._arrays["observ"]
      if np.shape(observ) != observs.shape[1:]:  # It might broadcast.
        raise ValueError(f"The observation has shape {np.shape(observ)}, its "
                         f"space {observs.shape[1:]}.")
      observs[offset] = observ
      if not np.isfinite(observs[offset]).all():
        raise ValueError(f"The observation {observ!r} is not finite.")

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
            or not isinstance(failure, EnvironmentFailure)):
          raise
        yield str(failure)
        self._replace(offset)

  def _replace(self, offset: int):
    """Build an environment in place of a broken one."""
    with contextlib.suppress(Exception):
      self._envs[offset].close()
    with self._explained(offset, "its constructor"):
      self._envs[offset] = self._constructors[offset]()
      self._check_env(offset)

  def _not_finite(self) -> list[int]:
    """Return where there are numbers that nothing can be learned from."""
    found: set[int] = set()
    for name in ("observ", "reward"):
      values = self._arrays[name]
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

  @contextlib.contextmanager
  def _explained(self, offset: int, where: str):
    try:
      yield
    except BaseException as error:
      self._fail(error, offset, where)

  def _fail(self, error: BaseException, offset: int, where: str) -> NoReturn:
    """Raise the error, with an EnvironmentFailure as its cause."""
    if isinstance(error.__cause__, EnvironmentFailure):
      raise error
    failure = self._failure(error, offset, where)
    # An environment that exits must not end the trainer without a word.
    if isinstance(error, (Exception, KeyboardInterrupt)):
      raise error from failure
    raise failure

  def _failure(self, error: BaseException, offset: int, where: str
               ) -> EnvironmentFailure:
    begun = (f", seed {self._seeds[offset]}, step {self._lengths[offset]} of "
             "its episode") if self._seeds[offset] is not None else ""
    index = self._first + offset
    return EnvironmentFailure(
        f"Environment {index} ('{self._names[offset]}'{begun}) failed in "
        f"{where}:\n\n{''.join(traceback.format_exception(error))}",
        index, self._seeds[offset])


def action_converter(space: gymnasium.Space
                     ) -> Callable[[np.ndarray], Sequence[Any]]:
  """Return the function from a batch of the agent's actions to the space's.

  Agents act in [-1, 1] wherever the space is bounded; what lies outside is
  clipped here and only here. Dimensions with one bound are clipped to it.
  Discrete actions are counted from the space's `start`.
  """
  if isinstance(space, gymnasium.spaces.Discrete):
    start = int(space.start)
    return lambda action: [int(x) + start for x in action]
  assert isinstance(space, gymnasium.spaces.Box)
  low, high = space.low, space.high
  bounded = np.isfinite(low) & np.isfinite(high)
  clip_low = np.where(bounded, -1, low).astype(space.dtype)
  clip_high = np.where(bounded, 1, high).astype(space.dtype)
  # Halves first: the range of the widest float32 bounds is not a float32.
  with np.errstate(invalid="ignore"):
    scale = np.where(bounded, high / 2 - low / 2, 1).astype(space.dtype)
    shift = np.where(bounded, high / 2 + low / 2, 0).astype(space.dtype)
  dtype = space.dtype

  def convert(action):
    clipped = _clip(action.astype(dtype), clip_low, clip_high)
    # Rounding in scale and shift must not leave the space.
    return _clip(clipped * scale + shift, low, high)
  return convert


def _clip(values: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
  """`np.clip`, which takes longer to find out what it is to do."""
  return np.minimum(np.maximum(values, low), high)
