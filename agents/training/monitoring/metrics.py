"""Writes `metrics.jsonl` and TensorBoard events.

These files only grow. A checkpoint records their lengths, and resuming from
it cuts them back, so that nothing is told twice.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import pathlib
from typing import Any

import numpy as np
import tensorflow as tf
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.custom_scalar import summary as custom_scalar
from tensorboard.plugins.hparams import api as hparams_api
from tensorboard.plugins.image import metadata as image_metadata

from agents.training.run_folder import atomic_write
from agents.videos import video

# The page of charts that TensorBoard calls Custom Scalars: title, then tags.
_CHARTS = {
    "Score": {
        "return": ["score/return"],
        "length": ["score/length"]},
    "Is it learning?": {
        "explained variance of the value": ["losses/explained_variance"],
        "KL divergence of an update": ["policy/kl"],
        "entropy": ["policy/entropy"],
        "share of clipped ratios": ["policy/clip_fraction"]},
    "Speed": {
        "steps a second, and their limit": [
            "performance/steps_per_second", "performance/step_limit"],
        "where the time goes": [
            "performance/stepping_share", "performance/crossing_share",
            "performance/inference_share", "performance/exchange_share",
            "performance/learning_share",
            "performance/evaluation_share", "performance/compiling_share",
            "performance/rest_share"]},
}


class MetricsWriter:
  """The growing files of a run folder.

  Args:
    folder: The run folder.
    lengths: What `lengths` returned at the checkpoint to go on from; None
      for a new run.
  """

  def __init__(self, folder: pathlib.Path,
               lengths: dict[str, int] | None = None):
    self._folder = folder
    with self._explained():
      for path in self._paths():
        length = (lengths or {}).get(str(path.relative_to(folder)))
        if length is None:
          path.unlink()
        else:
          with open(path, "r+b") as file:
            file.truncate(min(length, path.stat().st_size))
      self._rows = open(folder / "metrics.jsonl", "a")
      self._writers = {
          phase: tf.summary.create_file_writer(str(folder / phase))
          for phase in ("train", "eval")}

  def write(self, row: dict[str, Any], scalars: dict[str, float]):
    """Report once.

    Args:
      row: Line for `metrics.jsonl`, with `phase` and `step`.
      scalars: Values for TensorBoard, by tag.
    """
    with self._explained():
      self._rows.write(json.dumps(row) + "\n")
      self._rows.flush()
      writer = self._writers[row["phase"]]
      with writer.as_default(step=row["step"]):
        for tag, value in scalars.items():
          tf.summary.scalar(tag, value)
      writer.flush()

  def write_histograms(self, histograms: dict[str, np.ndarray], step: int):
    """Write distributions of training, by name."""
    with self._explained(), self._writers["train"].as_default(step=step):
      for name, values in histograms.items():
        tf.summary.histogram(f"histograms/{name}", values)

  def write_text(self, tag: str, text: str, step: int):
    """Say something of training, in Markdown."""
    with self._explained(), self._writers["train"].as_default(step=step):
      tf.summary.text(tag, text)

  def write_video(self, tag: str, film: video.Gif, step: int):
    """Show a moving picture among TensorBoard's images."""
    data = tf.constant([str(film.width), str(film.height), film.data])
    with self._explained(), self._writers["train"].as_default(step=step):
      tf.summary.write(tag, data, metadata=(
          image_metadata.create_summary_metadata(tag, "", converted_to_tensor=(
              True))))

  def describe(self, texts: dict[str, str],
               settings: dict[str, bool | float | str]):
    """Say what the run is about, before it begins.

    Args:
      texts: In Markdown, by tag.
      settings: What TensorBoard compares runs by, by name.
    """
    def chart(name, tags):
      lines = layout_pb2.MultilineChartContent(
          tag=[f"^{tag}$" for tag in tags])
      return layout_pb2.Chart(title=name, multiline=lines)
    layout = layout_pb2.Layout(category=[
        layout_pb2.Category(
            title=title, chart=[chart(*item) for item in charts.items()])
        for title, charts in _CHARTS.items()])
    with self._explained(), tf.summary.create_file_writer(
        str(self._folder)).as_default(step=0):
      for tag, text in texts.items():
        tf.summary.text(tag, text)
      tf.summary.experimental.write_raw_pb(
          custom_scalar.pb(layout).SerializeToString(), step=0)
      hparams_api.hparams_config(
          [hparams_api.HParam(name) for name in settings], [
              hparams_api.Metric("score/return", "eval", "return, mean action"),
              hparams_api.Metric("score/return", "train", "return, sampled"),
              hparams_api.Metric("performance/steps_per_second", "train",
                                 "steps a second")])
      hparams_api.hparams(settings)

  def sync(self):
    """Make what was reported survive a power cut."""
    with self._explained():
      os.fsync(self._rows.fileno())

  def lengths(self) -> dict[str, int]:
    """Return the bytes of every file, by its path in the run folder."""
    with self._explained():
      for writer in self._writers.values():
        writer.flush()
    return {str(path.relative_to(self._folder)): path.stat().st_size
            for path in self._paths()}

  def close(self):
    """Close all files. What can't be written then is behind a checkpoint."""
    with contextlib.suppress(OSError):
      self._rows.close()
    for writer in self._writers.values():
      with contextlib.suppress(tf.errors.OpError):
        writer.close()

  @contextlib.contextmanager
  def _explained(self):
    """Turn what TensorFlow raises into what Python does."""
    with atomic_write.convert_errors(self._folder):
      try:
        yield
      except tf.errors.ResourceExhaustedError as error:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
      except tf.errors.OpError as error:
        raise OSError(error.message) from error

  def _paths(self) -> list[pathlib.Path]:
    rows = self._folder / "metrics.jsonl"
    return [*([rows] if rows.exists() else []),
            *self._folder.glob("events*"),
            *self._folder.glob("train/events*"),
            *self._folder.glob("eval/events*")]


def by_tag(values: dict[str, float]) -> dict[str, float]:
  """Return the metrics of an update by their tags."""
  groups = {
      "policy_loss": "losses", "value_loss": "losses", "grad_norm": "losses",
      "explained_variance": "losses", "learning_rate": "losses",
      "value_mean": "losses", "observ_mean": "normalization",
      "observ_std": "normalization", "observ_clipped": "normalization",
      "reward_scale": "normalization"}
  return {f"{groups.get(name, 'policy')}/{name}": value
          for name, value in values.items()}
