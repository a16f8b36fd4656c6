"""Checkpoints: one `.npz` file each, written atomically.

`checkpoint-STEP.npz` contains the state of a run. `best-STEP.npz` contains only
the variables of the policy with the best evaluation.
"""

import contextlib
import dataclasses
import errno
import json
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from agents import config as config_lib
from agents import errors
from agents.training.run_folder import array_file, atomic_write

# Prefix of the optimizer's variables, which entries of the zoo lack.
OPTIMIZER_PREFIX = "variable/adam/"
_NUM_NEWEST = 3  # The newest checkpoints are never deleted.
_NUM_MILESTONES = 6  # Older checkpoints to keep, spread over the run.
_METADATA = "facts"  # Name of the JSON text among the arrays of the file.


class CheckpointError(errors.RunError):
  """A checkpoint is missing or damaged."""


class ReadError(errors.RunError):
  """A checkpoint cannot be read, although it may be intact."""


@dataclasses.dataclass
class Metadata:
  """JSON-serializable state of the training loop.

  Fields with defaults were added later, so older checkpoints still load.
  """

  step: int  # Training steps completed, summed over all environments.
  # Step of the last report, evaluation, checkpoint and video. The keys are the
  # config fields of the intervals, such as "eval_every".
  done: dict[str, int]
  scores: list[float]  # Scores since the last report, see `Statistics`.
  lengths: list[int]
  reward_parts: list[dict[str, float]]
  health: dict[str, dict[str, int]]  # See `TrainingWarnings.state`.
  seconds: float  # Wall-clock time since the run started, across resumes.
  files: dict[str, int]  # Bytes of the append-only files, by relative path.
  restarts: int = 0  # Environments and workers replaced so far.
  config: dict[str, Any] | None = None  # All settings, by dotted key.
  best_score: float | None = None  # Best mean return of an evaluation.


def complete(step: int, done: dict[str, int], budget: int) -> bool:
  """Returns whether a run used up its budget and evaluated the final policy.

  Args:
    step: Training steps completed.
    done: Steps of the last actions, see `Metadata.done`.
    budget: Training steps of the whole run.

  Returns:
    True if the last evaluation took place after the last step.
  """
  return step >= budget and done["eval_every"] == step


def save(
  folder: pathlib.Path, step: int, arrays: dict[str, np.ndarray], metadata: dict[str, Any]
) -> None:
  """Writes a checkpoint, and deletes superfluous older checkpoints.

  Keeps the newest three checkpoints, and six older ones spread over the run.
  Does not count checkpoints of later steps, which are damaged if a run has
  resumed from an earlier one.

  Args:
    folder: Folder of the checkpoints.
    step: Training steps completed; names the file.
    arrays: Arrays by name.
    metadata: JSON-serializable data, see `Metadata`.

  Raises:
    WriteError: If the file cannot be written, for example on a full disk.
  """
  _write(folder / f"checkpoint-{step:012d}.npz", arrays, metadata)
  older = [path for path in paths(folder) if step_of(path) <= step][:-_NUM_NEWEST]
  while len(older) > _NUM_MILESTONES:
    # Deletes the checkpoint with the smallest distance between its two
    # neighbors. The first checkpoint is always kept.
    steps = [*map(step_of, older), step]
    index = np.argmin(np.subtract(steps[2:], steps[:-2]))
    older.pop(index + 1).unlink(missing_ok=True)


def save_best(folder: pathlib.Path, step: int, arrays: dict[str, np.ndarray]) -> None:
  """Writes the policy with the best evaluation, and deletes the previous one.

  Args:
    folder: Folder of the checkpoints.
    step: Training steps completed; part of the file name.
    arrays: Variables of the algorithm by name.

  Raises:
    WriteError: If the file cannot be written.
  """
  path = folder / f"best-{step:012d}.npz"
  _write(path, arrays, {})
  for other in _best(folder):
    if other != path:
      other.unlink(missing_ok=True)


def load(
  path: pathlib.Path, check: array_file.CheckSizes = lambda sizes: None
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
  """Loads a checkpoint without executing any code from the file.

  Args:
    path: Checkpoint file.
    check: Raises ConfigError before arrays are read if they are too large.

  Returns:
    Arrays by name, and the metadata.

  Raises:
    CheckpointError: If the file is missing or damaged. A CRC-32 checksum of
      each array reveals damage.
    ReadError: If the file cannot be read for another reason.
  """
  with _converted_errors(path):
    arrays = array_file.read(path, check)
    return arrays, json.loads(str(arrays.pop(_METADATA)))


def load_variables(path: pathlib.Path, check: array_file.CheckSizes) -> dict[str, np.ndarray]:
  """Loads only the variables of the algorithm, by the names of `load`.

  Args:
    path: Checkpoint file.
    check: See `load`.

  Raises:
    RunError: See `load`.
  """
  with _converted_errors(path):
    return array_file.read(path, check, lambda name: name.startswith("variable/"))


def load_metadata(path: pathlib.Path) -> dict[str, Any]:
  """Loads only the metadata.

  Args:
    path: Checkpoint file.

  Raises:
    RunError: See `load`.
  """
  with _converted_errors(path):
    arrays = array_file.read(path, select=lambda name: name == _METADATA)
    return json.loads(str(arrays[_METADATA]))


@contextlib.contextmanager
def _converted_errors(path: pathlib.Path) -> Iterator[None]:
  """Context that raises the errors of `load`."""
  try:
    yield
  except config_lib.ConfigError as error:
    raise config_lib.ConfigError(
      f"{path} was not loaded: {error} Restore the checkpoint or the config.yaml of the run."
    ) from None
  except FileNotFoundError:
    raise CheckpointError(
      f"{path} is gone. A run deletes some of its checkpoints while it trains; try again."
    ) from None
  except Exception as error:
    # A damaged position in the file causes EINVAL.
    is_format = not isinstance(error, OSError) or error.errno in (None, errno.EINVAL)
    if isinstance(error, MemoryError) or not is_format:
      cause = getattr(error, "strerror", None) or f"not enough memory. {error}"
      raise ReadError(
        f"{path} can't be read: {cause}. The file may be intact: correct the cause, and try again."
      ) from error
    # Omits later sentences: NumPy's second sentence suggests unsafe loading.
    reason = str(error).partition(".")[0]
    raise CheckpointError(f"{path} is damaged ({reason}).") from error


def newest_readable(folder: pathlib.Path) -> pathlib.Path:
  """Returns the newest readable checkpoint; prints a note per damaged one.

  Args:
    folder: Folder of the checkpoints.

  Returns:
    Path of the checkpoint.

  Raises:
    CheckpointError: If no checkpoint is undamaged.
    ReadError: If a checkpoint cannot be read for another reason.
  """
  newest(folder)  # Raises if the folder contains no checkpoint.
  for path in reversed(paths(folder)):
    try:
      with _converted_errors(path):
        array_file.verify(path)
      load_metadata(path)
      return path
    except CheckpointError as error:
      print(f"Note: {error} Trying the previous one.", file=sys.stderr)
  raise CheckpointError(f"No checkpoint in {folder} can be read.")


def paths(folder: pathlib.Path) -> list[pathlib.Path]:
  """Lists the complete checkpoints of a folder.

  Args:
    folder: Folder of the checkpoints.

  Returns:
    Paths in order of their steps.
  """
  return sorted(folder.glob(f"checkpoint-{'[0-9]' * 12}.npz"))


def find(folder: pathlib.Path, name: str | None) -> pathlib.Path:
  """Finds a checkpoint by its file name or step.

  Args:
    folder: Folder of the checkpoints.
    name: File name with or without suffix; a step such as "1e6" or
      "1,000,000"; "best" for the policy with the best evaluation; None for the
      newest readable checkpoint.

  Returns:
    Path of the checkpoint.

  Raises:
    CheckpointError: If `name` is None and no checkpoint can be read.
    ConfigError: If no checkpoint has this name or step.
  """
  if name is None:
    return newest_readable(folder)
  if name == "best" and (best := _best(folder)):
    return best[-1]
  step = None
  with contextlib.suppress(ValueError):
    step = float(name.replace(",", ""))
  available = paths(folder)
  for path in available:
    if name in (path.name, path.stem) or step == step_of(path):
      return path
  names = [f"{step_of(path):,}" for path in available]
  if _best(folder):
    names.append("best")
  raise config_lib.ConfigError(
    f"No checkpoint in {folder} has the name or step {name}. "
    f"Available steps: {', '.join(names) or '(none)'}."
  )


def _write(path: pathlib.Path, arrays: dict[str, np.ndarray], metadata: dict[str, Any]) -> None:
  with atomic_write.open_file(path) as file:
    contents: dict[str, Any] = {**arrays, _METADATA: json.dumps(metadata)}
    np.savez(file, **contents)


def _best(folder: pathlib.Path) -> list[pathlib.Path]:
  """Returns the files with a best policy; two after an interrupted write."""
  return sorted(folder.glob(f"best-{'[0-9]' * 12}.npz"))


def step_of(path: pathlib.Path) -> int:
  """Returns the step of a checkpoint.

  Args:
    path: Path of the checkpoint; its name contains the step.

  Returns:
    Training steps completed.
  """
  return int(path.stem.rpartition("-")[2])


def newest(folder: pathlib.Path) -> pathlib.Path:
  """Returns the newest checkpoint of a folder, without reading the file.

  Args:
    folder: Folder of the checkpoints.

  Returns:
    Path of the checkpoint.

  Raises:
    CheckpointError: If the folder contains no checkpoint.
  """
  if not (available := paths(folder)):
    raise CheckpointError(f"There is no checkpoint in {folder}.")
  return available[-1]
