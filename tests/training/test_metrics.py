from __future__ import annotations

import json

from tensorboard.backend.event_processing import event_accumulator

from agents.training import metrics


def steps(folder):
  """Return the steps in `metrics.jsonl` and in TensorBoard's train events."""
  rows = [json.loads(line) for line in
          (folder / "metrics.jsonl").read_text().splitlines()]
  events = event_accumulator.EventAccumulator(str(folder / "train"))
  events.Reload()
  tags = events.Tags()["tensors"]
  return [row["step"] for row in rows], [
      event.step for event in events.Tensors("a")] if tags else []


def write(writer, step):
  writer.write({"phase": "train", "step": step}, {"a": float(step)})


def test_every_row_is_readable_at_once(tmp_path):
  writer = metrics.Metrics(tmp_path)
  for step in (1, 2, 3):
    write(writer, step)
    assert steps(tmp_path)[0] == list(range(1, step + 1))
  writer.close()


def test_resuming_cuts_what_came_later(tmp_path):
  writer = metrics.Metrics(tmp_path)
  write(writer, 1)
  lengths = writer.lengths()
  write(writer, 2)
  with open(tmp_path / "metrics.jsonl", "a") as file:
    file.write('{"phase": "tr')  # Killed while writing.
  resumed = metrics.Metrics(tmp_path, lengths)
  assert steps(tmp_path) == ([1], [1])
  write(resumed, 3)
  resumed.close()
  again = metrics.Metrics(tmp_path, lengths)
  assert steps(tmp_path) == ([1], [1])
  again.close()
  writer.close()


def test_summary_of_episodes():
  assert metrics.summarize([1.0, 3.0], [10, 20]) == {
      "episodes": 2, "return_mean": 2.0, "return_std": 1.0, "return_min": 1.0,
      "return_max": 3.0, "length_mean": 15.0}


def test_summary_without_episodes_is_null():
  summary = metrics.summarize([], [])
  assert summary.pop("episodes") == 0
  assert set(summary.values()) == {None}
