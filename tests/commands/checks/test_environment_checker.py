"""The checker finds every fault of an environment, and no other problems."""

import functools
import os
import random
import sys
import threading

import gymnasium
import numpy as np
import pytest

from agents import config as config_lib
from agents.commands.checks import environment_checker
from agents.environments.making import make
from tests import toy


class Sound(toy.Uneven):
  """Has no fault, but declares no time limit."""


class _CustomDiscrete(gymnasium.spaces.Discrete):
  """A custom subclass of a Gymnasium space."""


class Derived(Sound):
  """Has an action space of a custom class."""

  def __init__(self):
    super().__init__(discrete=True)
    self.action_space = _CustomDiscrete(int(self.action_space.n))


class Unrepeatable(toy.Uneven):
  """Draws random numbers that do not depend on the seed."""

  def step(self, action):
    observ, reward, *rest = super().step(action)
    return observ, reward + random.random(), *rest


class GlobalRandom(toy.Uneven):
  """Draws from the global generator, which no reset seeds."""

  def step(self, action):
    observ, reward, *rest = super().step(action)
    return observ, reward + np.random.normal(), *rest


class GlobalSeed(toy.Uneven):
  """Seeds the global generator, which all environments of a process share."""

  def reset(self, *, seed=None, options=None):
    np.random.seed(seed)
    return super().reset(seed=seed)

  def step(self, action):
    observ, reward, *rest = super().step(action)
    return observ, reward + np.random.normal(), *rest


class IgnoresSeed(toy.Uneven):
  """Does not pass the seed to the base class."""

  def reset(self, *, seed=None, options=None):
    return super().reset()


class KeepsState(toy.Uneven):
  """Does not restore all state in reset()."""

  def step(self, action):
    observ, reward, *rest = super().step(action)
    return observ, float(self.taken), *rest


class DependsOnProcess(toy.Uneven):
  """Returns the process id as the reward."""

  def step(self, action):
    observ, reward, *rest = super().step(action)
    return observ, float(os.getpid()), *rest


class DiffersInReplay(toy.Uneven):
  """Returns other rewards in the second episode with the same seed.

  Args:
    pid: Id of the process in which all episodes with the same seed are equal.
  """

  _seeds: set[int] = set()

  def __init__(self, pid):
    super().__init__(max_length=100)
    self._pid = pid

  def reset(self, *, seed=None, options=None):
    self._is_replay = seed in self._seeds and os.getpid() != self._pid
    self._seeds.add(seed)
    return super().reset(seed=seed)

  def step(self, action):
    observ, reward, *rest = super().step(action)
    return observ, reward + self._is_replay, *rest


class FailsInWorkers(toy.Uneven):
  """Can step only in the process with the given id."""

  def __init__(self, pid):
    super().__init__()
    self._pid = pid

  def step(self, action):
    if os.getpid() != self._pid:
      raise RuntimeError("no robot in this process")
    return super().step(action)


class FailsLate(toy.Uneven):
  """Fails in step 21, which the first ten steps do not reach."""

  def step(self, action):
    if self.taken == 20:
      raise RuntimeError("hot motor")
    return super().step(action)


class TextlessError(Exception):
  def __str__(self):
    raise KeyError("text")


class FailsWithoutText(toy.Uneven):
  def step(self, action):
    raise TextlessError


class Exits(toy.Uneven):
  def step(self, action):
    sys.exit(0)


class FailsInSecondReset(toy.Target):
  """Has such long episodes that only the check of seeds resets it twice."""

  def __init__(self):
    super().__init__(length=1000)
    self._used = False

  def reset(self, *, seed=None, options=None):
    if self._used:
      raise RuntimeError("hot motor")
    self._used = True
    return super().reset(seed=seed)


class FailsInFirstReset(toy.Uneven):
  def reset(self, *, seed=None, options=None):
    raise RuntimeError("cold motor")


class Exclusive(toy.Uneven):
  """Cannot be built while another environment of this class is open."""

  _is_open = False

  def __init__(self):
    if Exclusive._is_open:
      raise OSError("device is busy")
    super().__init__()
    Exclusive._is_open = True

  def close(self):
    Exclusive._is_open = False


class Locked(toy.Uneven):
  """Receives a lock, which can't be pickled."""

  def __init__(self, lock):
    super().__init__()


class Unseeded(toy.Counter):
  """Needs no random numbers, and does not call the base class's reset."""

  def reset(self, *, seed=None, options=None):
    self._seed, self._step = seed or 0, 0
    return self._observ(), {}


class Unvarying(toy.Counter):
  """Begins equal episodes with all seeds."""

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    self._seed = 0
    return self._observ(), {}


class _Convert(toy.Uneven):
  """Returns the results of `convert` as observations."""

  def reset(self, *, seed=None, options=None):
    observ, info = super().reset(seed=seed)
    return self.convert(observ), info

  def step(self, action):
    observ, *rest = super().step(action)
    return self.convert(observ), *rest


class AlwaysMisshapen(_Convert):
  def convert(self, observ):
    return observ[None]


class Float64(_Convert):
  def convert(self, observ):
    return observ.astype(np.float64)


class List(_Convert):
  def convert(self, observ):
    return observ.tolist()


class Float64Step(toy.Uneven):
  def step(self, action):
    observ, *rest = super().step(action)
    return observ.astype(np.float64), *rest


class _Override(toy.Uneven):
  """Replaces results by the attributes that are not None.

  This happens in the second step of each episode: in step 3 for the first time.
  """

  observ: object = None
  reward: object = None
  terminated: object = None

  def step(self, action):
    observ, reward, terminated, *rest = super().step(action)
    if self._step == 2:
      observ = observ if self.observ is None else self.observ
      reward = reward if self.reward is None else self.reward
      terminated = terminated if self.terminated is None else self.terminated
    return observ, reward, terminated, *rest


class NotANumber(_Override):
  observ = np.full(1, np.nan, np.float32)


class Outside(_Override):
  observ = np.full(1, 3, np.float32)


class Misshapen(_Override):
  observ = np.zeros((1, 1), np.float32)


class Infinite(_Override):
  reward = np.inf


class NaNReward(toy.Uneven):
  """Returns NaN as every reward."""

  def step(self, action):
    observ, _, *rest = super().step(action)
    return observ, float("nan"), *rest


class ArrayReward(toy.Uneven):
  """Returns another array as the reward of each step."""

  def step(self, action):
    observ, reward, *rest = super().step(action)
    return observ, np.array([reward, 0.0]), *rest


class NotANumberAtAll(NotANumber):
  """Reaches an invalid state, from which it computes the reward."""

  reward = np.nan


class TextReward(_Override):
  reward = "much"


class IntegerTerminated(_Override):
  terminated = 0


class IntegerFlags(toy.Uneven):
  """Returns integers instead of bools."""

  def step(self, action):
    *rest, terminated, truncated, info = super().step(action)
    return *rest, int(terminated), int(truncated), info


class NumPyFlags(toy.Uneven):
  """Returns bools of NumPy, which Gymnasium's checker rejects."""

  def step(self, action):
    *rest, terminated, truncated, info = super().step(action)
    return *rest, np.bool_(terminated), np.bool_(truncated), info


class FourResults(toy.Uneven):
  """Has the interface of Gym before Gymnasium."""

  def step(self, action):
    observ, reward, terminated, truncated, info = super().step(action)
    return observ, reward, terminated or truncated, info


class TwoFaults(Infinite, GlobalRandom):
  """Returns an infinite reward, and draws from the global generator."""


class Huge(_Override):
  observ = np.full(1, 1e300)

  def __init__(self):
    super().__init__()
    self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,))


class TextObservation(toy.Uneven):
  """Has a text in its observation space."""

  def __init__(self):
    super().__init__()
    self.observation_space = gymnasium.spaces.Dict(
      {"one": self.observation_space, "other": gymnasium.spaces.Text(9)}
    )


class FailingConstructor(toy.Uneven):
  def __init__(self):
    raise OSError("no display")


@functools.cache
def _examine(name, **kwargs):
  is_id = "-v" in name or ":" in name
  env_id = name if is_id else f"tests.commands.checks.test_environment_checker:{name}"
  return list(environment_checker.examine(make.MakeEnv(config_lib.Env(env_id, kwargs))))


def _harmful(results):
  """Returns title of the check and problem, for each harmful problem."""
  return [
    (result.title, problem)
    for result in results
    for problem in result.problems
    if not problem.harmless
  ]


def _notes(results):
  return [
    problem.description for result in results for problem in result.problems if problem.harmless
  ]


def _skipped(results):
  return {result.title for result in results if result.skipped}


@pytest.mark.parametrize(
  "space",
  [
    "nested",
    *(pytest.param(space, marks=pytest.mark.slow) for space in ("multi_binary", "multi_discrete")),
  ],
)
def test_environments_of_any_space_pass(space):
  results = list(
    environment_checker.examine(
      make.MakeEnv(config_lib.Env("tests.echo:Echo", {"space": space}, max_length=20))
    )
  )
  assert not _harmful(results)
  assert len(results) == 10


@pytest.mark.parametrize(
  "name",
  [
    "Sound",
    "Derived",
    *(
      pytest.param(name, marks=pytest.mark.slow)
      for name in ("CartPole-v1", "FrozenLake-v1", "Hopper-v5")
    ),
  ],
)
def test_sound_environments_pass(name):
  results = _examine(name)
  assert not _harmful(results) and not _skipped(results)
  assert len(results) == 10
  notes = _notes(results)
  assert len(notes) == (name in ("Sound", "Derived"))
  assert all("no time limit" in note for note in notes)


_WORKERS = "worker processes give the same results and can replay episodes"
_OBSERVATIONS = "observations lie in the observation space"
_REWARDS = "rewards are finite, terminated and truncated are bools"
_SEEDS = "the same seed repeats an episode"
_VARIATION = "different seeds begin different episodes"
_SPACES = "can be built, has supported spaces, and steps"
_PICKLING = "constructor can be pickled"
_GYMNASIUM = "passes Gymnasium's checker"


@pytest.mark.parametrize("name, num_notes", [("Unvarying", 1), ("Sound", 0)])
def test_resets_that_do_not_vary_are_noted(name, num_notes):
  env = config_lib.Env(f"{__name__}:{name}")
  problems = next(
    result.problems
    for result in environment_checker.examine(make.MakeEnv(env))
    if result.title == _VARIATION
  )
  assert len(problems) == num_notes
  assert all("begin equal episodes" in note.description and note.harmless for note in problems)


@pytest.mark.fast_variants(25)
@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@pytest.mark.parametrize(
  "name, title, text, fix",
  [
    ("GlobalRandom", _SEEDS, "different values in step 1", "self.np_random"),
    ("Unrepeatable", _SEEDS, "different values in step 1", "self.np_random"),
    ("IgnoresSeed", _SEEDS, "values in reset 1", "super().reset(seed=seed)"),
    (
      "KeepsState",
      _SEEDS,
      "the same environment returned different values",
      "restore all state in reset()",
    ),
    ("FailsInSecondReset", _SEEDS, "RuntimeError: hot motor", "Correct"),
    ("NotANumber", _OBSERVATIONS, "not finite", "return observations"),
    (
      "NotANumberAtAll",
      _OBSERVATIONS,
      "In step 3: An observation is not fin",
      "return observations",
    ),
    ("Outside", _OBSERVATIONS, "3.0, is out of bounds", "correct the space"),
    ("Misshapen", _OBSERVATIONS, "(1, 1), its space (1,)", "correct the space"),
    ("AlwaysMisshapen", _OBSERVATIONS, "In reset 1: An observation has shape", "correct the space"),
    ("Huge", _OBSERVATIONS, "fit into float32", "return observations"),
    ("Infinite", _REWARDS, "The reward of step 3 is inf", "finite number"),
    ("NaNReward", _REWARDS, "The reward of step 1 is nan", "finite number"),
    ("ArrayReward", _REWARDS, "The reward of step 1 is ", "one finite number"),
    ("TextReward", _REWARDS, "is 'much'", "finite number"),
    ("IntegerTerminated", _REWARDS, "terminated of step 3 is 0", "True or"),
    ("IntegerFlags", _REWARDS, "truncated of step 1 is 0", "True or False"),
    ("TextObservation", _SPACES, "space Text", "Fix this first"),
    ("FailingConstructor", _SPACES, "OSError: no display", "Fix this first"),
    ("FailsInFirstReset", _SPACES, "cold motor", "Fix this first"),
    ("FourResults", _SPACES, "values to unpack", "step() must return 5"),
    ("FailsLate", _SPACES, "hot motor", "Fix this first"),
    ("FailsWithoutText", _SPACES, "because __str__ raised KeyError", "Fix this first"),
    ("Exits", _SPACES, "The environment has called sys.exit(0).", "Fix this first"),
    ("Exclusive", _SPACES, "device is busy", "Fix this first"),
    ("Locked", _PICKLING, "cannot pickle", "not in env.kwargs"),
    (
      "DependsOnProcess",
      _WORKERS,
      "steps in one process return different",
      "not depend on the process",
    ),
    (
      "GlobalSeed",
      _WORKERS,
      "steps in one process return different",
      "avoid global random numbers",
    ),
    ("FailsInWorkers", _WORKERS, "no robot in this process", "Correct"),
    ("DiffersInReplay", _WORKERS, "led to another sum of rewards", "only on seeds and actions"),
    ("Unseeded", _GYMNASIUM, "does not call `super().reset(seed=seed)`", "Gymnasium requires this"),
    ("NumPyFlags", _GYMNASIUM, "truncates after 1 step", "bool(truncated)"),
    (
      "Float64",
      _GYMNASIUM,
      "not within the observation space",
      "of the type of their space, Box(-1.0, 1.0, (1,), float32)",
    ),
  ],
)
def test_fault_is_one_problem_with_its_fix(name, title, text, fix):
  pid = {"pid": os.getpid()}
  kwargs = {"Locked": {"lock": threading.Lock()}, "FailsInWorkers": pid, "DiffersInReplay": pid}
  results = _examine(name, **kwargs.get(name, {}))
  ((found, problem),) = _harmful(results)
  assert found == title
  assert text in problem.description and fix in problem.fix, problem
  assert all("no time limit" in note for note in _notes(results))


@pytest.mark.parametrize(
  "name, titles",
  [
    ("Sound", set()),
    ("GlobalRandom", {_VARIATION, _WORKERS, _GYMNASIUM}),
    ("AlwaysMisshapen", {_REWARDS, _VARIATION, _WORKERS, _GYMNASIUM}),
    ("DependsOnProcess", {_GYMNASIUM}),
  ],
)
def test_checks_that_an_earlier_fault_may_fail_are_skipped(name, titles):
  assert _skipped(_examine(name)) == titles


def test_independent_faults_are_reported_together():
  assert [title for title, _ in _harmful(_examine("TwoFaults"))] == [_REWARDS, _SEEDS]


@pytest.mark.slow
@pytest.mark.parametrize(
  "name, text",
  [
    ("tests.environments.faulty_envs:Reusing", "has changed since"),
    ("List", "was expecting a numpy array, actual type: <class 'list'>"),
    ("Float64Step", "dtype to be float32, actual type: float64"),
  ],
)
def test_harmless_fault_is_one_note(name, text):
  results = _examine(name)
  assert not _harmful(results)
  (note,) = [note for note in _notes(results) if "no time limit" not in note]
  assert text in note


def test_errors_name_the_line_of_the_environment():
  ((_, problem),) = _harmful(_examine("FailsLate"))
  assert "(test_environment_checker.py, line " in problem.description
  assert problem.description.endswith(", in step)")


def test_environment_that_can_not_be_built_gets_no_other_check():
  assert len(_examine("FailingConstructor")) == 1


def test_speed_counts_steps():
  constructor = make.MakeEnv(config_lib.Env("tests.commands.checks.test_environment_checker:Sound"))
  assert environment_checker.steps_per_second(constructor) > 100
