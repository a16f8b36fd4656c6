"""Checkpoints: one file each, complete or not there at all."""

from __future__ import annotations

import json
import os
import pathlib
import re
from typing import Any

import numpy as np

from agents import errors

_KEPT = 3


class CheckpointError(errors.RunError):
  """There is no checkpoint, or it can't be read."""


def save(folder: pathlib.Path, step: int, arrays: dict[str, np.ndarray],
         facts: dict[str, Any]):
  """Write a checkpoint and delete all but the last three.

  Args:
    folder: Where checkpoints lie.
    step: Training steps done; names the file.
    arrays: Arrays by name.
    facts: Whatever else there is to know, as JSON.
  """
  path = folder / f"checkpoint-{step:012d}.npz"
  temporary = path.with_suffix(".tmp")
  with open(temporary, "wb") as file:
    contents: dict[str, Any] = {**arrays, "facts": json.dumps(facts)}
    np.savez(file, **contents)
    file.flush()
    os.fsync(file.fileno())
  os.replace(temporary, path)
  sync_folder(folder)
  for old in paths(folder)[:-_KEPT]:
    old.unlink()


def load(path: pathlib.Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
  """Return arrays and facts of a checkpoint; loading runs no code."""
  try:
    with np.load(path, allow_pickle=False) as file:
      arrays = {name: file[name] for name in file.files}
    return arrays, json.loads(str(arrays.pop("facts")))
  except Exception as error:
    raise CheckpointError(
        f"{path} is damaged ({error}). Delete it to go on from the one "
        "before.") from error


def paths(folder: pathlib.Path) -> list[pathlib.Path]:
  """Return all complete checkpoints, the newest last."""
  return sorted(path for path in folder.glob("checkpoint-*.npz")
                if re.fullmatch(r"checkpoint-\d+\.npz", path.name))


def newest(folder: pathlib.Path) -> pathlib.Path:
  """Return the newest checkpoint's path."""
  if not (found := paths(folder)):
    raise CheckpointError(f"There is no checkpoint in {folder}.")
  return found[-1]


def sync_folder(folder: pathlib.Path):
  """Make a rename within the folder survive a power cut."""
  descriptor = os.open(folder, os.O_RDONLY)
  try:
    os.fsync(descriptor)
  finally:
    os.close(descriptor)
