"""Checks an environment before training.

Most checks play some steps. Each check reports problems and how to fix them.
"""

import contextlib
import itertools
import math
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import cloudpickle
import gymnasium
import numpy as np
from gymnasium.utils import env_checker

from agents import spaces
from agents.environments import batch_env
from agents.environments.making import action_scaling, make
from agents.environments.workers import pool

_FIRST_STEPS = 10  # Steps before all other checks.
_MAX_STEPS = 300  # Maximum number of steps in one environment and check.
_MAX_SECONDS = 1.0  # Approximate time limit for these steps.


class Problem(NamedTuple):
  """A problem of an environment."""

  description: str
  fix: str
  harmless: bool = False  # Training works despite the problem.


class CheckResult(NamedTuple):
  """Problems that one check found."""

  title: str  # The property that was checked.
  problems: list[Problem]  # Empty if the check passed.


class _Step(NamedTuple):
  """Values that a reset or a step of an environment returned."""

  place: str  # Such as "step 3" or "reset 1", counted from 1.
  observ: Any  # The returned object, which later steps may change.
  copy: np.ndarray  # Copy of the observation, made directly after the step.
  reward: Any = 0.0
  terminated: Any = False
  truncated: Any = False


Problems = Iterator[Problem]


def examine(constructor: make.MakeEnv) -> Iterator[CheckResult]:
  """Runs all checks.

  Args:
    constructor: Constructor of the environment.

  Yields:
    Result of each check. Only the first check runs if the environment cannot be
    built, has unsupported spaces, or fails in its first steps.
  """
  result = CheckResult("can be built, has supported spaces, and steps", [])
  try:
    with contextlib.closing(constructor()) as env:
      spaces.check(env.observation_space, env.action_space)
      start = time.perf_counter()
      _play(env, 0, _FIRST_STEPS)
      seconds = (time.perf_counter() - start) / _FIRST_STEPS
  except Exception as error:
    result.problems.append(Problem(
        _text(error), "Fix this first; the other checks need it."))
  yield result
  if result.problems:
    return
  num_steps = int(np.clip(_MAX_SECONDS / seconds, 5, _MAX_STEPS))
  for title, check in _CHECKS.items():
    try:
      problems = list(check(constructor, num_steps))
    except Exception as error:
      problems = [Problem(
          _text(error), "Correct the cause of this error; the check ended.")]
    yield CheckResult(title, problems)


def steps_per_second(constructor: make.MakeEnv) -> float:
  """Returns the steps per second in this process; resets take time, too.

  Args:
    constructor: Constructor of the environment.
  """
  with contextlib.closing(constructor()) as env:
    start, steps = time.perf_counter(), 0
    while time.perf_counter() - start < _MAX_SECONDS:
      _play(env, steps, 50)
      steps += 50
    return steps / (time.perf_counter() - start)


def _check_pickling(constructor: make.MakeEnv, _: int) -> Problems:
  try:
    cloudpickle.loads(cloudpickle.dumps(constructor))().close()
  except Exception as error:
    yield Problem(_text(error), "Worker processes receive a pickled "
                  "constructor. Create files, locks and connections only in "
                  "__init__.")


def _check_with_gymnasium(constructor: make.MakeEnv, _: int) -> Problems:
  with contextlib.closing(constructor()) as env, warnings.catch_warnings(
      record=True) as caught:
    warnings.simplefilter("always")
    try:
      env_checker.check_env(env.unwrapped, skip_render_check=True,
                            skip_close_check=True)
    except Exception as error:
      yield Problem(_text(error), "See gymnasium.utils.env_checker.check_env.")
  for text in dict.fromkeys(str(warning.message) for warning in caught):
    # Skips two warnings that even Gymnasium's MuJoCo environments cause: about
    # infinite bounds, and about actions that should be rescaled.
    if "infinity" not in text and "rescal" not in text:
      yield Problem(_plain(text), "Gymnasium recommends this.", harmless=True)


def _check_observations(constructor: make.MakeEnv, num_steps: int) -> Problems:
  with contextlib.closing(constructor()) as env:
    space = env.observation_space
    for step in _play(env, 0, num_steps):
      if violation := _violation(step.copy, space):
        yield Problem(violation, f"The observation space is {space}; return "
                      "observations that it contains, or correct the space.")
        return


def _violation(observ: np.ndarray, space: gymnasium.Space) -> str:
  """Returns an error message if an observation is invalid, otherwise ""."""
  if spaces.composite(space):
    return next((f"In {leaf}: {violation}" for leaf, part in zip(
        spaces.leaves(space), spaces.columns(observ), strict=True)
                 if (violation := _violation(part[0], leaf.space))), "")
  if not isinstance(space, gymnasium.spaces.Box):
    return "" if space.contains(observ[()]) else f"{observ} is not contained."
  if observ.shape != space.shape:
    return f"An observation has shape {observ.shape}, its space {space.shape}."
  if not np.isfinite(observ).all():
    return f"An observation is not finite: {observ}."
  if space.dtype != np.uint8 and (
      np.abs(observ) > np.finfo(np.float32).max).any():
    return f"An observation does not fit into float32: {observ}."
  outside = np.argwhere((observ < space.low) | (observ > space.high))
  if len(outside):
    index = tuple(outside[0].tolist())
    return (f"Element {index} of an observation, {observ[index]}, is out of "
            "bounds.")
  return ""


def _check_results(constructor: make.MakeEnv, num_steps: int) -> Problems:
  problems: dict[str, Problem] = {}  # The first one of each field.
  with contextlib.closing(constructor()) as env:
    for step in _play(env, 0, num_steps):
      finite = False
      with contextlib.suppress(TypeError, ValueError):
        finite = math.isfinite(step.reward)
      if not finite:
        problems.setdefault("reward", Problem(
            f"The reward of {step.place} is {step.reward!r}.",
            "Return one finite number."))
      for name in ("terminated", "truncated"):
        value = getattr(step, name)
        if not isinstance(value, (bool, np.bool_)):
          problems.setdefault(name, Problem(
              f"{name} of {step.place} is {value!r}.", "Return a bool."))
  yield from problems.values()


def _check_notes(constructor: make.MakeEnv, _: int) -> Problems:
  for note in make.check(constructor.config):
    yield Problem(note, "Change the environment or its config unless this is "
                  "intended.", harmless=True)


def _check_seeds(constructor: make.MakeEnv, num_steps: int) -> Problems:
  with contextlib.closing(constructor()) as env, contextlib.closing(
      constructor()) as other:
    expected = _play(env, 3, num_steps)
    _play(env, 4, 3)  # Changes any state that reset() does not restore.
    for name, steps in (("another environment", _play(other, 3, num_steps)),
                        ("the same environment", _play(env, 3, num_steps))):
      for first, second in itertools.zip_longest(expected, steps):
        if not (first and second and _values(first) == _values(second)):
          yield Problem(
              f"With reset(seed=3) and the same actions, {name} returned "
              f"different values in {(first or second).place}.",
              "Draw all random numbers from self.np_random, which "
              "super().reset(seed=seed) seeds, and restore all state in "
              "reset(). Otherwise a run can't be resumed.")
          return


def _values(step: _Step) -> tuple[bytes, Any, bool, bool]:
  """Returns the values of a step in a form that `==` can compare."""
  reward = step.reward
  with contextlib.suppress(TypeError, ValueError):
    reward = np.asarray(reward, float).tobytes()  # NaN is not equal to itself.
  return (step.copy.tobytes(), reward, bool(step.terminated),
          bool(step.truncated))


def _check_copies(constructor: make.MakeEnv, num_steps: int) -> Problems:
  with contextlib.closing(constructor()) as env:
    steps = _play(env, 0, num_steps)
    space = env.observation_space
  for step in steps:
    if _copied(space, step.observ).tobytes() != step.copy.tobytes():
      is_last = step.terminated or step.truncated
      kind = "last observation of an episode" if is_last else "observation"
      yield Problem(
          f"The {kind} that {step.place} returned has changed since.",
          "Return a copy in each step. This project copies observations at "
          "once, but other libraries may not.", harmless=True)
      return


def _check_workers(constructor: make.MakeEnv, num_steps: int) -> Problems:
  results = []
  with pool.WorkerPool(2) as worker_pool:
    for workers in (None, worker_pool):
      with batch_env.BatchEnv([constructor] * 4, workers) as batch:
        arrays = [batch.reset()]
        for action in _actions(
            batch.action_space, 0, (max(5, num_steps // 8), 4)):
          arrays += batch.step(action)
        results.append([array.tobytes() for array in arrays])
        if workers:
          # Replays the running episodes; raises if the observations differ.
          batch.restore(batch.snapshot())
  if results[0] != results[1]:
    yield Problem(
        "Steps in worker processes and steps in one process return different "
        "values.", "Results must not depend on the process: avoid global "
        "random numbers, time, and state that environments share.")


_CHECKS: dict[str, Callable[[make.MakeEnv, int], Problems]] = {
    "constructor can be pickled": _check_pickling,
    "passes Gymnasium's checker": _check_with_gymnasium,
    "observations lie in the observation space": _check_observations,
    "rewards are finite, terminated and truncated are bools": _check_results,
    "has a time limit, and images of a supported type": _check_notes,
    "the same seed repeats an episode": _check_seeds,
    "returned observations do not change later": _check_copies,
    "worker processes give the same results and can replay episodes":
        _check_workers,
}


def _play(env: gymnasium.Env, seed: int, num_steps: int) -> list[_Step]:
  """Takes random actions; returns the results of all resets and steps."""
  space = env.observation_space
  convert = action_scaling.action_converter(env.action_space)
  steps, num_resets, terminated, truncated = [], 0, True, False
  for index, action in enumerate(_actions(
      env.action_space, seed, (num_steps, 1))):
    if terminated or truncated:
      observ, _ = env.reset(seed=seed + index)
      num_resets += 1
      steps.append(_Step(
          f"reset {num_resets}", observ, _copied(space, observ)))
    observ, reward, terminated, truncated, _ = env.step(convert(action)[0])
    steps.append(_Step(
        f"step {index + 1}", observ, _copied(space, observ), reward, terminated,
        truncated))
  return steps


def _copied(space: gymnasium.Space, observ: Any) -> np.ndarray:
  """Returns a copy of an observation.

  Values of Dict and Tuple spaces become a structured array of shape [1].
  """
  if not spaces.composite(space):
    return np.array(observ)
  array = np.zeros(1, spaces.dtype(space)[0])
  spaces.writer(space, array)(0, observ)
  return array


def _actions(space: gymnasium.Space, seed: int, shape: tuple[int, ...]
             ) -> np.ndarray:
  """Returns random actions in the agent's format, of shape [*shape, ...].

  Floats are in [-1, 1], and integers begin at 0.
  """
  random = np.random.default_rng(seed)
  dtype, action_shape = spaces.dtype(space, is_action=True)
  actions = np.zeros((*shape, *action_shape), dtype)
  for leaf, part in zip(spaces.leaves(space, is_action=True),
                        spaces.columns(actions), strict=True):
    if isinstance(leaf.space, gymnasium.spaces.Box):
      part[...] = random.uniform(-1, 1, part.shape)
    else:
      is_binary = isinstance(leaf.space, gymnasium.spaces.MultiBinary)
      part[...] = random.integers(2 if is_binary else getattr(
          leaf.space, "nvec", getattr(leaf.space, "n", 0)), size=part.shape)
  return actions


def _text(error: Exception) -> str:
  return f"{type(error).__name__}: {_plain(str(error))}"


def _plain(text: str) -> str:
  """Returns a message without line breaks and Gymnasium's color codes."""
  return " ".join(text.replace("\x1b[33m", "").replace("\x1b[0m", "")
                  .removeprefix("WARN: ").split())
