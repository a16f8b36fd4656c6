"""The folder that contains all files of a run.

config.yaml      all settings
versions.yaml    versions of the packages that started the run
code.yaml        digests of the code that started the run
checkpoints/     the newest three, and some older ones
metrics.jsonl    one line per report
events..., train/, eval/    events for TensorBoard
cut/             parts of these files that resuming has removed
videos/          videos of episodes
crashes/         failures, see `crash_folder`
lock             process that trains the run, see `run_lock`
"""

import contextlib
import datetime
import itertools
import os
import pathlib
import re
from collections.abc import Iterator, Sequence

import yaml

from agents import config as config_lib
from agents import config_parsing
from agents.training.run_folder import (
  atomic_write,
  checkpoint,
  import_guard,
  provenance,
  run_lock,
  user_modules,
)


class RunFolder:
  """An existing run folder.

  Use `find` to build anything from the config of another person's run.

  Attributes:
    path: Path of the folder.
    config: Configuration of the run.
    checkpoints: Path of the folder that contains the checkpoints.

  Args:
    path: Path of the folder.

  Raises:
    ConfigError: If the folder contains no valid config.yaml.
  """

  def __init__(self, path: str | os.PathLike) -> None:
    # Environments may change the working directory of this process later.
    self.path = pathlib.Path(path).expanduser().absolute()
    try:
      text = (self.path / "config.yaml").read_text()
    except (OSError, UnicodeDecodeError) as error:
      raise config_lib.ConfigError(f"{self.path} is not a run folder: {error}") from None
    self.config = config_lib.load(text, str(self.path / "config.yaml"))
    self.checkpoints = self.path / "checkpoints"

  def extend(self, config: config_lib.Config) -> None:
    """Changes the budget of the run in config.yaml.

    Args:
      config: Configuration with the new budget `steps`, and the earlier budgets
        `extended_from`. All other settings in config.yaml stay the same.
    """
    # `self.config` may contain changes for this process, which are not saved.
    saved = RunFolder(self.path).config
    _write(
      self.path / "config.yaml",
      config_lib.dump(
        saved.override({"steps": config.steps, "extended_from": config.extended_from})
      ),
    )

  @contextlib.contextmanager
  def locked(self, lost: run_lock.Owner | None = None) -> Iterator[None]:
    """Locks the folder against other training processes; see `run_lock.locked`.

    Args:
      lost: Process of another host that has ended, if known.

    Yields:
      None.
    """
    with run_lock.locked(self.path, lost):
      for folder in (self.path, self.checkpoints, self.path / "crashes", self.path / "cut"):
        atomic_write.remove_abandoned(folder)
      yield

  def changes(self) -> list[str]:
    """Compares packages and code with their versions at the start of the run.

    Returns:
      One text per package or file that differs; see `provenance.differences`.
    """
    changes = []
    for name, now in provenance.files(self.config.env.id).items():
      before = self.provenance(name)
      changes += provenance.differences(before, now) if before else [f"{name} can't be read"]
    return changes

  def provenance(self, name: str) -> dict[str, str]:
    """Returns the contents of a file about the start of the run, or {}.

    Args:
      name: Name of the file, see `provenance.files`.
    """
    with contextlib.suppress(OSError, ValueError):
      content = config_parsing.parse((self.path / name).read_text())
      return content if isinstance(content, dict) else {}
    return {}

  @property
  def complete(self) -> bool:
    """Whether the run is finished, or has no readable checkpoint to resume."""
    try:
      metadata = checkpoint.load_metadata(checkpoint.newest_readable(self.checkpoints))
    except checkpoint.CheckpointError:
      return True
    return checkpoint.complete(metadata["step"], metadata["done"], self.config.steps)


def find(path: str | os.PathLike, code: Sequence[str | os.PathLike] = ()) -> RunFolder:
  """Opens a run folder, or the newest run in a folder of runs, to use the run.

  Args:
    path: Path of a run folder, or of a folder of runs.
    code: Folders with modules that the config of the run may name, in addition
      to installed modules; see `import_guard`.

  Returns:
    The run folder.

  Raises:
    ConfigError: If `path` contains no run, its config is invalid or names code
      without permission, or a link in the folder leads out of it.
  """
  run = RunFolder(newest(path))
  _check_links(run.path)
  import_guard.check(run.config, run.path, code, run.provenance("code.yaml"))
  return run


def _check_links(folder: pathlib.Path) -> None:
  """Raises ConfigError if writing to a run folder would change other files."""
  for parent, folders, files in os.walk(folder):
    for path in (pathlib.Path(parent, name) for name in (*folders, *files)):
      if path.is_symlink() and not path.resolve().is_relative_to(folder.resolve()):
        raise config_lib.ConfigError(
          f"{path} is a link to {path.resolve()}, which is outside of the run folder, so that the "
          "run could change files of yours. Replace the link by a copy of its target."
        )


def newest(path: str | os.PathLike) -> pathlib.Path:
  """Returns a run folder, or the newest run in a folder of runs.

  Runs without a checkpoint, which have just started or failed to start, are
  considered only if no run has a checkpoint.

  Args:
    path: Path of a run folder, or of a folder of runs.
  """
  folder = pathlib.Path(path).expanduser()
  if not (folder / "config.yaml").exists() and (runs := _runs(folder)):
    folder = (list(filter(_has_checkpoint, runs)) or runs)[-1]
  return folder


def with_config(logdir: str | os.PathLike, config: config_lib.Config) -> list[RunFolder]:
  """Returns the runs that have this config and a checkpoint, oldest first.

  Args:
    logdir: Path of a folder of runs.
    config: Configuration of the runs.

  Returns:
    The run folders.
  """
  folders = []
  for run in filter(_has_checkpoint, _runs(pathlib.Path(logdir).expanduser())):
    # Skips runs of other versions, because their config may be invalid.
    with contextlib.suppress(config_lib.ConfigError):
      folders.append(RunFolder(run))
  return [folder for folder in folders if folder.config == config]


def create(logdir: str, name: str, config: config_lib.Config) -> RunFolder:
  """Creates the folder `LOGDIR/<time>-<name>/` for a new run.

  The names of runs sort in the order of their creation. Therefore, if another
  run has the same or a later time, a number is added to the latest time.

  Args:
    logdir: Path of the folder of runs.
    name: Name of the config.
    config: Configuration of the run.

  Returns:
    The new run folder.

  Raises:
    ConfigError: If the folder cannot be created.
  """
  parent = pathlib.Path(logdir).expanduser().absolute()
  try:
    str(parent).encode()
  except UnicodeEncodeError:
    raise config_lib.ConfigError(
      f"--logdir {logdir!r}: TensorBoard needs a path that is valid UTF-8."
    ) from None
  latest = max(map(_position, _runs(parent)), default=("", 0))
  time, last = max(latest, (_timestamp(datetime.datetime.now()), 0))
  for number in itertools.count(last + 1):
    path = parent / f"{time}{f'.{number}' * (number > 1)}-{name}"
    try:
      path.mkdir(parents=True)
      break
    except FileExistsError:
      continue
    except OSError as error:
      raise config_lib.ConfigError(
        f"--logdir {logdir}: can't make {path}: {error.strerror}"
      ) from None
  for folder in ("checkpoints", "train", "eval"):
    (path / folder).mkdir()
  for file, content in provenance.files(config.env.id).items():
    _write(path / file, yaml.safe_dump(content, sort_keys=False))
  user_modules.record(config)
  _write(path / "config.yaml", config_lib.dump(config))
  return RunFolder(path)


def _runs(logdir: pathlib.Path) -> list[pathlib.Path]:
  """Returns all runs in a folder, the oldest first."""

  # Runs of earlier versions with the same time have no numbers, and renamed
  # runs have no time.
  def order(run: pathlib.Path) -> tuple[str, int, float, str]:
    time, number = _position(run)
    changed = (run / "config.yaml").stat().st_mtime
    return time or _timestamp(datetime.datetime.fromtimestamp(changed)), number, changed, run.name

  return sorted((path.parent for path in logdir.glob("*/config.yaml")), key=order)


def _position(run: pathlib.Path) -> tuple[str, int]:
  """Returns the time and the number in the name of a run; see `create`."""
  found = re.match(r"(\d{8}T\d{6})(?:\.(\d+))?-", run.name)
  return (found[1], int(found[2] or 1)) if found else ("", 0)


def _timestamp(time: datetime.datetime) -> str:
  """Returns a time as in the name of a run."""
  return f"{time:%Y%m%dT%H%M%S}"


def _has_checkpoint(run: pathlib.Path) -> bool:
  return bool(checkpoint.paths(run / "checkpoints"))


def _write(path: pathlib.Path, text: str) -> None:
  with atomic_write.open_file(path) as file:
    file.write(text.encode())
