"""Files are replaced completely or not at all."""

import errno
import itertools
import os
import re
import resource
import socket
import stat
import subprocess

import numpy as np
import pytest

from agents.training.run_folder import atomic_write, checkpoint
from tests.support import system_calls


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


def test_file_is_complete_and_synchronized_before_its_renaming(tmp_path, monkeypatch):
  calls = []

  def record(name, function, target):
    def recorded(*args):
      calls.append((name, *target(*args)))
      return function(*args)

    monkeypatch.setattr(os, name, recorded)

  record("fsync", os.fsync, lambda descriptor: (os.fstat(descriptor).st_ino, _size(descriptor)))
  record("replace", os.replace, lambda old, new: (old.stat().st_ino, new))
  path = tmp_path / "file.txt"
  with atomic_write.open_file(path) as file:
    file.write(b"text")
  inode = path.stat().st_ino
  assert calls == [
    ("fsync", inode, 4),
    ("replace", inode, path),
    ("fsync", tmp_path.stat().st_ino, None),
  ]


def _size(descriptor):
  """Returns the size of an open file; None for a folder."""
  status = os.fstat(descriptor)
  return status.st_size if stat.S_ISREG(status.st_mode) else None


@system_calls.needs_strace
def test_checkpoint_reaches_the_disk_before_and_after_its_renaming(tmp_path):
  with system_calls.recorded(tmp_path, "-e", "trace=/^(p?write|f(data)?sync|rename)") as lines:
    checkpoint.save(tmp_path, 7, {"a": np.ones(1000)}, {})
  # Each line is such as `123  fsync(5</folder/file>) = 0`.
  calls = [re.search(r"(\w+?)(?:v|64|at2?)?\(.*?[<\"](/[^>\"]*)", line).groups() for line in lines]
  path = checkpoint.newest(tmp_path)
  temporary = str(path.with_suffix(f".{socket.gethostname()}-{os.getpid()}.tmp"))
  assert [call for call, _ in itertools.groupby(calls)] == [
    ("write", temporary),
    ("fsync", temporary),
    ("rename", temporary),
    ("fsync", str(tmp_path)),
  ]


@system_calls.needs_strace
@pytest.mark.parametrize("call", ["write", "fsync", "/^rename"])
def test_failed_system_call_leaves_the_old_checkpoint_unchanged(call, tmp_path):
  checkpoint.save(tmp_path, 7, {"a": np.ones(3)}, {})
  path = checkpoint.newest(tmp_path)
  before = path.read_bytes()
  temporary = path.with_suffix(f".{socket.gethostname()}-{os.getpid()}.tmp")
  with system_calls.failing(call, "EIO", temporary):
    with pytest.raises(atomic_write.WriteError, match="Input/output error"):
      checkpoint.save(tmp_path, 7, {"a": np.zeros(3)}, {})
  assert path.read_bytes() == before
  assert list(tmp_path.iterdir()) == [path]


def test_folder_appears_only_after_it_is_complete(tmp_path):
  path = tmp_path / "crashes" / "7-1"
  with atomic_write.new_folder(path) as folder:
    (folder / "a.txt").write_text("a")
    assert not path.exists()
  assert [file.name for file in path.iterdir()] == ["a.txt"]
  with pytest.raises(ValueError):
    with atomic_write.new_folder(tmp_path / "crashes" / "7-2") as folder:
      (folder / "a.txt").write_text("a")
      raise ValueError
  assert list((tmp_path / "crashes").iterdir()) == [path]


def test_temporary_files_of_living_processes_and_of_other_hosts_stay(tmp_path):
  ended = subprocess.Popen(["true"])
  ended.wait()
  host = socket.gethostname()

  def make(owner):
    path = tmp_path / f"checkpoint-000000000007.{owner}.tmp"
    path.write_text("half")
    return path

  # The parent of this process lives.
  kept = [make(f"{host}-{os.getppid()}"), make(f"other.host-{ended.pid}")]
  make(f"{host}-{ended.pid}")
  make(f"{host}-{os.getpid()}")  # An earlier process had this id.
  atomic_write.remove_abandoned(tmp_path)
  assert sorted(tmp_path.iterdir()) == sorted(kept)
