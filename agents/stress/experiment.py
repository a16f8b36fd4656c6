"""Plays episodes with and without disturbances, and compares them by seed."""

import pathlib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from agents import config as config_lib
from agents import errors
from agents.commands.shared import rollout_policy
from agents.environments.data import episode_data
from agents.stress import disturbances, environments, intervals
from agents.training.run_folder import run_folder

CONTROL = "control"
_MAX_ENVS = 20  # Environments that play in parallel; part of the seeds.


class Condition(NamedTuple):
  """Episodes of the control group, or with one level of a disturbance."""

  name: str  # Name of the disturbance, or `CONTROL`.
  level: float | None  # None for the control group.
  env: config_lib.Env
  episodes: list[episode_data.Episode]

  @property
  def returns(self) -> np.ndarray:
    """Sum of the rewards of each episode, [N]."""
    return np.array([episode.score for episode in self.episodes])

  @property
  def survived(self) -> np.ndarray:
    """Whether each episode has reached the time limit, [N] bool."""
    return np.array([episode.length == self.env.max_length for episode in self.episodes])


class Summary(NamedTuple):
  """Estimates for one level; differences are from the control group."""

  level: float | None
  survival: intervals.Interval  # Share of the episodes without termination.
  survival_difference: intervals.Interval
  score: intervals.Interval  # Mean return.
  score_difference: intervals.Interval


class Fall(NamedTuple):
  """The first fall that a disturbance causes."""

  name: str  # Name of the disturbance.
  level: float
  env: config_lib.Env
  episode: episode_data.Episode


def play(
  folder: run_folder.RunFolder, path: pathlib.Path, names: Sequence[str], num_episodes: int
) -> Iterator[Condition]:
  """Plays episodes with the same seeds under all conditions.

  Args:
    folder: Run folder with an environment that passes `environments.check`.
    path: Path of the checkpoint.
    names: Names of the disturbances.
    num_episodes: Number of episodes of each condition.

  Yields:
    The control group, then each level of each disturbance.

  Raises:
    ConfigError: If the checkpoint belongs to another model.
    RunError: If an environment fails.
  """
  control = environments.undisturbed(folder.config.env)
  conditions = [Condition(CONTROL, None, control, [])]
  conditions += [
    Condition(name, level, environments.disturbed(control, name, level, level), [])
    for name in names
    for level in disturbances.DISTURBANCES[name].levels
  ]
  results = rollout_policy.play_in_each(
    folder, path, [condition.env for condition in conditions], num_episodes, _MAX_ENVS
  )
  for condition in conditions:
    try:
      episodes = next(results)
    except errors.EnvironmentsError as error:
      level = "" if condition.level is None else f" at level {condition.level:g}"
      raise errors.RunError(
        f"{condition.name}{level}: {error}\n--disturbances selects other disturbances."
      ) from error
    yield condition._replace(episodes=episodes)


def summarize(condition: Condition, control: Condition) -> Summary:
  """Returns the estimates for one condition.

  Args:
    condition: Episodes with a disturbance.
    control: Episodes of the control group, with the same seeds.
  """
  return Summary(
    condition.level,
    intervals.share(condition.survived),
    intervals.share_difference(condition.survived, control.survived),
    intervals.mean(condition.returns),
    intervals.mean(condition.returns - control.returns),
  )


def first_fall(conditions: Iterable[Condition], control: Condition) -> Fall | None:
  """Returns the first fall that a disturbance causes.

  This is the shortest episode at the mildest level that ends early although the
  episode of the control group with the same seed reaches the time limit. If no
  episode of the control group reaches it, all early ends count.

  Args:
    conditions: Levels of one disturbance, the mildest first.
    control: Episodes of the control group, with the same seeds.

  Returns:
    The fall, or None if the disturbance causes none.
  """
  counted = control.survived if control.survived.any() else ~control.survived
  for condition in conditions:
    fallen = np.flatnonzero(counted & ~condition.survived)
    if len(fallen):
      assert condition.level is not None
      episode = min((condition.episodes[index] for index in fallen), key=lambda each: each.length)
      return Fall(condition.name, condition.level, condition.env, episode)
  return None
