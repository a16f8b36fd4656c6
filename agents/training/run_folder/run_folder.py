"""The folder that holds all there is of a run.

    config.yaml      complete, plain data
    versions.yaml    of the packages that made it
    code.yaml        digests of the code that did
    checkpoints/     the last three, and some from before
    metrics.jsonl    one line a report
    events..., train/, eval/    for TensorBoard
    videos/          films
    crashes/         what failed, see `crashes`
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import os
import pathlib
import shutil

import yaml

from agents import config as config_lib
from agents import config_parsing
from agents.training.run_folder import atomic_write
from agents.training.run_folder import checkpoint
from agents.training.run_folder import checkpoint_metadata
from agents.training.run_folder import import_guard
from agents.training.run_folder import provenance


class RunFolder:
  """An existing run folder.

  Args:
    path: The folder.
  Raises:
    ConfigError: If there is no run in it or its config can't be used.
  """

  def __init__(self, path: str | os.PathLike):
    self.path = pathlib.Path(path).expanduser()
    try:
      text = (self.path / "config.yaml").read_text()
    except (OSError, UnicodeDecodeError) as error:
      raise config_lib.ConfigError(
          f"{self.path} is not a run folder: {error}") from None
    self.config = config_lib.load(text, str(self.path / "config.yaml"))
    import_guard.add(self.path)
    self.checkpoints = self.path / "checkpoints"

  def extend(self, config: config_lib.Config):
    """Write down the budget of a config, and those that there were before."""
    path = self.path / "config.yaml"
    own = config_lib.load(path.read_text(), str(path))
    _write(path, config_lib.dump(own.override({
        "steps": config.steps, "extended_from": config.extended_from})))

  def remove(self):
    """Delete the folder, of a run that could not begin."""
    shutil.rmtree(self.path)

  @contextlib.contextmanager
  def locked(self):
    """Keep the folder from all other trainers.

    Raises:
      ConfigError: If another one has it.
    """
    descriptor = os.open(self.path, os.O_RDONLY)
    try:
      try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
      except BlockingIOError:
        raise config_lib.ConfigError(
            f"{self.path} is being trained by another process.") from None
      for path in self.checkpoints.glob("*.tmp"):  # Of one that was killed.
        path.unlink()
      yield
    finally:
      os.close(descriptor)

  def changes(self) -> list[str]:
    """Say which packages and code are not those that the run began with."""
    env = self.config.env.id
    return [*self._changes("versions.yaml", provenance.versions(env)),
            *self._changes("code.yaml", provenance.code(env))]

  def _changes(self, name: str, now: dict[str, str]) -> list[str]:
    try:
      began = config_parsing.parse((self.path / name).read_text())
    except (OSError, ValueError):
      began = None
    if not isinstance(began, dict):
      return [f"{name} can't be read"]
    return provenance.differences(began, now)


def find(path: str | os.PathLike) -> RunFolder:
  """Open a run folder, or the newest one in a folder of runs.

  Runs without a checkpoint count only if none has one: they have just begun, or
  have failed to.

  Raises:
    ConfigError: If there is no run, or its config can't be used.
  """
  folder = pathlib.Path(path).expanduser()
  if not (folder / "config.yaml").exists():
    if runs := _runs(folder):
      folder = ([run for run in runs if _saved(run)] or runs)[-1]
  return RunFolder(folder)


def resumable(logdir: str | os.PathLike, config: config_lib.Config
              ) -> RunFolder | None:
  """Return the run with this very config that can be gone on with."""
  return next(iter(_alike(logdir, config)), None)


def unfinished(logdir: str | os.PathLike, config: config_lib.Config
               ) -> RunFolder | None:
  """Return the newest run with this very config that is not complete, if there
  is one."""
  return next((folder for folder in reversed(_alike(logdir, config))
               if not _complete(folder)), None)


def _complete(folder: RunFolder) -> bool:
  try:
    _, known = checkpoint.load_newest(folder.checkpoints)
  except checkpoint.CheckpointError:
    return True  # Nobody can go on with it.
  return checkpoint_metadata.complete(known["step"], known["done"], folder.config.steps)


def _alike(logdir: str | os.PathLike, config: config_lib.Config
           ) -> list[RunFolder]:
  """Return the runs with this very config that have checkpoints, the oldest
  first."""
  found = []
  for run in _runs(pathlib.Path(logdir).expanduser()):
    if _saved(run):
      with contextlib.suppress(config_lib.ConfigError):  # Of another version.
        folder = RunFolder(run)
        if folder.config == config:
          found.append(folder)
  return found


def _runs(logdir: pathlib.Path) -> list[pathlib.Path]:
  """Return all runs in a folder, the oldest first."""
  def begun(run):  # Names begin with the second.
    return run.name[:15], (run / "config.yaml").stat().st_mtime_ns, run.name
  return sorted(
      (path.parent for path in logdir.glob("*/config.yaml")), key=begun)


def _saved(run: pathlib.Path) -> bool:
  return bool(checkpoint.paths(run / "checkpoints"))


def create(logdir: str, name: str, config: config_lib.Config) -> RunFolder:
  """Make `LOGDIR/<time>-<name>/`, never one that exists already."""
  logdir_path = pathlib.Path(logdir).expanduser()
  second = f"{datetime.datetime.now():%Y%m%dT%H%M%S}"
  number = 1
  while True:
    time = second if number == 1 else f"{second}.{number}"
    path = logdir_path / f"{time}-{name}"
    try:
      path.mkdir(parents=True)
      break
    except FileExistsError:
      number += 1
    except OSError as error:
      raise config_lib.ConfigError(
          f"--logdir {logdir}: can't make {path}: {error.strerror}") from None
  for folder in ("checkpoints", "train", "eval"):
    (path / folder).mkdir()
  for file, content in (("versions.yaml", provenance.versions(config.env.id)),
                        ("code.yaml", provenance.code(config.env.id))):
    _write(path / file, yaml.safe_dump(content, sort_keys=False))
  _write(path / "config.yaml", config_lib.dump(config))
  return RunFolder(path)


def _write(path: pathlib.Path, text: str):
  with atomic_write.open_file(path) as file:
    file.write(text.encode())
