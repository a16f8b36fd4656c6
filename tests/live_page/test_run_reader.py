import json
import os

import pytest

from agents.live_page import run_reader
from agents.training.run_folder import run_lock
from tests.reports import folders


def _row(step, seconds=1.0, phase="train", **fields):
  return json.dumps(
    {"phase": phase, "step": step, "seconds": seconds, "return_mean": 1.0, **fields}
  )


@pytest.fixture
def reader(tmp_path):
  """Returns the reader of a run with a budget of 200 steps and no rows."""
  folder = folders.make(tmp_path / "1-cheetah", [1.0, 2.0])
  (folder / "metrics.jsonl").write_text("")
  return run_reader.RunReader(folder)


def _write(reader, *lines, mode="a", end="\n"):
  """Writes lines, and returns the steps of the rows that are then read."""
  with open(reader.path / "metrics.jsonl", mode) as file:
    file.write("".join(line + "\n" for line in lines[:-1]) + "".join(lines[-1:]) + end)
  reader.refresh()
  return [row["step"] for row in reader.rows]


def test_added_rows_are_read_once_and_incomplete_lines_later(reader):
  assert _write(reader, _row(1), _row(2)) == [1, 2]
  line = _row(3)
  assert _write(reader, line[:10], end="") == [1, 2]
  assert _write(reader, line[10:], _row(4)) == [1, 2, 3, 4]
  assert reader.generation == 0


@pytest.mark.parametrize("num_rows", [1, 3, 5])
def test_rows_that_a_resumed_run_replaces_are_forgotten(reader, num_rows):
  _write(reader, *(_row(step) for step in (1, 2, 3)))
  # The resumed run repeats the steps, but takes another time.
  steps = [*range(1, num_rows + 1)]
  assert _write(reader, *(_row(step, 1.5) for step in steps), mode="w") == steps
  assert reader.generation == 1
  assert {row["seconds"] for row in reader.rows} == {1.5}


def test_missing_file_has_no_rows(reader):
  _write(reader, _row(1))
  (reader.path / "metrics.jsonl").unlink()
  reader.refresh()
  assert (reader.rows, reader.generation) == ([], 1)


def test_damaged_lines_are_reported_and_left_out(reader):
  lines = "[]", "x", '{"phase": "train"}', '{"phase": "eval", "step": "1", "seconds": 1}'
  assert _write(reader, _row(1), *lines, _row(2)) == [1, 2]
  assert "damaged" in reader.summary()["error"]


def test_infinite_numbers_become_valid_json(reader):
  _write(
    reader,
    _row(1, kl=float("nan"), entropy=float("inf")),
    '{"phase": "eval", "step": 1, "seconds": 1, "return_mean": 1e999}',
  )
  assert json.loads(json.dumps(reader.rows, allow_nan=False))[0]["kl"] is None
  assert reader.rows[1]["return_mean"] is None


def test_links_and_pipes_are_not_read(reader, tmp_path):
  secret = tmp_path / "secret"
  secret.write_text(_row(7) + "\n")
  path = reader.path / "metrics.jsonl"
  path.unlink()
  path.symlink_to(secret)
  reader.refresh()
  assert reader.rows == [] and "can't be read" in reader.summary()["error"]
  path.unlink()
  os.mkfifo(path)
  reader.refresh()
  assert reader.rows == [] and "can't be read" in reader.summary()["error"]


def test_state_is_that_of_the_process_that_holds_the_lock(reader):
  _write(reader, _row(100), _row(100, phase="eval"))
  assert reader.summary()["state"] == "stopped"
  with run_lock.locked(reader.path):
    assert reader.summary()["state"] == "running"
  _write(reader, _row(200, phase="eval"))
  assert reader.summary()["state"] == "finished"
  (reader.path / "lock").write_text('{"host": "other", "process": 1}')
  assert (reader.summary()["state"], reader.summary()["host"]) == ("elsewhere", "other")


def test_remaining_time_follows_from_the_recent_speed(reader):
  _write(reader, _row(50, 10.0), _row(100, 20.0))
  assert reader.summary()["seconds_left"] is None  # The run is not running.
  with run_lock.locked(reader.path):
    assert reader.summary()["seconds_left"] == 20.0


def test_changed_budget_and_invalid_config_are_noticed(reader):
  reader.refresh()
  assert reader.summary()["steps"] == 200
  path = reader.path / "config.yaml"
  path.write_text(path.read_text().replace("steps: 200", "steps: 3000"))
  reader.refresh()
  assert (reader.summary()["steps"], reader.summary()["error"]) == (3000, "")
  path.write_text("a: 1")
  reader.refresh()
  assert "has no field 'a'" in reader.summary()["error"]
