"""Saves each failure of environments or workers in a crash folder.

A run keeps its latest 100 crash folders. The command `python -m agents replay`
repeats the episodes of a crash folder.

    about.txt      the failure: traceback or stacks of the threads
    config.yaml    all settings of the run
    episodes.npz   environment, seed and actions of the failed episode, or of
                   all running episodes of a worker that died
"""

import itertools
import os
import pathlib
import re
import shutil
import sys
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from agents import config as config_lib
from agents import errors
from agents.environments.data import failure_budget
from agents.training.run_folder import array_file, atomic_write, import_guard, run_folder

_MAX_FOLDERS = 100  # If a run has more folders, the oldest ones are deleted.


class Crash(NamedTuple):
  """Contents of a crash folder."""

  config: config_lib.Config
  failure: failure_budget.Failure


def save_survived(
  run: run_folder.RunFolder, failures: failure_budget.FailureBudget, step: int
) -> list[str]:
  """Saves the tolerated failures since the previous call.

  Args:
    run: Run folder.
    failures: Failures of the environments and workers of the run.
    step: Training steps completed.

  Returns:
    One line per failure for the console.
  """
  return [
    f"step {step:,}: restart: {failure.summary} (details: {_try_to_save(run, step, failure)})"
    for failure in failures.drain()
  ]


def save_fatal(
  run: run_folder.RunFolder, failures: failure_budget.FailureBudget, step: int, error: Exception
) -> None:
  """Saves the failure that caused an error, and prints the crash folder.

  Args:
    run: Run folder.
    failures: Failures of the environments and workers of the run.
    step: Training steps completed.
    error: Error for which `is_environment_failure` is true.
  """
  failure = failures.fatal or failure_budget.Failure(str(error))
  print(f"The failure is saved in {_try_to_save(run, step, failure)}.", file=sys.stderr)


def is_environment_failure(error: Exception) -> bool:
  """Returns whether environments or a lost machine caused an error.

  After such an error, the trainer still has the state from before the epoch.

  Args:
    error: Error that ended an epoch.
  """
  return any(isinstance(cause, errors.EnvironmentsError) for cause in (error, error.__cause__))


def _try_to_save(
  run: run_folder.RunFolder, step: int, failure: failure_budget.Failure
) -> pathlib.Path | str:
  """Returns the new crash folder, or the reason why there is none."""
  try:
    return save(run, step, failure)
  except atomic_write.WriteError as error:
    return f"no folder: {error}"


def save(run: run_folder.RunFolder, step: int, failure: failure_budget.Failure) -> pathlib.Path:
  """Saves a failure in a new crash folder, and deletes old crash folders.

  Args:
    run: Run folder.
    step: Training steps completed before the epoch of the failure.
    failure: Description and episodes of the failure.

  Returns:
    Path of the new folder.

  Raises:
    WriteError: If the folder cannot be written.
  """
  crashes = run.path / "crashes"
  names = [re.fullmatch(r"(\d{12})-(\d+)", path.name) for path in crashes.glob("*")]
  before = sorted((int(name[1]), int(name[2])) for name in names if name)
  number = 1 + max((number for other, number in before if other == step), default=0)
  with atomic_write.new_folder(_path(crashes, step, number)) as folder:
    with atomic_write.open_file(folder / "about.txt") as file:
      file.write(failure.text.encode("utf-8", errors="backslashreplace"))
    with atomic_write.open_file(folder / "config.yaml") as file:
      file.write(config_lib.dump(run.config).encode())
    if episodes := failure.episodes:
      with atomic_write.open_file(folder / "episodes.npz") as file:
        np.savez(
          file,
          environment=[episode.environment for episode in episodes],
          seed=[episode.seed for episode in episodes],
          length=[len(episode.action) for episode in episodes],
          action=np.concatenate([episode.action for episode in episodes]),
        )
  for position in before[: max(0, len(before) + 1 - _MAX_FOLDERS)]:
    shutil.rmtree(_path(crashes, *position), ignore_errors=True)
  return _path(crashes, step, number)


def _path(crashes: pathlib.Path, step: int, number: int) -> pathlib.Path:
  return crashes / f"{step:012d}-{number}"


def find(path: pathlib.Path) -> pathlib.Path:
  """Returns the newest crash folder of a run folder, or `path` itself.

  Args:
    path: Path of a run folder or of a crash folder.

  Raises:
    ConfigError: If the run folder contains no crash folder.
  """
  if not (path / "checkpoints").is_dir():
    return path
  crashes = list(path.glob("crashes/*-*"))
  if not crashes:
    raise config_lib.ConfigError(f"{path} contains no crash folder: no failure was saved.")
  return max(crashes, key=lambda crash: [int(number) for number in crash.name.split("-")])


def load(path: pathlib.Path, code: Sequence[str | os.PathLike] = ()) -> Crash:
  """Loads a crash folder without executing any code from it.

  Args:
    path: Path of the crash folder.
    code: Folders with modules that the config may name; see `import_guard`.

  Returns:
    Settings of the run and the failure.

  Raises:
    ConfigError: If the folder is missing or cannot be read, or its config names
      code without permission.
  """
  try:
    text = (path / "about.txt").read_text("utf-8", errors="replace")
    config = config_lib.load((path / "config.yaml").read_text(), str(path / "config.yaml"))
    run = path.resolve().parent.parent
    import_guard.check(config, run if (run / "config.yaml").exists() else path, code)
    episodes: tuple[failure_budget.FailedEpisode, ...] = ()
    if (path / "episodes.npz").exists():
      arrays = array_file.read(path / "episodes.npz")
      actions = np.split(arrays["action"], np.cumsum(arrays["length"])[:-1])
      episodes = tuple(
        itertools.starmap(
          failure_budget.FailedEpisode,
          zip(arrays["environment"].tolist(), arrays["seed"].tolist(), actions, strict=True),
        )
      )
  except config_lib.ConfigError:
    raise
  except Exception as error:
    raise config_lib.ConfigError(
      f"{path} is not a crash folder such as RUN_DIR/crashes/...: {str(error).partition('.')[0]}."
    ) from None
  return Crash(config, failure_budget.Failure(text, episodes))
