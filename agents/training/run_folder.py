"""The folder that holds all there is of a run.

    config.yaml      complete, plain data
    versions.yaml    of the packages that made it
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
import importlib.metadata
import os
import pathlib
import platform

import yaml

from agents import config as config_lib
from agents.training import checkpoint

_PACKAGES = ("tensorflow", "keras", "tensorflow-probability", "numpy",
             "gymnasium", "mujoco")


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
    self.checkpoints = self.path / "checkpoints"

  def extend(self, steps: int):
    """Write down a larger budget."""
    path = self.path / "config.yaml"
    config = config_lib.load(path.read_text(), str(path))
    _write(path, config_lib.dump(config.override({"steps": steps})))

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
      yield
    finally:
      os.close(descriptor)

  def changed_versions(self) -> list[str]:
    """Return what is installed in another version than the run began with."""
    try:
      began = yaml.safe_load((self.path / "versions.yaml").read_text())
    except (OSError, ValueError, yaml.YAMLError):
      began = None
    if not isinstance(began, dict):
      return ["versions.yaml can't be read"]
    return [f"{name} {began.get(name)} -> {now}" for name, now in
            _versions().items() if began.get(name) != now]


def find(path: str | os.PathLike) -> RunFolder:
  """Open a run folder, or the newest one in a folder of runs.

  Raises:
    ConfigError: If there is no run, or its config can't be used.
  """
  folder = pathlib.Path(path).expanduser()
  if not (folder / "config.yaml").exists():
    def begun(config):  # Names begin with the second.
      return config.parent.name[:15], config.stat().st_mtime_ns
    if runs := sorted(folder.glob("*/config.yaml"), key=begun):
      folder = runs[-1].parent
  return RunFolder(folder)


def create(logdir: str, name: str, config: config_lib.Config) -> RunFolder:
  """Make `LOGDIR/<time>-<name>/`, never one that exists already."""
  logdir_path = pathlib.Path(logdir).expanduser()
  stem = f"{datetime.datetime.now():%Y%m%dT%H%M%S}-{name}"
  number = 1
  while True:
    path = logdir_path / (stem if number == 1 else f"{stem}-{number}")
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
  _write(path / "versions.yaml", yaml.safe_dump(_versions(), sort_keys=False))
  _write(path / "config.yaml", config_lib.dump(config))
  return RunFolder(path)


def _versions() -> dict[str, str]:
  """What the bits of a run depend on."""
  versions = {"python": platform.python_version(),
              "machine": platform.machine()}
  for package in _PACKAGES:
    try:
      versions[package] = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
      pass
  # Results differ in the last bits with oneDNN's kernels and without.
  versions["onednn"] = os.environ.get("TF_ENABLE_ONEDNN_OPTS", "default")
  return versions


def _write(path: pathlib.Path, text: str):
  temporary = path.with_suffix(".tmp")
  with open(temporary, "w") as file:
    file.write(text)
    file.flush()
    os.fsync(file.fileno())
  os.replace(temporary, path)
  checkpoint.sync_folder(path.parent)
