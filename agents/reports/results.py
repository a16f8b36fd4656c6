"""Runs read from their folders, put together by what they are runs of."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

from agents import config as config_lib
from agents.training.run_folder import run_folder

# What changes neither scores nor what an update learns from.
_INCIDENTAL = (
    "seed", "num_workers", "env_processes", "device",
    "eager", "report_every", "eval_every", "eval_episodes", "histograms",
    "checkpoint_every", "video_every", "on_env_error", "env_timeout",
    "max_env_restarts")


class Run(NamedTuple):
  """One run, as far as it has come."""

  name: str  # Of its config.
  path: pathlib.Path
  config: config_lib.Config
  rows: list[dict[str, Any]]  # Of metrics.jsonl.

  def phase(self, name: str) -> list[dict[str, Any]]:
    """Return the rows of "train" or "eval" that have a score."""
    return [row for row in self.rows
            if row["phase"] == name and row["return_mean"] is not None]

  @property
  def settings(self) -> dict[str, Any]:
    """What the scores depend on, beside the seed."""
    return {key: value for key, value in config_lib.flat(self.config).items()
            if key not in _INCIDENTAL}

  @property
  def complete(self) -> bool:
    """Whether it was evaluated after the whole of its budget."""
    return any(row["phase"] == "eval" and row["step"] >= self.config.steps
               for row in self.rows)


class Group(NamedTuple):
  """Runs that differ in nothing but their seeds."""

  task: str
  label: str  # Tells it from the others of its task.
  runs: list[Run]


def find(paths: Iterable[str]) -> list[pathlib.Path]:
  """Return all run folders in some folders, at any depth.

  Raises:
    ConfigError: If there is none in one of them.
  """
  found: dict[pathlib.Path, None] = {}
  for text in paths:
    path = pathlib.Path(text).expanduser()
    configs = [config for config in sorted(path.rglob("config.yaml"))
               if config.parent.parent.name != "crashes"]
    if not configs:
      raise config_lib.ConfigError(
          f"{path}: there is no run folder in it. Give one that train.py made, "
          "or a folder of them.")
    found |= dict.fromkeys(config.parent.resolve() for config in configs)
  return list(found)


def read(path: pathlib.Path) -> Run:
  """Read a run, finished or not; a line that is being written doesn't count.

  Raises:
    ConfigError: If config or metrics can't be read.
  """
  folder = run_folder.RunFolder(path)
  _, _, name = path.name.partition("-")  # The time it began, before.
  metrics = path / "metrics.jsonl"
  try:
    text = metrics.read_text() if metrics.exists() else ""
    complete, _, _ = text.rpartition("\n")
    rows = [json.loads(line) for line in complete.splitlines()]
    for row in rows:
      if {"phase", "step", "return_mean"} - row.keys():
        raise ValueError(f"{row!r} is no report.")
  except (ValueError, AttributeError, RecursionError) as error:
    raise config_lib.ConfigError(f"{metrics} is damaged: {error}") from None
  return Run(name or path.name, path, folder.config, rows)


def group(runs: Sequence[Run]) -> list[Group]:
  """Put runs with the same settings together, tasks and labels in order."""
  by_settings: dict[str, list[Run]] = {}
  for run in runs:
    by_settings.setdefault(
        json.dumps(run.settings, sort_keys=True), []).append(run)
  groups = list(by_settings.values())
  found = []
  for members in groups:
    name = task(members[0].config.env)
    rivals = [other for other in groups if task(other[0].config.env) == name]
    found.append(Group(name, _label(members[0], rivals), members))
  return sorted(found, key=lambda each: (each.task, each.label))


def differences(groups: Sequence[Group]) -> dict[str, list[Any]]:
  """Return the settings in which groups differ, with the value of each."""
  settings = [each.runs[0].settings for each in groups]
  keys = dict.fromkeys(key for each in settings for key in each)
  return {key: [each.get(key) for each in settings] for key in keys
          if len({repr(each.get(key)) for each in settings}) > 1}


def task(env: config_lib.Env) -> str:
  """Return an environment's id, and what is not as it is registered."""
  changed = [f"{key}={value}" for key, value in env.kwargs.items()]
  changed += [f"{field.name}={getattr(env, field.name)}"
              for field in dataclasses.fields(env)
              if field.name not in ("id", "kwargs")
              and getattr(env, field.name) != field.default]
  return " ".join([env.id, *changed])


def _label(run: Run, rivals: Sequence[list[Run]]) -> str:
  """Return the config's name and, if others have it too, what differs."""
  namesakes = [other[0].settings for other in rivals
               if other[0].name == run.name]
  differing = [f"{key.rpartition('.')[2]}={_short(value)}"
               for key, value in run.settings.items()
               if any(other.get(key) != value for other in namesakes)]
  return ", ".join([run.name, *differing])


def _short(value: Any) -> str:
  """Return a value, of a number its first digits."""
  return f"{value:.6g}" if isinstance(value, float) else str(value)
