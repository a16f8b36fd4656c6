import json
import os

import numpy as np
import pytest
import tensorflow as tf
from tensorboard.backend.event_processing import event_accumulator, io_wrapper
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.hparams import plugin_data_pb2

from agents import config as config_lib
from agents.training.monitoring import metrics_row, metrics_writer, training_videos
from agents.videos import video


def steps(folder):
  """Returns the steps in `metrics.jsonl` and in TensorBoard's train events."""
  rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
  events = event_accumulator.EventAccumulator(str(folder / "train"))
  events.Reload()
  tags = events.Tags()["tensors"]
  return [row["step"] for row in rows], [
    event.step for event in events.Tensors("a")
  ] if tags else []


def write(writer, step):
  writer.write(metrics_row.MetricsRow({"phase": "train", "step": step}, {"a": float(step)}))


def test_rows_are_readable_immediately(tmp_path):
  writer = metrics_writer.MetricsWriter(tmp_path)
  for step in (1, 2, 3):
    write(writer, step)
    assert steps(tmp_path)[0] == list(range(1, step + 1))
  writer.close()


def test_resuming_truncates_later_rows_and_events(tmp_path):
  writer = metrics_writer.MetricsWriter(tmp_path)
  write(writer, 1)
  lengths = writer.lengths()
  write(writer, 2)
  with open(tmp_path / "metrics.jsonl", "a") as file:
    file.write('{"phase": "tr')  # Killed while writing.
  resumed = metrics_writer.MetricsWriter(tmp_path, lengths)
  assert steps(tmp_path) == ([1], [1])
  write(resumed, 3)
  resumed.close()
  again = metrics_writer.MetricsWriter(tmp_path, lengths)
  assert steps(tmp_path) == ([1], [1])
  again.close()
  writer.close()


def test_removed_rows_and_events_are_kept_in_another_folder(tmp_path):
  writer = metrics_writer.MetricsWriter(tmp_path)
  write(writer, 1)
  lengths = writer.lengths()
  for step in (2, 3):
    write(writer, step)
    writer.close()
    names = ["metrics.jsonl", *(str(path.relative_to(tmp_path)) for path in tmp_path.glob("*/ev*"))]
    removed = {
      name: (tmp_path / name).read_bytes()[lengths.get(name, 0) :]
      for name in names
      if not name.startswith("cut")
    }
    writer = metrics_writer.MetricsWriter(tmp_path, lengths)
    for name, content in removed.items():
      if content:
        kept = f"{name.replace('/', '-').replace('tf', '')}-from-{lengths.get(name, 0)}-*"
        assert content in [path.read_bytes() for path in (tmp_path / "cut").glob(kept)], name
  writer.close()
  assert len(list((tmp_path / "cut").glob("metrics.jsonl-from-*"))) == 2
  # TensorBoard does not show the removed events.
  assert not any("cut" in path for path in io_wrapper.GetLogdirSubdirectories(str(tmp_path)))


def test_missing_rows_are_an_error_and_no_file_changes(tmp_path):
  writer = metrics_writer.MetricsWriter(tmp_path)
  write(writer, 1)
  lengths = writer.lengths()
  write(writer, 2)
  writer.close()
  metrics = tmp_path / "metrics.jsonl"
  os.truncate(metrics, lengths["metrics.jsonl"] - 9)
  before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
  with pytest.raises(config_lib.ConfigError) as caught:
    metrics_writer.MetricsWriter(tmp_path, lengths)
  size = lengths["metrics.jsonl"]
  assert f"has {size - 9} bytes, but had {size} bytes when the checkpoint" in str(caught.value)
  assert "Restore the file from a copy." in str(caught.value)
  assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_new_file_begins_after_a_warning_if_all_rows_are_missing(tmp_path, capsys):
  writer = metrics_writer.MetricsWriter(tmp_path)
  write(writer, 1)
  lengths = writer.lengths()
  writer.close()
  (tmp_path / "metrics.jsonl").unlink()
  resumed = metrics_writer.MetricsWriter(tmp_path, lengths)
  write(resumed, 2)
  resumed.close()
  assert steps(tmp_path)[0] == [2]
  assert f"Warning, {tmp_path}/metrics.jsonl is missing." in capsys.readouterr().err.replace(
    "\n", " "
  )


def test_sync_writes_the_rows_to_the_disk(tmp_path, monkeypatch):
  path, synchronized, fsync = tmp_path / "metrics.jsonl", [], os.fsync

  def record(descriptor):
    synchronized.append((os.fstat(descriptor).st_ino, path.read_text()))
    fsync(descriptor)

  monkeypatch.setattr(os, "fsync", record)
  writer = metrics_writer.MetricsWriter(tmp_path)
  write(writer, 1)
  writer.sync()
  assert synchronized == [(path.stat().st_ino, path.read_text())]
  assert path.read_text().endswith("\n")
  writer.close()


def _read(folder):
  return event_accumulator.EventAccumulator(
    str(folder), size_guidance={"tensors": 0, "images": 0}
  ).Reload()


def _plugins(events, tag):
  return events.SummaryMetadata(tag).plugin_data.plugin_name


def test_descriptions_settings_and_charts_are_written(tmp_path):
  writer = metrics_writer.MetricsWriter(tmp_path)
  writer.describe(config_lib.Config().override({"seed": 3, "env.id": "x"}))
  writer.close()
  events = _read(tmp_path)
  (text,) = events.Tensors("about/config")
  assert b"seed: 3\n" in text.tensor_proto.string_val[0]
  assert _plugins(events, "about/config") == "text"
  settings = plugin_data_pb2.HParamsPluginData.FromString(
    events.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
  ).session_start_info.hparams
  assert settings["seed"].number_value == 3
  assert settings["env.id"].string_value == "x"
  (layout,) = events.Tensors("custom_scalars__config__")
  charts = layout_pb2.Layout.FromString(layout.tensor_proto.string_val[0])
  assert [category.title for category in charts.category] == ["Score", "Learning progress", "Speed"]


@pytest.mark.slow
def test_charts_show_only_existing_tags(finished):
  shown = set()
  for phase in ("train", "eval"):
    shown |= set(_read(finished[0] / phase).Tags()["tensors"])
  for category in json.loads(metrics_writer.CHARTS.read_text())["category"]:
    for chart in category["chart"]:
      assert {tag.strip("^$") for tag in chart["multiline"]["tag"]} <= shown


def test_histograms_and_videos_are_written(tmp_path):
  writer = metrics_writer.MetricsWriter(tmp_path)
  writer.write_histograms(7, {"actions": np.arange(100.0)})
  film = training_videos.FinishedVideo(9, tmp_path / "x.mp4", video.Gif(4, 2, b"GIF89a"))
  writer.write_video("films/training", film)
  writer.close()
  events = _read(tmp_path / "train")
  (event,) = events.Tensors("histograms/actions")
  buckets = tf.make_ndarray(event.tensor_proto)
  assert event.step == 7 and buckets[:, 2].sum() == 100
  assert _plugins(events, "histograms/actions") == "histograms"
  (event,) = events.Tensors("films/training")
  assert event.step == 9
  assert tf.make_ndarray(event.tensor_proto).tolist() == [b"4", b"2", b"GIF89a"]
  assert _plugins(events, "films/training") == "images"
