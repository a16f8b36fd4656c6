"""Reads the results of runs from their folders, and groups them by settings."""

import dataclasses
import json
import pathlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from agents import config as config_lib
from agents.training.run_folder import report_line, run_folder

# Settings in which the runs of a group may differ: the seed, and settings that
# do not affect learning.
_NOT_COMPARED = (
  "seed",
  "num_workers",
  "env_processes",
  "device",
  "eager",
  "report_every",
  "eval_every",
  "eval_episodes",
  "histograms",
  "checkpoint_every",
  "video_every",
  "trace_graph",
  "logger",
  "on_env_error",
  "env_timeout",
  "max_env_restarts",
)


class RunResults(NamedTuple):
  """Settings and reports of one run, complete or not."""

  name: str  # Name of the config.
  path: pathlib.Path  # Run folder.
  config: config_lib.Config
  rows: list[dict[str, Any]]  # Lines of metrics.jsonl.

  def phase(self, name: str) -> list[dict[str, Any]]:
    """Returns the rows with a score of one phase.

    Args:
      name: "train" or "eval".

    Returns:
      Rows in the order of their steps.
    """
    return [row for row in self.rows if row["phase"] == name and row["return_mean"] is not None]

  @property
  def settings(self) -> dict[str, Any]:
    """Settings that all runs of a group have in common, by dotted key."""
    return {
      key: value for key, value in config_lib.flat(self.config).items() if key not in _NOT_COMPARED
    }

  @property
  def origin(self) -> tuple[str, int]:
    """Run from which a fork started, or "", and all steps before the fork."""
    lineage = [text.rpartition("@") for text in self.config.forked_from]
    return lineage[-1][0] if lineage else "", sum(int(step) for _, _, step in lineage)

  @property
  def complete(self) -> bool:
    """Whether the run evaluated the policy after its last training step."""
    return any(row["phase"] == "eval" and row["step"] >= self.config.steps for row in self.rows)


class RunGroup(NamedTuple):
  """Runs with the same settings, except for the seed."""

  task: str  # See `task`.
  label: str  # Text that distinguishes the groups of a task.
  runs: list[RunResults]


def find(paths: Iterable[str]) -> list[pathlib.Path]:
  """Finds run folders at any depth.

  Args:
    paths: Paths of run folders, or of folders that contain run folders.

  Returns:
    Path of each run folder, without duplicates.

  Raises:
    ConfigError: If a path contains no run folder.
  """
  folders: dict[pathlib.Path, None] = {}
  for text in paths:
    path = pathlib.Path(text).expanduser()
    configs = [
      config
      for config in sorted(path.rglob("config.yaml"))
      if config.parent.parent.name != "crashes"
    ]
    if not configs:
      raise config_lib.ConfigError(
        f"{path}: there is no run folder in it. Expected a run folder of "
        "train.py, or a folder that contains run folders."
      )
    folders |= dict.fromkeys(config.parent.resolve() for config in configs)
  return list(folders)


def read(path: pathlib.Path) -> RunResults:
  """Reads the results of a run.

  If the last line of metrics.jsonl has no line break, the run may be writing
  this line. It is therefore ignored.

  Args:
    path: Path of the run folder.

  Returns:
    Settings and reports of the run.

  Raises:
    ConfigError: If the config or metrics.jsonl cannot be read.
  """
  folder = run_folder.RunFolder(path)
  _, _, name = path.name.partition("-")  # The start time precedes the name.
  metrics = path / "metrics.jsonl"
  try:
    text = metrics.read_text() if metrics.exists() else ""
    rows = [json.loads(line) for line in text.split("\n")[:-1]]
    for row in rows:
      if not report_line.is_report(row):
        raise ValueError(f"{row!r} is not a report.")
  except (ValueError, RecursionError) as error:
    raise config_lib.ConfigError(f"{metrics} is damaged: {error}") from None
  return RunResults(name or path.name, path, folder.config, rows)


def group(runs: Sequence[RunResults]) -> list[RunGroup]:
  """Groups runs with the same settings.

  Args:
    runs: Runs of any tasks.

  Returns:
    Groups, sorted by task and label.
  """
  by_settings: dict[str, list[RunResults]] = {}
  for run in runs:
    key = json.dumps(run.settings, sort_keys=True)
    by_settings.setdefault(key, []).append(run)
  representatives = [(members[0], members[0].settings) for members in by_settings.values()]
  groups = [
    RunGroup(task(members[0].config.env), _label(members[0], representatives), members)
    for members in by_settings.values()
  ]
  return sorted(groups, key=lambda group: (group.task, group.label))


def differences(groups: Sequence[RunGroup]) -> dict[str, list[Any]]:
  """Returns the settings in which groups differ.

  Args:
    groups: Groups of runs.

  Returns:
    List of the values of all groups, in the order of `groups`, by dotted key.
  """
  settings = [group.runs[0].settings for group in groups]
  keys = dict.fromkeys(key for each in settings for key in each)
  values = {key: [each.get(key) for each in settings] for key in keys}
  return {key: column for key, column in values.items() if len(set(map(repr, column))) > 1}


def task(env: config_lib.Env) -> str:
  """Returns the name of a task: id and changed settings of the environment.

  Args:
    env: Settings of the environment.

  Returns:
    For example "Ant-v5 contact_cost_weight=0".
  """
  changes = [f"{key}={value}" for key, value in env.kwargs.items()]
  changes += [
    f"{field.name}={getattr(env, field.name)}"
    for field in dataclasses.fields(env)
    if field.name not in ("id", "kwargs") and getattr(env, field.name) != field.default
  ]
  return " ".join([env.id, *changes])


def _label(run: RunResults, representatives: Sequence[tuple[RunResults, dict[str, Any]]]) -> str:
  """Returns the config's name; adds settings unless the name is unique.

  Args:
    run: Run of the group to label.
    representatives: One run of each group, with its settings.
  """
  run_task = task(run.config.env)
  same_name = [
    settings
    for other, settings in representatives
    if other.name == run.name and task(other.config.env) == run_task
  ]
  differing = [
    _setting(run, key, value)
    for key, value in run.settings.items()
    if any(other.get(key) != value for other in same_name)
  ]
  return ", ".join([run.name, *differing])


def _setting(run: RunResults, key: str, value: Any) -> str:
  """Returns a short text about a setting of a run."""
  if key == "forked_from":
    return f"from {run.config.forked_from[-1]}" if run.config.forked_from else "no fork"
  text = f"{value:.6g}" if isinstance(value, float) else value
  return f"{key.rpartition('.')[2]}={text}"
