from __future__ import annotations

import numpy as np
import pytest

from agents import config as config_lib
from agents.training.run_folder import checkpoint


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


def _steps(folder):
  return [checkpoint.load(path)[1]["step"] for path in checkpoint.paths(folder)]


def test_all_are_in_order_of_steps(tmp_path):
  for step in (0, 5, 10, 1_000_000, 20_000_000):
    save(tmp_path, step)
  assert _steps(tmp_path) == [0, 5, 10, 1_000_000, 20_000_000]


@pytest.mark.parametrize("amount", [9, 10, 21, 60, 200])
def test_the_first_the_last_three_and_milestones_are_kept(amount, tmp_path):
  for step in range(amount):
    save(tmp_path, 1000 * step)
    assert len(_steps(tmp_path)) == min(step + 1, 9)
  kept = _steps(tmp_path)
  assert kept[-3:] == [1000 * (amount - 3 + number) for number in range(3)]
  # The others are spread over all of the run.
  assert kept[0] == 0
  gaps = np.diff(kept[:7])
  assert gaps.max() <= 2 * gaps.min() or gaps.max() <= 1000 * amount / 3


def test_named_by_file_or_step(tmp_path):
  for step in (0, 5, 1_000_000):
    save(tmp_path, step)
  def step(name):
    return checkpoint.load(checkpoint.find(tmp_path, name))[1]["step"]
  for name in ("1e6", "1000000", "1,000,000", "checkpoint-000001000000",
               "checkpoint-000001000000.npz", None):
    assert step(name) == 1_000_000
  assert step("0") == 0
  with pytest.raises(config_lib.ConfigError) as caught:
    checkpoint.find(tmp_path, "7")
  assert "--checkpoint 7: there is none" in str(caught.value)
  assert "There are those of steps 0, 5, 1,000,000." in str(caught.value)


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


def test_any_damage_is_noticed(tmp_path):
  rng = np.random.default_rng(0)
  arrays = {"weights": rng.normal(size=50).astype(np.float32)}
  checkpoint.save(tmp_path, 3, arrays, {"step": 3})
  path = checkpoint.newest(tmp_path)
  whole = path.read_bytes()
  noticed = 0
  for place in range(0, len(whole), 3):
    path.write_bytes(
        whole[:place] + bytes([whole[place] ^ 0x20]) + whole[place + 1:])
    try:
      loaded, facts = checkpoint.load(path)
    except checkpoint.CheckpointError:
      noticed += 1
    else:  # It was of no account, such as the time of writing.
      assert facts == {"step": 3}
      assert loaded["weights"].tobytes() == arrays["weights"].tobytes()
  for length in range(0, len(whole) - 1, 5):
    path.write_bytes(whole[:length])
    with pytest.raises(checkpoint.CheckpointError, match="is damaged"):
      checkpoint.load(path)
  assert noticed > len(whole) / 6


def test_the_newest_that_is_not_damaged_is_loaded(tmp_path, capsys):
  for step in (1, 2, 3):
    save(tmp_path, step)
  assert checkpoint.load_newest(tmp_path)[1]["step"] == 3
  assert not capsys.readouterr().err
  paths = checkpoint.paths(tmp_path)
  paths[2].write_bytes(b"")
  paths[1].write_bytes(paths[1].read_bytes()[:-40])
  arrays, facts = checkpoint.load_newest(tmp_path)
  assert facts["step"] == 1 and arrays["a/b"].tolist() == [1] * 3
  told = capsys.readouterr().err.splitlines()
  assert [str(path) in line and "is damaged" in line for line, path in zip(
      told, paths[:0:-1], strict=True)] == [True, True]
  paths[0].write_bytes(b"PK")
  with pytest.raises(checkpoint.CheckpointError, match="No checkpoint in "):
    checkpoint.load_newest(tmp_path)


def test_the_newest_whole_one_is_named(tmp_path):
  for step in (3, 5):
    checkpoint.save(tmp_path, step, {}, {"step": step})
  assert checkpoint.newest_readable(tmp_path) == checkpoint.newest(tmp_path)
  checkpoint.newest(tmp_path).write_bytes(b"")
  assert checkpoint.step_of(checkpoint.newest_readable(tmp_path)) == 3


def test_loading_runs_no_code(tmp_path):
  path = tmp_path / "checkpoint-000000000001.npz"
  np.savez(path, facts=np.array([print], object))
  with pytest.raises(checkpoint.CheckpointError, match="allow_pickle"):
    checkpoint.load(path)


def test_nothing_there_is_told(tmp_path):
  with pytest.raises(checkpoint.CheckpointError, match="no checkpoint in"):
    checkpoint.newest(tmp_path)
