"""Checks an environment before training.

Most checks play some steps. Each check reports problems and how to fix them. If
one cause could fail several checks, only the first of these checks runs.
"""

import contextlib
import itertools
import math
import os
import sysconfig
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import cloudpickle
import gymnasium
import numpy as np
from gymnasium.utils import env_checker

from agents import spaces
from agents.commands.checks import random_steps
from agents.environments import batch_env
from agents.environments.making import action_scaling, make
from agents.environments.workers import pool

_FIRST_STEPS = 10  # Steps before all other checks, and of episodes to compare.
_NUM_SEEDS = 3  # Seeds of episodes to compare.
_MAX_STEPS = 300  # Maximum number of steps in one environment and check.
_MAX_SECONDS = 1.0  # Approximate time limit for these steps.
# Folders of code that the user of the command did not write.
_PACKAGES = (
  os.path.join(os.path.dirname(spaces.__file__), ""),
  *map(sysconfig.get_path, ("stdlib", "purelib", "platlib")),
)
# Parts of Gymnasium's warnings to skip. Even its MuJoCo environments have
# infinite bounds, and the agent rescales actions. The last two repeat another
# warning about the type of an observation.
_SKIPPED_WARNINGS = (
  "infinity",
  "normalized",
  "Casting input",
  "is not within the observation space",
)


class Problem(NamedTuple):
  """A problem of an environment."""

  description: str
  fix: str
  harmless: bool = False  # Training works despite the problem.


class CheckResult(NamedTuple):
  """Problems that one check found."""

  title: str  # The property that was checked.
  problems: list[Problem]  # Empty if the check passed.
  skipped: bool = False  # The check did not run, because an earlier one failed.

  @property
  def num_harmful(self) -> int:
    """Number of problems to fix before training."""
    return sum(not problem.harmless for problem in self.problems)


class _Trial(NamedTuple):
  """Steps of an environment that several checks inspect."""

  constructor: make.MakeEnv
  space: gymnasium.Space  # Observation space.
  num_steps: int  # Maximum number of steps in one environment and check.
  steps: list[random_steps.Step]


Problems = Iterator[Problem]


class _Check(NamedTuple):
  """A check of one property."""

  title: str
  find: Callable[[_Trial], Problems]
  needs_all: bool = False  # Skipped if an earlier check failed.


def examine(constructor: make.MakeEnv) -> Iterator[CheckResult]:
  """Runs all checks.

  Args:
    constructor: Constructor of the environment.

  Yields:
    Result of each check. Only the first check runs if the environment cannot be
    built, has unsupported spaces, or fails in its first steps.
  """
  title = "can be built, has supported spaces, and steps"
  try:
    trial = _try(constructor)
  except Exception as error:
    advice = (
      " reset() must return 2 values, and step() must return 5."
      if "values to unpack" in _text(error)
      else ""
    )
    yield CheckResult(
      title, [Problem(describe(error), f"Fix this first; the other checks need it.{advice}")]
    )
    return
  yield CheckResult(title, [])
  num_harmful = 0
  for check in _CHECKS:
    skipped = check.needs_all and num_harmful > 0
    try:
      with make.exits_as_errors():
        problems = [] if skipped else list(check.find(trial))
    except Exception as error:
      problems = [Problem(describe(error), "Correct the cause of this error.")]
    result = CheckResult(check.title, problems, skipped)
    num_harmful += result.num_harmful
    yield result


def describe(error: Exception) -> str:
  """Returns an error in one line, with its place in the user's code, if any.

  Args:
    error: Error that was raised and caught.
  """
  frames = [
    frame
    for frame in traceback.extract_tb(error.__traceback__)
    if not frame.filename.startswith(_PACKAGES)
  ]
  places = [
    f" ({os.path.basename(frame.filename)}, line {frame.lineno}, in {frame.name})"
    for frame in frames[-1:]
  ]
  return f"{type(error).__name__}: {_plain(_text(error))}{''.join(places)}"


def steps_per_second(constructor: make.MakeEnv) -> float:
  """Returns the steps per second in this process; resets take time, too.

  Args:
    constructor: Constructor of the environment.
  """
  with contextlib.closing(constructor()) as env:
    start, steps = time.perf_counter(), 0
    while time.perf_counter() - start < _MAX_SECONDS:
      random_steps.play(env, steps, 50)
      steps += 50
    return steps / (time.perf_counter() - start)


@make.exits_as_errors()
def _try(constructor: make.MakeEnv) -> _Trial:
  """Builds two environments, plays some steps, and closes both."""
  with contextlib.closing(constructor()) as env:
    spaces.check(env.observation_space, env.action_space)
    start = time.perf_counter()
    random_steps.play(env, 0, _FIRST_STEPS)
    seconds = (time.perf_counter() - start) / _FIRST_STEPS
    num_steps = int(np.clip(_MAX_SECONDS / seconds, 5, _MAX_STEPS))
    # Each process of a run has several environments, so two must work here.
    with contextlib.closing(constructor()) as other:
      steps = random_steps.play(other, 0, num_steps)
      return _Trial(constructor, other.observation_space, num_steps, steps)


def _check_observations(trial: _Trial) -> Problems:
  for step in trial.steps:
    if violation := _violation(step.copy, trial.space):
      yield Problem(
        f"In {step.place}: {violation}",
        f"The observation space is {trial.space}; return observations that "
        "it contains, or correct the space.",
      )
      return


def _violation(observ: np.ndarray, space: gymnasium.Space) -> str:
  """Returns an error message if an observation is invalid, otherwise ""."""
  if spaces.composite(space):
    return next(
      (
        f"Part {leaf}: {violation}"
        for leaf, part in zip(spaces.leaves(space), spaces.columns(observ), strict=True)
        if (violation := _violation(part[0], leaf.space))
      ),
      "",
    )
  if not isinstance(space, gymnasium.spaces.Box):
    return "" if space.contains(observ[()]) else f"{observ} is not contained."
  if observ.shape != space.shape:
    return f"An observation has shape {observ.shape}, its space {space.shape}."
  if not np.isfinite(observ).all():
    return f"An observation is not finite: {observ}."
  if space.dtype != np.uint8 and (np.abs(observ) > np.finfo(np.float32).max).any():
    return f"An observation does not fit into float32: {observ}."
  outside = np.argwhere((observ < space.low) | (observ > space.high))
  if len(outside):
    index = tuple(outside[0].tolist())
    return f"Element {index} of an observation, {observ[index]}, is out of bounds."
  return ""


def _check_results(trial: _Trial) -> Problems:
  problems: dict[str, Problem] = {}  # The first one of each kind.
  for step in trial.steps:
    finite = False
    with contextlib.suppress(TypeError, ValueError):
      finite = math.isfinite(step.reward)
    if not finite:
      problems.setdefault(
        "reward",
        Problem(f"The reward of {step.place} is {step.reward!r}.", "Return one finite number."),
      )
    flags = {"terminated": step.terminated, "truncated": step.truncated}
    wrong = [
      f"{name} of {step.place} is {flag!r}"
      for name, flag in flags.items()
      if not isinstance(flag, (bool, np.bool_))
    ]
    if wrong:
      problems.setdefault("flags", Problem(f"{', '.join(wrong)}.", "Return True or False."))
  yield from problems.values()


def _check_pickling(trial: _Trial) -> Problems:
  try:
    cloudpickle.loads(cloudpickle.dumps(trial.constructor))().close()
  except Exception as error:
    yield Problem(
      describe(error),
      "Worker processes receive a pickled "
      "constructor. Create files, locks and connections in "
      "__init__, not in env.kwargs.",
    )


def _check_notes(trial: _Trial) -> Problems:
  for note in make.check(trial.constructor.config):
    yield Problem(
      note, "Change the environment or its config unless this is intended.", harmless=True
    )


def _check_seeds(trial: _Trial) -> Problems:
  num_steps = trial.num_steps
  with (
    contextlib.closing(trial.constructor()) as env,
    contextlib.closing(trial.constructor()) as other,
  ):
    expected = random_steps.play(env, 3, num_steps)
    random_steps.play(env, 4, 3)  # May change state that reset() must restore.
    for name, repeated in (("another environment", other), ("the same environment", env)):
      steps = random_steps.play(repeated, 3, num_steps)
      for first, second in itertools.zip_longest(expected, steps):
        if not (first and second and _values(first) == _values(second)):
          yield Problem(
            f"With equal seeds and actions, {name} returned different "
            f"values in {(first or second).place}.",
            "Draw all random numbers from self.np_random, which "
            "super().reset(seed=seed) seeds, and restore all state in "
            "reset(). Otherwise a run can't be resumed.",
          )
          return


def _check_variation(trial: _Trial) -> Problems:
  with contextlib.closing(trial.constructor()) as env:
    convert = action_scaling.action_converter(env.action_space)
    actions = [
      convert(action)[0] for action in random_steps.actions(env.action_space, 0, (_FIRST_STEPS, 1))
    ]
    episodes = {_begin_episode(env, seed, actions) for seed in range(_NUM_SEEDS)}
  if len(episodes) == 1:
    yield Problem(
      f"The resets with {_NUM_SEEDS} different seeds begin equal episodes: equal actions lead to "
      "equal observations and rewards.",
      "If this is not intended, draw the initial state from self.np_random. An evaluation of "
      "such a task repeats one episode.",
      harmless=True,
    )


def _begin_episode(env: gymnasium.Env, seed: int, actions: Sequence[Any]) -> bytes:
  """Returns the observations and rewards of the first steps of an episode."""
  values = random_steps.copied(env.observation_space, env.reset(seed=seed)[0]).tobytes()
  for action in actions:
    observ, reward, terminated, truncated, _ = env.step(action)
    values += random_steps.copied(env.observation_space, observ).tobytes()
    values += np.asarray(reward, float).tobytes()
    if terminated or truncated:
      break
  return values


def _values(step: random_steps.Step) -> tuple[bytes, Any, bool, bool]:
  """Returns the values of a step in a form that `==` can compare."""
  reward = step.reward
  with contextlib.suppress(TypeError, ValueError):
    reward = np.asarray(reward, float).tobytes()  # NaN is not equal to itself.
  return (step.copy.tobytes(), reward, bool(step.terminated), bool(step.truncated))


def _check_copies(trial: _Trial) -> Problems:
  for step in trial.steps:
    now = random_steps.copied(trial.space, step.observ)
    if now.tobytes() != step.copy.tobytes():
      is_last = step.terminated or step.truncated
      kind = "last observation of an episode" if is_last else "observation"
      yield Problem(
        f"The {kind} that {step.place} returned has changed since.",
        "Return a copy in each step. This project copies observations at "
        "once, but other libraries may not.",
        harmless=True,
      )
      return


def _check_workers(trial: _Trial) -> Problems:
  results = []
  with pool.WorkerPool(2) as worker_pool:
    for workers in (None, worker_pool):
      with batch_env.BatchEnv([trial.constructor] * 4, workers) as batch:
        arrays = [batch.reset()]
        for action in random_steps.actions(
          batch.action_space, 0, (max(5, trial.num_steps // 8), 4)
        ):
          arrays += batch.step(action)
        results.append([array.tobytes() for array in arrays])
        if workers:
          if not batch.restore(batch.snapshot()):
            (failure,) = batch.failure_budget.drain()
            yield Problem(
              failure.text.split("\n\n")[1],
              "Results must depend only on seeds and actions. Otherwise a run can't continue its "
              "episodes when it is resumed.",
            )
  if results[0] != results[1]:
    yield Problem(
      "Steps in worker processes and steps in one process return different values.",
      "Results must not depend on the process: avoid global "
      "random numbers, time, and state that environments share.",
    )


def _check_with_gymnasium(trial: _Trial) -> Problems:
  with (
    contextlib.closing(trial.constructor()) as env,
    warnings.catch_warnings(record=True) as caught,
  ):
    warnings.simplefilter("always")
    try:
      env_checker.check_env(env.unwrapped, skip_render_check=True, skip_close_check=True)
    except Exception as error:
      # `_check_copies` reports observations that change. Others may be shared.
      if "share an object" not in str(error):
        yield Problem(describe(error), _gymnasium_fix(error, trial.space))
  texts: dict[str, str] = {}  # Warnings that differ in more than the method.
  for text in (_plain(str(warning.message)) for warning in caught):
    if not any(part in text for part in _SKIPPED_WARNINGS):
      texts.setdefault(text.replace("`reset()`", "`step()`"), text)
  for text in texts.values():
    yield Problem(text, "Gymnasium recommends this; training works without it.", harmless=True)


def _gymnasium_fix(error: Exception, space: gymnasium.Space) -> str:
  if "within the observation space" in str(error):
    return f"Return observations of the type of their space, {space}."
  if "truncates after 1 step" in str(error):  # Also reports `np.bool_`.
    return "Return bool(truncated), and do not truncate after the first step."
  return "Gymnasium requires this. gymnasium.utils.env_checker.check_env(env) shows the traceback."


# An invalid observation often causes an invalid reward, and any fault may cause
# the faults that the last two checks find.
_CHECKS = (
  _Check("observations lie in the observation space", _check_observations),
  _Check("rewards are finite, terminated and truncated are bools", _check_results, needs_all=True),
  _Check("constructor can be pickled", _check_pickling),
  _Check("has a time limit, and images of a supported type", _check_notes),
  _Check("the same seed repeats an episode", _check_seeds),
  _Check("different seeds begin different episodes", _check_variation, needs_all=True),
  _Check("returned observations do not change later", _check_copies),
  _Check(
    "worker processes give the same results and can replay episodes", _check_workers, needs_all=True
  ),
  _Check("passes Gymnasium's checker", _check_with_gymnasium, needs_all=True),
)


def _text(error: Exception) -> str:
  """Returns the message of an error, which may fail, too."""
  try:
    return str(error)
  except Exception as other:
    return f"its message can't be shown, because __str__ raised {type(other).__name__}"


def _plain(text: str) -> str:
  """Returns a message without line breaks and Gymnasium's color codes."""
  return " ".join(
    text.replace("\x1b[33m", "").replace("\x1b[0m", "").removeprefix("WARN: ").split()
  )
