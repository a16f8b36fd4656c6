"""Writes `metrics.jsonl` and TensorBoard events.

These files only grow. A checkpoint records their lengths, and resuming from
it cuts them back, so that nothing is told twice.
"""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any

import numpy as np
import tensorflow as tf


class Metrics:
  """The growing files of a run folder.

  Args:
    folder: The run folder.
    lengths: What `lengths` returned at the checkpoint to go on from; None
      for a new run.
  """

  def __init__(self, folder: pathlib.Path,
               lengths: dict[str, int] | None = None):
    self._folder = folder
    for path in self._paths():
      length = (lengths or {}).get(str(path.relative_to(folder)))
      if length is None:
        path.unlink()
      else:
        with open(path, "r+b") as file:
          file.truncate(min(length, path.stat().st_size))
    self._rows = open(folder / "metrics.jsonl", "a")
    self._writers = {phase: tf.summary.create_file_writer(str(folder / phase))
                     for phase in ("train", "eval")}

  def write(self, row: dict[str, Any], scalars: dict[str, float]):
    """Report once.

    Args:
      row: Line for `metrics.jsonl`, with `phase` and `step`.
      scalars: Values for TensorBoard, by tag.
    """
    self._rows.write(json.dumps(row) + "\n")
    self._rows.flush()
    writer = self._writers[row["phase"]]
    with writer.as_default(step=row["step"]):
      for tag, value in scalars.items():
        tf.summary.scalar(tag, value)
    writer.flush()

  def describe(self, tag: str, text: str):
    """Write a text to TensorBoard, at the beginning of training."""
    with self._writers["train"].as_default(step=0):
      tf.summary.text(tag, text)

  def lengths(self) -> dict[str, int]:
    """Return the bytes of every file, by its path in the run folder."""
    for writer in self._writers.values():
      writer.flush()
    os.fsync(self._rows.fileno())
    return {str(path.relative_to(self._folder)): path.stat().st_size
            for path in self._paths()}

  def close(self):
    self._rows.close()
    for writer in self._writers.values():
      writer.close()

  def _paths(self) -> list[pathlib.Path]:
    rows = self._folder / "metrics.jsonl"
    return [*([rows] if rows.exists() else []),
            *self._folder.glob("train/events*"),
            *self._folder.glob("eval/events*")]


def summarize(scores: list[float], lengths: list[int]) -> dict[str, Any]:
  """Return the fields that describe finished episodes, null without any."""
  def apply(function, values):
    return float(function(values)) if values else None
  return {
      "episodes": len(scores),
      "return_mean": apply(np.mean, scores),
      "return_std": apply(np.std, scores),
      "return_min": apply(np.min, scores),
      "return_max": apply(np.max, scores),
      "length_mean": apply(np.mean, lengths)}
