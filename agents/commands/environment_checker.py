"""Whether an environment is one that can be trained in, and why not.

Each check plays a little and says what is wrong and how to mend it.
"""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any
from typing import NamedTuple

import cloudpickle
import gymnasium
import numpy as np
from gymnasium.utils import env_checker

from agents import spaces
from agents.environments import batch_env
from agents.environments.making import action_scaling
from agents.environments.making import make
from agents.environments.workers import pool

_STEPS = 300  # Played by each check, fewer where steps are slow.
_SECONDS = 1.0  # That a check may play for.


class Problem(NamedTuple):
  """Something about an environment that its author should know."""

  what: str
  fix: str
  harmless: bool = False  # Training works all the same.


class Finding(NamedTuple):
  """What came of one check."""

  check: str
  problems: list[Problem]  # None: all is well.


class _Played(NamedTuple):
  """One step of an environment."""

  observ: Any  # As it was returned.
  copy: np.ndarray  # Of the observation, made at once.
  reward: Any
  terminated: Any
  truncated: Any
  begins: bool  # Whether this is a reset, without reward and ends.


Check = Callable[[make.MakeEnv, int], Iterator[Problem]]


def examine(constructor: make.MakeEnv) -> Iterator[Finding]:
  """Make all checks, one after the other.

  Args:
    constructor: Builds the environment.
  Yields:
    A finding for each check; none after one that leaves nothing to play with.
  """
  title = "builds, and has spaces that fit"
  try:
    env = constructor()
    spaces.check(env.observation_space, env.action_space)
    steps = _affordable_steps(env)
    env.close()
  except Exception as error:
    yield Finding(title, [Problem(_text(error), "Mend this first; nothing else "
                                  "can be checked before.")])
    return
  yield Finding(title, [])
  for title, check in _CHECKS.items():
    try:
      problems = list(check(constructor, steps))
    except Exception as error:
      problems = [Problem(_text(error), "This should not raise.")]
    yield Finding(title, problems)


def steps_per_second(constructor: make.MakeEnv) -> float:
  """Return how fast one process steps the environment, resets included."""
  env = constructor()
  start, steps = time.perf_counter(), 0
  while time.perf_counter() - start < _SECONDS:
    steps += len(_play(env, steps, 50)) - 1
  seconds = time.perf_counter() - start
  env.close()
  return steps / seconds


def _affordable_steps(env: gymnasium.Env) -> int:
  start = time.perf_counter()
  amount = len(_play(env, 0, 10))
  seconds = (time.perf_counter() - start) / amount
  return int(np.clip(_SECONDS / seconds, 5, _STEPS))


def _pickles(constructor: make.MakeEnv, steps: int) -> Iterator[Problem]:
  try:
    cloudpickle.loads(cloudpickle.dumps(constructor))().close()
  except Exception as error:
    yield Problem(_text(error), "Workers get the constructor by pickle: open "
                  "files, locks and connections in __init__, not outside.")


def _passes_gymnasiums_checker(constructor: make.MakeEnv, steps: int
                               ) -> Iterator[Problem]:
  env = constructor()
  with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    try:
      env_checker.check_env(env.unwrapped, skip_render_check=True,
                            skip_close_check=True)
    except Exception as error:
      yield Problem(_text(error), "See gymnasium.utils.env_checker.check_env.")
  env.close()
  for text in dict.fromkeys(str(warning.message) for warning in caught):
    # Infinite bounds are what MuJoCo's own environments have.
    if "infinity" not in text and "rescal" not in text:
      yield Problem(_plain(text), "Gymnasium advises so.", harmless=True)


def _tells_the_truth_about_observations(
    constructor: make.MakeEnv, steps: int) -> Iterator[Problem]:
  env = constructor()
  space = env.observation_space
  for played in _play(env, 0, steps):
    problem = _misfit(played.copy, space)
    if problem:
      yield Problem(problem, f"The observation space is {space}; return what "
                    "it contains, or declare what is returned.")
      break
  env.close()


def _misfit(observ: np.ndarray, space: gymnasium.Space) -> str:
  """Return what is wrong with an observation, if anything is."""
  if spaces.composite(space):
    for leaf, part in zip(
        spaces.leaves(space), spaces.columns(observ), strict=True):
      if problem := _misfit(part[0], leaf.space):
        return f"In {leaf}: {problem}"
    return ""
  if isinstance(space, gymnasium.spaces.Discrete):
    return "" if space.contains(observ[()]) else f"{observ} is not contained."
  if not isinstance(space, gymnasium.spaces.Box):
    return "" if space.contains(observ) else f"{observ} is not contained."
  if observ.shape != space.shape:
    return f"An observation has shape {observ.shape}, its space {space.shape}."
  if not np.isfinite(observ).all():
    return f"An observation is not finite: {observ}."
  if space.dtype != np.uint8 and (
      np.abs(observ) > np.finfo(np.float32).max).any():
    return f"An observation does not fit into float32: {observ}."
  outside = (observ < space.low) | (observ > space.high)
  if outside.any():
    where = tuple(int(x) for x in np.argwhere(outside)[0])
    return f"Element {where} of an observation is {observ[where]}."
  return ""


def _has_finite_rewards_and_clear_ends(
    constructor: make.MakeEnv, steps: int) -> Iterator[Problem]:
  env = constructor()
  problems = set()
  for played in _play(env, 0, steps):
    if played.begins:
      continue
    try:
      finite = bool(np.isfinite(float(played.reward)))
    except (TypeError, ValueError):
      finite = False
    if not finite:
      problems.add(Problem(f"A reward is {played.reward!r}.",
                           "Return one finite number."))
    for name in ("terminated", "truncated"):
      value = getattr(played, name)
      if not isinstance(value, (bool, np.bool_)):
        problems.add(Problem(f"{name} is {value!r}.", "Return a bool."))
  env.close()
  yield from sorted(problems)


def _ends_its_episodes(constructor: make.MakeEnv, steps: int
                       ) -> Iterator[Problem]:
  for text in make.check(constructor.config):
    yield Problem(text, "Set env.max_length, unless episodes are sure to end.",
                  harmless=True)


def _repeats_by_seed(constructor: make.MakeEnv, steps: int
                     ) -> Iterator[Problem]:
  one, other = constructor(), constructor()
  first = _play(one, 3, steps)
  _play(one, 4, 3)  # So that it has something to forget.
  for title, second in (("another environment", _play(other, 3, steps)),
                        ("the same one", _play(one, 3, steps))):
    number = _first_difference(first, second)
    if number is not None:
      yield Problem(
          f"reset(seed=3) and the same actions led {title} to something else "
          f"at step {number}.",
          "Draw all random numbers from self.np_random, which "
          "super().reset(seed=seed) seeds, and set everything back in reset(); "
          "without that, a run can't be resumed.")
      break
  one.close()
  other.close()


def _keeps_its_hands_off_observations(
    constructor: make.MakeEnv, steps: int) -> Iterator[Problem]:
  env = constructor()
  played = _play(env, 0, steps)
  env.close()
  for number, step in enumerate(played):
    now = _copied(env.observation_space, step.observ)
    if now.tobytes() != step.copy.tobytes():
      kind = "last observation of an episode" if (
          number + 1 < len(played) and played[number + 1].begins
          ) else "observation"
      yield Problem(
          f"The {kind} that step {number} returned has changed since.",
          "Return a copy. Here, observations are copied at once; elsewhere "
          "they may not be.", harmless=True)
      return


def _is_the_same_in_other_processes(
    constructor: make.MakeEnv, steps: int) -> Iterator[Problem]:
  amount = max(5, steps // 8)
  answers = []
  with pool.WorkerPool(2) as workers:
    for where in (None, workers):
      with batch_env.BatchEnv([constructor] * 4, where) as batch:
        first = batch.reset()
        actions = _actions(batch.action_space, 0, (amount, 4))
        steps_taken = [batch.step(action) for action in actions]
        answers.append([first.tobytes()] + [
            b"".join(field.tobytes() for field in step)
            for step in steps_taken])
        if where is workers:
          batch.restore(batch.snapshot())  # Or it raises a ReplayError.
  if answers[0] != answers[1]:
    yield Problem(
        "Stepped in workers it returns something else than in one process.",
        "Nothing may depend on the process: neither global random numbers, "
        "nor time, nor what environments share.")


_CHECKS: dict[str, Check] = {
    "its constructor pickles": _pickles,
    "passes Gymnasium's checker": _passes_gymnasiums_checker,
    "observes what its space contains": _tells_the_truth_about_observations,
    "gives finite rewards and clear ends": _has_finite_rewards_and_clear_ends,
    "ends its episodes": _ends_its_episodes,
    "repeats by seed": _repeats_by_seed,
    "leaves observations alone": _keeps_its_hands_off_observations,
    "is the same in other processes, and can be replayed":
        _is_the_same_in_other_processes,
}


def _play(env: gymnasium.Env, seed: int, steps: int) -> list[_Played]:
  """Play random actions; return every reset and step."""
  convert = action_scaling.action_converter(env.action_space)
  actions = _actions(env.action_space, seed, (steps,))
  copied = functools.partial(_copied, env.observation_space)
  observ, _ = env.reset(seed=seed)
  played = [_Played(observ, copied(observ), 0.0, False, False, True)]
  for number in range(steps):
    observ, reward, terminated, truncated, _ = env.step(
        convert(actions[number:number + 1])[0])
    played.append(_Played(
        observ, copied(observ), reward, terminated, truncated, False))
    if terminated or truncated:
      observ, _ = env.reset(seed=seed + number + 1)
      played.append(_Played(observ, copied(observ), 0.0, False, False, True))
  return played


def _copied(space: gymnasium.Space, observ: Any) -> np.ndarray:
  """Return an observation as it is now; of Dicts and Tuples as [1]."""
  if not spaces.composite(space):
    return np.array(observ)
  array = np.zeros(1, spaces.dtype(space)[0])
  spaces.writer(space, array)(0, observ)
  return array


def _actions(space: gymnasium.Space, seed: int, shape: tuple[int, ...]
             ) -> np.ndarray:
  """Return actions as an agent gives them, of shape [*shape, ...]."""
  numbers = np.random.default_rng(seed)
  kind, own = spaces.dtype(space, acting=True)
  actions = np.zeros((*shape, *own), kind)
  for leaf, part in zip(spaces.leaves(space, acting=True),
                        spaces.columns(actions), strict=True):
    if isinstance(leaf.space, gymnasium.spaces.Box):
      part[...] = numbers.uniform(-1, 1, part.shape)
    else:
      part[...] = numbers.integers(_choices(leaf.space), size=part.shape)
  return actions


def _choices(space: gymnasium.Space) -> Any:
  """Return how many there are, for each number of an action."""
  match space:  # Or a class of somebody's own that derives from it.
    case gymnasium.spaces.Discrete():
      return int(space.n)
    case gymnasium.spaces.MultiDiscrete():
      return space.nvec
    case gymnasium.spaces.MultiBinary():
      return 2


def _first_difference(one: list[_Played], other: list[_Played]) -> int | None:
  """Return the number of the first step that differs, None if none does."""
  for number, (first, second) in enumerate(zip(one, other, strict=False)):
    if (first.copy.tobytes(), first[2:]) != (second.copy.tobytes(), second[2:]):
      return number
  return None if len(one) == len(other) else min(len(one), len(other))


def _text(error: Exception) -> str:
  return f"{type(error).__name__}: {_plain(str(error))}"


def _plain(text: str) -> str:
  """Return a text of Gymnasium's without colours and line breaks."""
  return " ".join(text.replace("\x1b[33m", "").replace("\x1b[0m", "")
                  .removeprefix("WARN: ").split())
