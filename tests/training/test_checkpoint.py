from __future__ import annotations

import numpy as np
import pytest

from agents.training import checkpoint


def save(folder, step):
  checkpoint.save(folder, step, {"a/b": np.full(3, step)}, {"step": step})


def test_round_trip_is_exact(tmp_path):
  arrays = {"float": np.array([0.1, np.nan, -0.0], np.float32),
            "int": np.array(2 ** 62), "bytes": np.zeros((0, 3), np.uint8)}
  checkpoint.save(tmp_path, 7, arrays, {"text": "x", "list": [1.5, None]})
  loaded, facts = checkpoint.load(checkpoint.newest(tmp_path))
  assert facts == {"text": "x", "list": [1.5, None]}
  assert loaded.keys() == arrays.keys()
  for name in arrays:
    assert loaded[name].dtype == arrays[name].dtype
    assert loaded[name].shape == arrays[name].shape
    assert loaded[name].tobytes() == arrays[name].tobytes()


def test_last_three_are_kept_in_order_of_steps(tmp_path):
  for step in (0, 5, 10, 1_000_000, 20_000_000):
    save(tmp_path, step)
  assert [checkpoint.load(path)[1]["step"] for path in
          checkpoint.paths(tmp_path)] == [10, 1_000_000, 20_000_000]


def test_half_written_files_do_not_count(tmp_path):
  save(tmp_path, 1)
  (tmp_path / "checkpoint-000000000002.tmp").write_bytes(b"half")
  assert checkpoint.load(checkpoint.newest(tmp_path))[1]["step"] == 1


def test_damage_is_told(tmp_path):
  save(tmp_path, 1)
  path = checkpoint.newest(tmp_path)
  path.write_bytes(path.read_bytes()[:-40])
  with pytest.raises(checkpoint.CheckpointError, match="is damaged"):
    checkpoint.load(path)


def test_loading_runs_no_code(tmp_path):
  path = tmp_path / "checkpoint-000000000001.npz"
  np.savez(path, facts=np.array([print], object))
  with pytest.raises(checkpoint.CheckpointError, match="allow_pickle"):
    checkpoint.load(path)


def test_nothing_there_is_told(tmp_path):
  with pytest.raises(checkpoint.CheckpointError, match="no checkpoint in"):
    checkpoint.newest(tmp_path)
