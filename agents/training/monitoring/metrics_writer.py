"""Writes `metrics.jsonl` and TensorBoard events, and calls the logger.

These files only grow. A checkpoint records the lengths of the files. When a run
resumes from the checkpoint, the files are truncated to these lengths, so no
report appears twice. The folder `cut` keeps the removed parts.
"""

import contextlib
import errno
import itertools
import json
import os
import pathlib
from collections.abc import Iterator, Mapping

import numpy as np
import tensorflow as tf
from google.protobuf import json_format
from tensorboard.compat.proto import summary_pb2
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.custom_scalar import summary as custom_scalar
from tensorboard.plugins.histogram import summary_v2 as histogram_summary
from tensorboard.plugins.hparams import api as hparams_api
from tensorboard.plugins.image import metadata as image_metadata
from tensorboard.plugins.scalar import summary_v2 as scalar_summary

from agents import config as config_lib
from agents.training.monitoring import guarded_logger, metrics_row, progress, training_videos
from agents.training.run_folder import atomic_write

# Layout of TensorBoard's page "Custom Scalars": categories, charts, tags.
CHARTS = pathlib.Path(__file__).with_name("charts.json")


class MetricsWriter:
  """Appends reports to the files of a run folder.

  Args:
    folder: Path of the run folder.
    lengths: Result of `lengths` in the checkpoint of a resumed run; None for a
      new run.
    logger: Logger of the run; None if the run has no logger.

  Raises:
    ConfigError: If rows of the checkpoint are missing in `metrics.jsonl`.
    WriteError: If the files cannot be written. All methods except `close` also
      raise this error.
  """

  def __init__(
    self,
    folder: pathlib.Path,
    lengths: dict[str, int] | None = None,
    logger: guarded_logger.GuardedLogger | None = None,
  ) -> None:
    self._folder = folder
    self._logger = logger
    with self._write_errors():
      self._check_rows((lengths or {}).get("metrics.jsonl", 0))
      for path in self._paths():
        self._cut(path, (lengths or {}).get(str(path.relative_to(folder))))
      self._rows = open(folder / "metrics.jsonl", "a")
      self._writers = {
        phase: tf.summary.create_file_writer(str(folder / phase)) for phase in ("train", "eval")
      }

  def write(self, row: metrics_row.MetricsRow) -> None:
    """Writes a row to `metrics.jsonl`, TensorBoard and the logger.

    Args:
      row: Row of training or of an evaluation.
    """
    with self._write_errors():
      self._rows.write(json.dumps(row.fields) + "\n")
      self._rows.flush()
      # One event for all scalars; separate events take ten times as long.
      event = summary_pb2.Summary()
      for tag, value in row.scalars.items():
        if value is not None:
          event.MergeFrom(scalar_summary.scalar_pb(tag, value))
      writer = self._writers[row.fields["phase"]]
      with writer.as_default():
        step = row.fields["step"]
        tf.summary.experimental.write_raw_pb(event.SerializeToString(), step)
      writer.flush()
    if self._logger:
      self._logger.write(row)

  @contextlib.contextmanager
  def training_events(self, step: int) -> Iterator[None]:
    """Context in which functions of `tf.summary` write to the training events.

    Args:
      step: Training steps completed.

    Yields:
      None.
    """
    with self._write_errors(), self._writers["train"].as_default(step=step):
      yield

  def write_histograms(self, step: int, values: Mapping[str, np.ndarray]) -> None:
    """Writes histograms for TensorBoard.

    Args:
      step: Training steps completed.
      values: Arrays of any shape by name.
    """
    with self.training_events(step):
      for name, array in values.items():
        # NumPy computes the buckets in a third of the time of TensorFlow.
        data = histogram_summary.histogram_pb(f"histograms/{name}", array)
        tf.summary.experimental.write_raw_pb(data.SerializeToString())

  def write_video(self, tag: str, film: training_videos.FinishedVideo) -> None:
    """Writes a short version of a video, which TensorBoard shows as an image.

    The logger receives the path of the complete video.

    Args:
      tag: Tag in TensorBoard.
      film: The video.
    """
    gif = film.gif
    data = tf.constant([str(gif.width), str(gif.height), gif.data])
    metadata = image_metadata.create_summary_metadata(tag, "", converted_to_tensor=True)
    with self.training_events(film.step):
      tf.summary.write(tag, data, metadata=metadata)
    if self._logger:
      self._logger.film(film.path, film.step)

  def describe(self, config: config_lib.Config) -> None:
    """Writes descriptions, chart layout and settings of a new run.

    Args:
      config: Configuration of the run.
    """
    settings = config_lib.flat(config)
    with self._write_errors(), tf.summary.create_file_writer(str(self._folder)).as_default(step=0):
      tf.summary.text(
        "about/steps",
        (
          f"The x-axis counts decisions of the agent in all {config.num_envs} "
          "training environments together. Each decision takes "
          f"{config.env.action_repeat} step(s) of the simulator."
        ),
      )
      tf.summary.text("about/config", f"```\n{config_lib.dump(config)}```")
      layout = json_format.Parse(CHARTS.read_text(), layout_pb2.Layout())
      tf.summary.experimental.write_raw_pb(custom_scalar.pb(layout).SerializeToString(), step=0)
      hparams_api.hparams_config(
        [hparams_api.HParam(name) for name in settings],
        [
          hparams_api.Metric("score/return", "eval", "return, mean action"),
          hparams_api.Metric("score/return", "train", "return, sampled"),
          hparams_api.Metric("performance/steps_per_second", "train", "steps per second"),
        ],
      )
      hparams_api.hparams(settings)

  def sync(self) -> None:
    """Writes `metrics.jsonl` to the disk, so that it survives a power cut."""
    with self._write_errors():
      os.fsync(self._rows.fileno())

  def lengths(self) -> dict[str, int]:
    """Flushes the files and returns their sizes.

    Returns:
      Size of each file in bytes, by its path in the run folder.
    """
    with self._write_errors():
      for writer in self._writers.values():
        writer.flush()
    return {str(path.relative_to(self._folder)): path.stat().st_size for path in self._paths()}

  def close(self) -> None:
    """Closes all files, and the logger.

    Errors are ignored, because a resumed run needs only the part of the files
    that was written before its checkpoint.
    """
    for file in (self._rows, *self._writers.values()):
      with contextlib.suppress(OSError, tf.errors.OpError):
        file.close()
    if self._logger:
      self._logger.close()

  def _check_rows(self, expected: int) -> None:
    """Compares the size of metrics.jsonl with its size in the checkpoint."""
    path = self._folder / "metrics.jsonl"
    size = path.stat().st_size if path.exists() else 0
    if size < expected and path.exists():
      raise config_lib.ConfigError(
        f"{path} has {size:,} bytes, but had {expected:,} bytes when the checkpoint was saved. "
        "Some reports are missing. Restore the file from a copy. To continue without its reports, "
        "move it to another folder."
      )
    if size < expected:
      progress.warn(f"{path} is missing. A new file begins.")

  def _cut(self, path: pathlib.Path, length: int | None) -> None:
    """Truncates a file, or deletes it; keeps the removed part in `cut`."""
    with open(path, "rb") as file:
      file.seek(length or 0)
      removed = file.read()
    if removed:
      name = "-".join(path.relative_to(self._folder).parts)
      # TensorBoard would read files with "tfevents" in their names.
      name = f"{name.replace('tfevents', 'events')}-from-{length or 0}"
      (self._folder / "cut").mkdir(exist_ok=True)
      paths = (self._folder / "cut" / f"{name}-{number}" for number in itertools.count(1))
      with atomic_write.open_file(next(path for path in paths if not path.exists())) as file:
        file.write(removed)
    if length is None:
      path.unlink()
    elif removed:
      os.truncate(path, length)

  @contextlib.contextmanager
  def _write_errors(self) -> Iterator[None]:
    """Context that converts errors of TensorFlow and Python to WriteErrors."""
    with atomic_write.convert_errors(self._folder):
      try:
        yield
      except tf.errors.ResourceExhaustedError as error:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
      except tf.errors.OpError as error:
        raise OSError(error.message) from error

  def _paths(self) -> list[pathlib.Path]:
    """Returns the paths of the existing files."""
    return [
      path
      for pattern in ("metrics.jsonl", "events*", "train/events*", "eval/events*")
      for path in self._folder.glob(pattern)
    ]
