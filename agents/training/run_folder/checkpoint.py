"""Checkpoints: one file each, complete or not there at all."""

from __future__ import annotations

import json
import pathlib
import re
import sys
from typing import Any

import numpy as np

from agents import config as config_lib
from agents import errors
from agents.training.run_folder import atomic_write

_NEWEST = 3  # Of which all are kept.
_MILESTONES = 6  # Kept of those before, spread over the run.


class CheckpointError(errors.RunError):
  """There is no checkpoint, or it can't be read."""


def save(folder: pathlib.Path, step: int, arrays: dict[str, np.ndarray],
         facts: dict[str, Any]):
  """Write a checkpoint, and delete some of those before the last three.

  Those that are left show how training went.

  Args:
    folder: Where checkpoints lie.
    step: Training steps done; names the file.
    arrays: Arrays by name.
    facts: Whatever else there is to know, as JSON.
  Raises:
    WriteError: If the disk is full, for example.
  """
  with atomic_write.open_file(folder / f"checkpoint-{step:012d}.npz") as file:
    contents: dict[str, Any] = {**arrays, "facts": json.dumps(facts)}
    np.savez(file, **contents)
  while len(older := paths(folder)[:-_NEWEST]) > _MILESTONES:
    _least_missed(older, step).unlink(missing_ok=True)


def load(path: pathlib.Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
  """Return arrays and facts of a checkpoint; loading runs no code.

  Raises:
    CheckpointError: If it is gone, or not what was written: the file holds a
      checksum (CRC-32) of each of its parts.
  """
  try:
    with np.load(path, allow_pickle=False) as file:
      arrays = {name: file[name] for name in file.files}
    return arrays, json.loads(str(arrays.pop("facts")))
  except FileNotFoundError:
    raise CheckpointError(
        f"{path} is gone; a run that goes on deletes some of its checkpoints. "
        "Try again.") from None
  except Exception as error:
    reason = str(error).partition(".")[0]  # Then NumPy advises to trust it.
    raise CheckpointError(f"{path} is damaged ({reason}).") from error


def load_newest(folder: pathlib.Path
                ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
  """Load the newest checkpoint that can be; see `newest_readable`."""
  return load(newest_readable(folder))


def newest_readable(folder: pathlib.Path) -> pathlib.Path:
  """Return the newest checkpoint that can be read, and tell of others.

  Raises:
    CheckpointError: If there is none.
  """
  newest(folder)  # Says so if there is none.
  for path in reversed(paths(folder)):
    try:
      load(path)
      return path
    except CheckpointError as error:
      print(f"Note: {error} Trying the one before.", file=sys.stderr)
  raise CheckpointError(f"No checkpoint in {folder} can be read.")


def paths(folder: pathlib.Path) -> list[pathlib.Path]:
  """Return all complete checkpoints, the newest last."""
  return sorted(path for path in folder.glob("checkpoint-*.npz")
                if re.fullmatch(r"checkpoint-\d+\.npz", path.name))


def find(folder: pathlib.Path, name: str | None) -> pathlib.Path:
  """Return the checkpoint of a name or step, the newest one by default.

  Raises:
    ConfigError: If there is no such checkpoint.
  """
  if name is None:
    return newest(folder)
  there = paths(folder)
  for path in there:
    if name in (path.name, path.stem) or _as_step(name) == step_of(path):
      return path
  steps = ", ".join(f"{step_of(path):,}" for path in there)
  raise config_lib.ConfigError(
      f"--checkpoint {name}: there is none of this name or step in {folder}. "
      f"There are those of steps {steps or '(none)'}.")


def step_of(path: pathlib.Path) -> int:
  """Return the training step in a checkpoint's name."""
  return int(path.stem.rpartition("-")[2])


def newest(folder: pathlib.Path) -> pathlib.Path:
  """Return the newest checkpoint's path."""
  if not (found := paths(folder)):
    raise CheckpointError(f"There is no checkpoint in {folder}.")
  return found[-1]


def _least_missed(older: list[pathlib.Path], step: int) -> pathlib.Path:
  """Return the one without which the gaps between the others stay smallest.

  The first always stays.
  """
  steps = [*map(step_of, older), step]
  gaps = {path: steps[index + 2] - steps[index]
          for index, path in enumerate(older[1:])}
  return min(gaps, key=lambda path: gaps[path])


def _as_step(name: str) -> float | None:
  try:
    return float(name.replace(",", ""))
  except ValueError:
    return None
