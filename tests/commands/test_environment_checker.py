"""Each fault of an environment is found, and nothing else is."""

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
  """Has nothing wrong with it but that it declares no time limit."""


class _Choice(gymnasium.spaces.Discrete):
  """Of somebody's own."""


class Derived(Sound):
  """Has a space of a class that Gymnasium does not know."""

  def __init__(self):
    super().__init__(discrete=True)
    self.action_space = _Choice(int(self.action_space.n))


class Unrepeatable(toy.Uneven):
  """Draws numbers that no seed gives."""

  def step(self, action):
    observ, reward, *rest = super().step(action)
    return observ, reward + random.random(), *rest


class Forgetful(toy.Uneven):
  """Does not set everything back."""

  def step(self, action):
    observ, reward, *rest = super().step(action)
    return observ, float(self.taken), *rest


class Elsewhere(toy.Uneven):
  """Depends on the process."""

  def step(self, action):
    observ, reward, *rest = super().step(action)
    return observ, float(os.getpid()), *rest


class _Says(toy.Uneven):
  """Returns something odd at the end of its third step."""

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


class NotANumber(_Says):
  observ = np.full(1, np.nan, np.float32)


class Outside(_Says):
  observ = np.full(1, 3, np.float32)


class Misshapen(_Says):
  observ = np.zeros((1, 1), np.float32)


class Infinite(_Says):
  reward = np.inf


class Speechless(_Says):
  reward = "much"


class Unclear(_Says):
  terminated = 0


class Huge(_Says):
  observ = np.full(1, 1e300)

  def __init__(self):
    super().__init__()
    self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,))


class Wordy(toy.Uneven):
  """Observes a text, among others."""

  def __init__(self):
    super().__init__()
    self.observation_space = gymnasium.spaces.Dict({
        "one": self.observation_space, "other": gymnasium.spaces.Text(9)})


class Broken(toy.Uneven):
  def __init__(self):
    raise OSError("no display")


def _examine(name):
  known = "-v" in name or ":" in name
  env_id = name if known else f"tests.commands.test_environment_checker:{name}"
  return list(environment_checker.examine(make.MakeEnv(config_lib.Env(env_id))))


def _wrong(findings):
  """Return what must be mended, by check."""
  return {finding.check: [problem.what for problem in finding.problems
                          if not problem.harmless]
          for finding in findings
          if not all(problem.harmless for problem in finding.problems)}


@pytest.mark.parametrize("space", ["nested", "multi_binary", "multi_discrete"])
def test_environments_of_any_space_pass(space):
  findings = list(environment_checker.examine(make.MakeEnv(config_lib.Env(
      "tests.echo:Echo", {"space": space}, max_length=20))))
  assert not _wrong(findings)
  assert len(findings) == 9


@pytest.mark.parametrize("name", [
    "Sound", "Derived", "CartPole-v1", "Hopper-v5", "FrozenLake-v1"])
def test_sound_environments_pass(name):
  findings = _examine(name)
  assert not _wrong(findings)
  assert len(findings) == 9
  notes = [problem.what for finding in findings for problem in finding.problems]
  assert len(notes) == (name in ("Sound", "Derived"))
  assert all("no time limit" in note for note in notes)


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@pytest.mark.parametrize("name, found, text", [
    ("Unrepeatable", "repeats by seed", "something else at step 1"),
    ("Forgetful", "repeats by seed", "led the same one to something else"),
    ("Elsewhere", "is the same in other processes, and can be replayed",
     "something else than in one process"),
    ("NotANumber", "observes what its space contains", "not finite"),
    ("Outside", "observes what its space contains", "is 3.0"),
    ("Misshapen", "observes what its space contains", "(1, 1), its space (1,)"),
    ("Huge", "observes what its space contains", "fit into float32"),
    ("Infinite", "gives finite rewards and clear ends", "A reward is inf"),
    ("Speechless", "gives finite rewards and clear ends", "is 'much'"),
    ("Unclear", "gives finite rewards and clear ends", "terminated is 0"),
    ("Wordy", "builds, and has spaces that fit", "space Text"),
    ("Broken", "builds, and has spaces that fit", "OSError: no display"),
])
def test_faults_are_found_and_said(name, found, text):
  findings = _examine(name)
  wrong = _wrong(findings)
  assert any(text in what for what in wrong[found]), wrong
  for finding in findings:
    for problem in finding.problems:
      assert problem.fix


@pytest.mark.parametrize("name, alone", [
    ("Unrepeatable", {"repeats by seed",
                      "is the same in other processes, and can be replayed"}),
    ("Elsewhere", {"is the same in other processes, and can be replayed"})])
def test_nothing_else_is_blamed(name, alone):
  wrong = _wrong(_examine(name))
  wrong.pop("passes Gymnasium's checker", None)  # It has its own opinion.
  assert set(wrong) == alone


def test_arrays_that_are_used_again_are_noted():
  findings = {x.check: x.problems for x in _examine(
      "tests.environments.faulty_envs:Reusing")}
  problem, = findings["leaves observations alone"]
  assert problem.harmless and "has changed since" in problem.what


def test_nothing_follows_an_environment_that_can_not_be_built():
  assert len(_examine("Broken")) == 1


def test_speed_counts_steps():
  constructor = make.MakeEnv(
      config_lib.Env("tests.commands.test_environment_checker:Sound"))
  assert environment_checker.steps_per_second(constructor) > 100
