"""What is left of a failure: a folder with data, nothing that runs.

    about.txt      what failed where: traceback or stacks
    config.yaml    of the run
    episodes.npz   environment, seed and actions of each episode that was to go
                   on; of a worker that died, all that it may have died of
"""

from __future__ import annotations

import itertools
import pathlib
from typing import NamedTuple

import numpy as np

from agents import config as config_lib
from agents.environments.data import failure_budget
from agents.training.run_folder import atomic_write
from agents.training.run_folder import import_guard


class Crash(NamedTuple):
  """A failure as it was kept."""

  config: config_lib.Config
  failure: failure_budget.Failure


def save(folder: pathlib.Path, step: int, incident: failure_budget.Failure,
         config: config_lib.Config) -> pathlib.Path:
  """Keep a failure.

  Args:
    folder: Where such are kept; made if there is none.
    step: Training steps done before the epoch in which it happened.
    incident: What failed.
    config: Of the run.
  Returns:
    A new folder within it.
  """
  number = 1
  while (path := folder / f"{step:012d}-{number}").exists():
    number += 1
  with atomic_write.convert_errors(path):
    path.mkdir(parents=True)
    (path / "about.txt").write_text(
        incident.text, "utf-8", errors="backslashreplace")
    (path / "config.yaml").write_text(config_lib.dump(config))
    if broken := incident.broken:
      np.savez(
          path / "episodes.npz",
          environment=[one.environment for one in broken],
          seed=[one.seed for one in broken],
          length=[len(one.action) for one in broken],
          action=np.concatenate([one.action for one in broken]))
  return path


def load(path: pathlib.Path) -> Crash:
  """Return what was kept in a folder; loading runs no code.

  Raises:
    ConfigError: If there is no such folder, or it can't be read.
  """
  try:
    text = (path / "about.txt").read_text("utf-8", errors="replace")
    config = config_lib.load(
        (path / "config.yaml").read_text(), str(path / "config.yaml"))
    for folder in (path, *path.resolve().parents[:2]):
      if (folder / "config.yaml").exists():  # The crash's, and the run's.
        import_guard.add(folder)
    broken: tuple[failure_budget.FailedEpisode, ...] = ()
    if (path / "episodes.npz").exists():
      with np.load(path / "episodes.npz", allow_pickle=False) as file:
        actions = np.split(file["action"], np.cumsum(file["length"])[:-1])
        broken = tuple(itertools.starmap(failure_budget.FailedEpisode, zip(
            file["environment"].tolist(), file["seed"].tolist(), actions,
            strict=True)))
  except config_lib.ConfigError:
    raise
  except Exception as error:
    raise config_lib.ConfigError(
        f"{path} is not the folder of a crash, RUN_DIR/crashes/...: "
        f"{str(error).partition('.')[0]}.") from None
  return Crash(config, failure_budget.Failure(text, broken))
