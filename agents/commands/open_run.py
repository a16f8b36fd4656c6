"""Opens the run that a command goes on with."""

from __future__ import annotations

import sys
from typing import Any

from agents import config as config_lib
from agents.commands import settings as settings_lib
from agents.training.run_folder import checkpoint
from agents.training.run_folder import run_folder


def named(path: str, changes: dict[str, Any]
          ) -> tuple[settings_lib.Settings, run_folder.RunFolder]:
  """Open a run folder, or the newest one in a folder of runs that can be used.

  Args:
    path: Of the folder.
    changes: Of its settings, by their dotted keys; `steps` can only grow.
  """
  folder = run_folder.find(path)
  if not checkpoint.paths(folder.checkpoints):
    raise config_lib.ConfigError(f"{folder.path} has no checkpoint yet.")
  config = folder.config
  settings = settings_lib.of_old_run(folder.path.name, config, changes)
  steps = settings.config.steps
  if steps < config.steps:
    raise config_lib.ConfigError(
        f"--steps {changes['steps']}: the run has a budget of "
        f"{config.steps:,} steps already, which can only grow.")
  if steps > config.steps:  # Schedules follow it, so this is another run.
    settings = settings_lib.of_old_run(folder.path.name, config, {
        **changes, "extended_from": [*config.extended_from, config.steps]})
  _tell_changes(folder)
  return settings, folder


def begun(logdir: str, config: config_lib.Config
          ) -> run_folder.RunFolder | None:
  """Open the run that the same command has begun, if it is not finished."""
  folder = run_folder.unfinished(logdir, config)
  if folder:
    print(f"Going on with {folder.path}, which has these very settings; a new "
          "run needs another --logdir or --seed.", flush=True)
    _tell_changes(folder)
  return folder


def _tell_changes(folder: run_folder.RunFolder):
  """Say which packages and code are not those that a run began with."""
  if changes := folder.changes():
    print("Not what this run began with, so it may not repeat bit for bit: "
          f"{', '.join(changes)}.", file=sys.stderr)
