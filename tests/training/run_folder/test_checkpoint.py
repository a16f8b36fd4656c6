import subprocess
import sys

import numpy as np
import pytest

from agents import config as config_lib
from agents.training.run_folder import checkpoint
from tests.support import command, system_calls


def save(folder, step):
  checkpoint.save(folder, step, {"a/b": np.full(3, step)}, {"step": step})


def test_loaded_checkpoint_equals_the_saved_one_bit_for_bit(tmp_path):
  arrays = {
    "float": np.array([0.1, np.nan, -0.0], np.float32),
    "int": np.array(2**62),
    "bytes": np.zeros((0, 3), np.uint8),
  }
  checkpoint.save(tmp_path, 7, arrays, {"text": "x", "list": [1.5, None]})
  loaded, metadata = checkpoint.load(checkpoint.newest(tmp_path))
  assert metadata == {"text": "x", "list": [1.5, None]}
  assert loaded.keys() == arrays.keys()
  for name in arrays:
    assert loaded[name].dtype == arrays[name].dtype
    assert loaded[name].shape == arrays[name].shape
    assert loaded[name].tobytes() == arrays[name].tobytes()


def _load_newest(folder):
  return checkpoint.load(checkpoint.newest_readable(folder))


def _steps(folder):
  return [checkpoint.load(path)[1]["step"] for path in checkpoint.paths(folder)]


def test_checkpoints_are_listed_in_order_of_steps(tmp_path):
  for step in (0, 5, 10, 1_000_000, 20_000_000):
    save(tmp_path, step)
  assert _steps(tmp_path) == [0, 5, 10, 1_000_000, 20_000_000]


@pytest.mark.fast_variants(2)
@pytest.mark.parametrize("num_saved", [9, 10, 21, 60, 200])
def test_first_newest_three_and_milestone_checkpoints_are_kept(num_saved, tmp_path):
  for step in range(num_saved):
    save(tmp_path, 1000 * step)
    assert len(_steps(tmp_path)) == min(step + 1, 9)
  kept = _steps(tmp_path)
  assert kept[-3:] == [1000 * (num_saved - 3 + number) for number in range(3)]
  # The milestones are spread over the run.
  assert kept[0] == 0
  gaps = np.diff(kept[:7])
  assert gaps.max() <= 2 * gaps.min() or gaps.max() <= 1000 * num_saved / 3


def test_checkpoint_is_found_by_file_name_or_step(tmp_path):
  for step in (0, 5, 1_000_000):
    save(tmp_path, step)

  def step(name):
    return checkpoint.load(checkpoint.find(tmp_path, name))[1]["step"]

  for name in (
    "1e6",
    "1000000",
    "1,000,000",
    "checkpoint-000001000000",
    "checkpoint-000001000000.npz",
    None,
  ):
    assert step(name) == 1_000_000
  assert step("0") == 0
  with pytest.raises(config_lib.ConfigError) as caught:
    checkpoint.find(tmp_path, "7")
  assert "has the name or step 7" in str(caught.value)
  assert "Available steps: 0, 5, 1,000,000." in str(caught.value)


def test_best_policy_replaces_the_previous_best_policy(tmp_path):
  save(tmp_path, 9)
  with pytest.raises(config_lib.ConfigError, match="the name or step best"):
    checkpoint.find(tmp_path, "best")
  for step in (5, 7):
    checkpoint.save_best(tmp_path, step, {"variable/x": np.full(3, step)})
  path = checkpoint.find(tmp_path, "best")
  assert checkpoint.step_of(path) == 7
  assert checkpoint.load(path)[0]["variable/x"].tolist() == [7, 7, 7]
  assert len(list(tmp_path.iterdir())) == 2
  assert checkpoint.newest(tmp_path) != path


def test_temporary_files_are_not_listed(tmp_path):
  save(tmp_path, 1)
  (tmp_path / "checkpoint-000000000002.tmp").write_bytes(b"half")
  assert checkpoint.load(checkpoint.newest(tmp_path))[1]["step"] == 1


def test_truncated_checkpoint_raises_an_error(tmp_path):
  save(tmp_path, 1)
  path = checkpoint.newest(tmp_path)
  path.write_bytes(path.read_bytes()[:-40])
  with pytest.raises(checkpoint.CheckpointError, match="is damaged"):
    checkpoint.load(path)


def test_flipped_bits_and_truncation_are_detected(tmp_path):
  rng = np.random.default_rng(0)
  arrays = {"weights": rng.normal(size=50).astype(np.float32)}
  checkpoint.save(tmp_path, 3, arrays, {"step": 3})
  path = checkpoint.newest(tmp_path)
  content = path.read_bytes()
  num_detected = 0
  for index in range(0, len(content), 3):
    path.write_bytes(content[:index] + bytes([content[index] ^ 0x20]) + content[index + 1 :])
    try:
      loaded, metadata = checkpoint.load(path)
    except checkpoint.CheckpointError:
      num_detected += 1
    else:  # The byte has no effect; for example, it is part of a file time.
      assert metadata == {"step": 3}
      assert loaded["weights"].tobytes() == arrays["weights"].tobytes()
  for length in range(0, len(content) - 1, 5):
    path.write_bytes(content[:length])
    with pytest.raises(checkpoint.CheckpointError, match="is damaged"):
      checkpoint.load(path)
  assert num_detected > len(content) / 6


def test_newest_undamaged_checkpoint_is_loaded(tmp_path, capsys):
  for step in (1, 2, 3):
    save(tmp_path, step)
  assert _load_newest(tmp_path)[1]["step"] == 3
  assert not capsys.readouterr().err
  paths = checkpoint.paths(tmp_path)
  paths[2].write_bytes(b"")
  paths[1].write_bytes(paths[1].read_bytes()[:-40])
  arrays, metadata = _load_newest(tmp_path)
  assert metadata["step"] == 1 and arrays["a/b"].tolist() == [1] * 3
  notes = capsys.readouterr().err.splitlines()
  assert [
    str(path) in line and "is damaged" in line
    for line, path in zip(notes, paths[:0:-1], strict=True)
  ] == [True, True]
  paths[0].write_bytes(b"PK")
  with pytest.raises(checkpoint.CheckpointError, match="No checkpoint in "):
    _load_newest(tmp_path)


@system_calls.needs_strace
@pytest.mark.parametrize(
  "call, error, message",
  [("openat", "EACCES", "Permission denied"), ("read", "EIO", "Input/output error")],
)
def test_unreadable_checkpoint_is_not_skipped_like_a_damaged_one(call, error, message, tmp_path):
  for step in (1, 2):
    save(tmp_path, step)
  with system_calls.failing(call, error, checkpoint.newest(tmp_path)):
    with pytest.raises(checkpoint.ReadError, match=f"2.npz can't be read: {message}"):
      checkpoint.newest_readable(tmp_path)
  assert _load_newest(tmp_path)[1]["step"] == 2


# Verifies and loads a checkpoint with 32 MB of additional memory.
_LOAD = """
import pathlib, resource, sys
from agents.training.run_folder import checkpoint
size = int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + 2**25, resource.RLIM_INFINITY))
path = checkpoint.newest_readable(pathlib.Path(sys.argv[1]))
print("verified")
checkpoint.load(path)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="Needs /proc.")
def test_checkpoint_that_exceeds_the_memory_is_not_skipped(tmp_path):
  save(tmp_path, 1)
  checkpoint.save(tmp_path, 2, {"large": np.zeros(2**26, np.uint8)}, {"step": 2})
  done = subprocess.run(
    [sys.executable, "-c", _LOAD, str(tmp_path)], cwd=command.ROOT, capture_output=True, text=True
  )
  assert done.stdout == "verified\n"
  assert f"ReadError: {checkpoint.newest(tmp_path)} can't be read: not enough memory" in done.stderr
  assert _load_newest(tmp_path)[1]["step"] == 2


def test_damaged_size_of_an_array_is_detected_before_its_memory_is_allocated(tmp_path):
  checkpoint.save(tmp_path, 1, {"a": np.zeros(10_000)}, {})
  path = checkpoint.newest(tmp_path)
  content = path.read_bytes()
  before = b"(10000,), }" + 20 * b" "
  assert content.count(before) == 1
  # No machine has so much memory.
  path.write_bytes(content.replace(before, f"({10**17},), }}".encode().ljust(len(before))))
  with pytest.raises(checkpoint.CheckpointError, match="is damaged"):
    checkpoint.load(path)


def test_saved_checkpoint_stays_although_later_ones_are_damaged(tmp_path):
  for step in range(0, 12_000, 1000):
    save(tmp_path, step)
  later = checkpoint.paths(tmp_path)[-3:]
  for path in later:
    path.write_bytes(b"damaged")
  for step in range(8100, 9000, 100):
    save(tmp_path, step)
    assert checkpoint.step_of(checkpoint.newest_readable(tmp_path)) == step
    assert len(checkpoint.paths(tmp_path)) <= 9 + 3
  assert set(later) < set(checkpoint.paths(tmp_path))


def test_newest_readable_checkpoint_is_returned(tmp_path):
  for step in (3, 5):
    checkpoint.save(tmp_path, step, {}, {"step": step})
  assert checkpoint.newest_readable(tmp_path) == checkpoint.newest(tmp_path)
  checkpoint.newest(tmp_path).write_bytes(b"")
  assert checkpoint.step_of(checkpoint.newest_readable(tmp_path)) == 3


def test_loading_a_checkpoint_executes_no_code(tmp_path):
  path = tmp_path / "checkpoint-000000000001.npz"
  np.savez(path, facts=np.array([print], object))
  with pytest.raises(checkpoint.CheckpointError, match="type object are not supported"):
    checkpoint.load(path)


def test_empty_checkpoint_folder_raises_an_error(tmp_path):
  with pytest.raises(checkpoint.CheckpointError, match="no checkpoint in"):
    checkpoint.newest(tmp_path)
