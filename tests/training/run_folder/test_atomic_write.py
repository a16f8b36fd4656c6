"""Files are replaced completely or not at all."""

import errno
import os
import resource

import pytest

from agents.training.run_folder import atomic_write


def test_file_is_replaced_only_after_it_is_complete(tmp_path):
  path = tmp_path / "file.txt"
  for content in (b"one", b"another"):
    before = path.read_bytes() if path.exists() else None
    with atomic_write.open_file(path) as file:
      file.write(content)
      assert (path.read_bytes() if path.exists() else None) == before
    assert path.read_bytes() == content
  assert os.listdir(tmp_path) == ["file.txt"]


@pytest.mark.parametrize(
  "error", [OSError(errno.ENOSPC, "No space left on device"), ValueError("no disk")]
)
def test_failed_write_leaves_the_old_file_unchanged(error, tmp_path):
  path = tmp_path / "file.txt"
  path.write_text("before")
  expected = atomic_write.WriteError if isinstance(error, OSError) else ValueError
  with pytest.raises(expected) as caught:
    with atomic_write.open_file(path) as file:
      file.write(b"after")
      raise error
  if expected is atomic_write.WriteError:
    assert str(caught.value).startswith(f"{path} can't be written: No space left on device. ")
  assert path.read_text() == "before"
  assert os.listdir(tmp_path) == ["file.txt"]


def test_exceeded_file_size_limit_raises_a_write_error(tmp_path):
  limits = resource.getrlimit(resource.RLIMIT_FSIZE)
  resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
  try:
    with pytest.raises(atomic_write.WriteError, match="too large"):
      with atomic_write.open_file(tmp_path / "file") as file:
        file.write(b"0" * 100_000)
  finally:
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
  assert not os.listdir(tmp_path)
