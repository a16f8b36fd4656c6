"""What is left of a failure: a folder with data, nothing that runs.

    about.txt      what failed where: traceback or stacks
    config.yaml    of the run
    episode.npz    environment, seed and actions, if an environment failed
"""

from __future__ import annotations

import pathlib
from typing import NamedTuple

import numpy as np

from agents import config as config_lib
from agents.environments import incidents


class Crash(NamedTuple):
  """A failure as it was kept."""

  config: config_lib.Config
  incident: incidents.Incident


def save(folder: pathlib.Path, step: int, incident: incidents.Incident,
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
  path.mkdir(parents=True)
  (path / "about.txt").write_text(incident.text)
  (path / "config.yaml").write_text(config_lib.dump(config))
  if broken := incident.broken:
    np.savez(path / "episode.npz", **broken._asdict())
  return path


def load(path: pathlib.Path) -> Crash:
  """Return what was kept in a folder; loading runs no code.

  Raises:
    ConfigError: If there is no such folder, or it can't be read.
  """
  try:
    text = (path / "about.txt").read_text()
    config = config_lib.load(
        (path / "config.yaml").read_text(), str(path / "config.yaml"))
    broken = None
    if (path / "episode.npz").exists():
      with np.load(path / "episode.npz", allow_pickle=False) as file:
        broken = incidents.Broken(
            int(file["environment"]), int(file["seed"]), file["action"])
  except config_lib.ConfigError:
    raise
  except Exception as error:
    raise config_lib.ConfigError(
        f"{path} is not the folder of a crash, RUN_DIR/crashes/...: {error}"
    ) from None
  return Crash(config, incidents.Incident(text, broken))
