"""The checker finds every fault of an environment, and no other problems."""

import functools
import os
import random

import gymnasium
import numpy as np
import pytest

from agents import config as config_lib
from agents.commands import environment_checker
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


class _Override(toy.Uneven):
  """Replaces results of the third step by the attributes that are not None."""

  observ: object = None
  reward: object = None
  terminated: object = None

  def step(self, action):
    observ, reward, terminated, *rest = super().step(action)
    if self.taken == 3:
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


class TextReward(_Override):
  reward = "much"


class IntegerTerminated(_Override):
  terminated = 0


class Huge(_Override):
  observ = np.full(1, 1e300)

  def __init__(self):
    super().__init__()
    self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,))


class TextObservation(toy.Uneven):
  """Has a text in its observation space."""

  def __init__(self):
    super().__init__()
    self.observation_space = gymnasium.spaces.Dict({
        "one": self.observation_space, "other": gymnasium.spaces.Text(9)})


class FailingConstructor(toy.Uneven):
  def __init__(self):
    raise OSError("no display")


@functools.cache
def _examine(name):
  is_id = "-v" in name or ":" in name
  env_id = name if is_id else f"tests.commands.test_environment_checker:{name}"
  return list(environment_checker.examine(make.MakeEnv(config_lib.Env(env_id))))


def _harmful(results):
  """Returns the descriptions of harmful problems, by title of the check."""
  return {result.title: [problem.description for problem in result.problems
                         if not problem.harmless]
          for result in results
          if not all(problem.harmless for problem in result.problems)}


@pytest.mark.parametrize("space", ["nested", *(
    pytest.param(space, marks=pytest.mark.slow) for space in (
        "multi_binary", "multi_discrete"))])
def test_environments_of_any_space_pass(space):
  results = list(environment_checker.examine(make.MakeEnv(config_lib.Env(
      "tests.echo:Echo", {"space": space}, max_length=20))))
  assert not _harmful(results)
  assert len(results) == 9


@pytest.mark.parametrize("name", [
    "Sound", "Derived", *(
        pytest.param(name, marks=pytest.mark.slow) for name in (
            "CartPole-v1", "FrozenLake-v1", "Hopper-v5"))])
def test_sound_environments_pass(name):
  results = _examine(name)
  assert not _harmful(results)
  assert len(results) == 9
  notes = [problem.description for result in results
           for problem in result.problems]
  assert len(notes) == (name in ("Sound", "Derived"))
  assert all("no time limit" in note for note in notes)


_WORKERS = "worker processes give the same results and can replay episodes"
_OBSERVATIONS = "observations lie in the observation space"
_REWARDS = "rewards are finite, terminated and truncated are bools"
_SEEDS = "the same seed repeats an episode"
_SPACES = "can be built, has supported spaces, and steps"


@pytest.mark.fast_variants(5)
@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@pytest.mark.parametrize("name, title, text", [
    ("Unrepeatable", _SEEDS, "different values in step 1"),
    ("KeepsState", _SEEDS, "the same environment returned different values"),
    ("DependsOnProcess", _WORKERS, "steps in one process return different"),
    ("NotANumber", _OBSERVATIONS, "not finite"),
    ("Outside", _OBSERVATIONS, "3.0, is out of bounds"),
    ("Misshapen", _OBSERVATIONS, "(1, 1), its space (1,)"),
    ("Huge", _OBSERVATIONS, "fit into float32"),
    ("Infinite", _REWARDS, "The reward of step 3 is inf"),
    ("TextReward", _REWARDS, "is 'much'"),
    ("IntegerTerminated", _REWARDS, "terminated of step 3 is 0"),
    ("TextObservation", _SPACES, "space Text"),
    ("FailingConstructor", _SPACES, "OSError: no display"),
])
def test_faults_are_reported_with_a_fix(name, title, text):
  results = _examine(name)
  harmful = _harmful(results)
  assert any(text in description for description in harmful[title]), harmful
  for result in results:
    for problem in result.problems:
      assert problem.fix


@pytest.mark.parametrize("name, titles", [
    ("Unrepeatable", {_SEEDS, _WORKERS}), ("DependsOnProcess", {_WORKERS})])
def test_a_fault_fails_no_other_check(name, titles):
  harmful = _harmful(_examine(name))
  # Gymnasium's checker may report the same fault.
  harmful.pop("passes Gymnasium's checker", None)
  assert set(harmful) == titles


@pytest.mark.parametrize("name", ["NaNReward", "ArrayReward"])
def test_fault_of_all_rewards_is_reported_once(name):
  problem, = _harmful(_examine(name))[_REWARDS]
  assert problem.startswith("The reward of step 1 is ")
  assert _SEEDS not in _harmful(_examine(name))


def test_reused_observation_arrays_are_noted():
  results = {result.title: result.problems for result in _examine(
      "tests.environments.faulty_envs:Reusing")}
  problem, = results["returned observations do not change later"]
  assert problem.harmless and "has changed since" in problem.description


def test_environment_that_can_not_be_built_gets_no_other_check():
  assert len(_examine("FailingConstructor")) == 1


def test_speed_counts_steps():
  constructor = make.MakeEnv(
      config_lib.Env("tests.commands.test_environment_checker:Sound"))
  assert environment_checker.steps_per_second(constructor) > 100
