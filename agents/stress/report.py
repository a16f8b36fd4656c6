"""Collects the contents of a stress report."""

import pathlib
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from agents.stress import experiment, films
from agents.training.run_folder import checkpoint, run_folder
from agents.videos import render_pool


class Report(NamedTuple):
  """Contents of a stress report."""

  task: str
  run: str  # Name of the run folder.
  step: int  # Training steps of the policy.
  num_episodes: int  # Number of episodes per condition.
  limit: int  # Time limit of the episodes in steps.
  control: experiment.Summary
  levels: Mapping[str, Sequence[experiment.Summary]]  # By name of disturbance.
  falls: Mapping[str, experiment.Fall]  # First falls, by name of disturbance.
  films: Mapping[str, bytes]  # MP4 files of falls, by name of disturbance.
  no_films: str  # Reason for missing films, or "".


def make(
  folder: run_folder.RunFolder,
  path: pathlib.Path,
  names: Sequence[str],
  num_episodes: int,
  with_films: bool = True,
) -> Report:
  """Plays and films episodes; prints the estimates.

  Args:
    folder: Run folder with an environment that passes `environments.check`.
    path: Path of the checkpoint.
    names: Names of the disturbances.
    num_episodes: Number of episodes of each condition.
    with_films: Whether to film the first falls.

  Returns:
    The report.

  Raises:
    ConfigError: If the checkpoint belongs to another model.
    RunError: If an environment fails.
  """
  played = experiment.play(folder, path, names, num_episodes)
  control = next(played)
  control_summary = _summarize(control, control)
  conditions: dict[str, list[experiment.Condition]] = {name: [] for name in names}
  levels: dict[str, list[experiment.Summary]] = {name: [] for name in names}
  for condition in played:
    conditions[condition.name].append(condition)
    levels[condition.name].append(_summarize(condition, control))
  falls = {
    name: fall
    for name in names
    if (fall := experiment.first_fall(conditions[name], control)) is not None
  }
  filmed, problem = {}, "" if with_films else "The command had the option --no-films."
  if with_films and falls:
    print(f"Films the first falls: {', '.join(falls)}", flush=True)
    try:
      filmed = films.record(falls.values(), folder.config.seed)
    except render_pool.RenderingFailed as error:
      problem = str(error)
      print(f"Note: the report has no films. {problem}", file=sys.stderr)
  return Report(
    folder.config.env.id,
    folder.path.name,
    checkpoint.step_of(path),
    num_episodes,
    control.env.max_length or 0,
    control_summary,
    levels,
    falls,
    filmed,
    problem,
  )


def _summarize(
  condition: experiment.Condition, control: experiment.Condition
) -> experiment.Summary:
  """Returns and prints the estimates for one condition."""
  summary = experiment.summarize(condition, control)
  level = "" if summary.level is None else f" {summary.level:g}"
  survival = "{:.0%} [{:.0%}, {:.0%}]".format(*summary.survival)
  score = "{:,.4g} [{:,.4g}, {:,.4g}]".format(*summary.score)
  print(f"{condition.name}{level}: survival {survival}, return {score}", flush=True)
  return summary
