"""Only one process trains a run; the lock ends with this process."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time

import pytest

from agents import config as config_lib
from agents.training.run_folder import run_lock
from tests.support import command, system_calls

_LOCK = """
import os, pathlib, sys, time
from agents.training.run_folder import run_lock
with run_lock.locked(pathlib.Path(sys.argv[1])):
  {body}
"""


def _start(folder, body="print('locked', flush=True); time.sleep(100)"):
  """Starts a process that locks a folder; waits until it prints or ends."""
  process = subprocess.Popen(
    [sys.executable, "-c", _LOCK.format(body=body), str(folder)],
    cwd=command.ROOT,
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
  )
  assert process.stdout.readline() == b"locked\n"
  return process


def _lock(folder, **kwargs):
  with run_lock.locked(folder, **kwargs):
    return run_lock.owner(folder)


def test_lock_contains_host_and_process_until_it_is_released(tmp_path):
  assert run_lock.owner(tmp_path) is None
  assert _lock(tmp_path) == (socket.gethostname(), os.getpid())
  assert run_lock.owner(tmp_path) is None
  with pytest.raises(ValueError):
    with run_lock.locked(tmp_path):
      raise ValueError
  assert run_lock.owner(tmp_path) is None


def test_release_of_one_folder_keeps_the_owner_of_another(tmp_path):
  folders = tmp_path / "one", tmp_path / "two"
  for folder in folders:
    folder.mkdir()
  with run_lock.locked(folders[0]):
    _lock(folders[1])
    assert run_lock.owner(folders[0]).process == os.getpid()
    run_lock.clear()
    assert run_lock.owner(folders[0]) is None


def test_folder_cannot_be_locked_twice_in_one_process(tmp_path):
  with run_lock.locked(tmp_path):
    with pytest.raises(config_lib.ConfigError, match="by another process"):
      _lock(tmp_path)
    assert run_lock.owner(tmp_path)
  _lock(tmp_path)


def test_lock_of_a_living_process_is_refused_and_that_of_a_killed_one_is_taken_over(tmp_path):
  process = _start(tmp_path)
  message = f"is being trained by another process .process {process.pid} on {socket.gethostname()}"
  with pytest.raises(config_lib.ConfigError, match=message):
    _lock(tmp_path)
  process.kill()
  process.wait()
  assert run_lock.owner(tmp_path).process == process.pid
  _lock(tmp_path)


def test_lock_of_another_host_is_taken_over_only_after_a_confirmation(tmp_path):
  other = run_lock.Owner("other.host", 7)
  (tmp_path / "lock").write_text(json.dumps(other._asdict()))
  with pytest.raises(config_lib.ConfigError) as caught:
    _lock(tmp_path)
  assert "may still be trained by process 7 on other.host" in str(caught.value)
  assert f"If that process has ended, delete {tmp_path}/lock, and run" in str(caught.value)
  assert run_lock.owner(tmp_path) == other
  # Other machines of a cluster know that its first machine was lost.
  _lock(tmp_path, lost=other)
  (tmp_path / "lock").write_text(json.dumps(other._asdict()))
  (tmp_path / "lock").unlink()
  _lock(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"host": 1}', "\xff"])
def test_damaged_lock_file_is_replaced(text, tmp_path):
  (tmp_path / "lock").write_bytes(text.encode("latin-1"))
  assert _lock(tmp_path).process == os.getpid()


def test_child_process_does_not_keep_the_lock_of_a_dead_process(tmp_path):
  process = _start(
    tmp_path,
    "if os.fork(): os._exit(0)\n  print('locked', flush=True); sys.stdin.read(); os._exit(0)",
  )
  process.wait()
  assert not select.select([process.stdout], [], [], 0)[0]  # The child still runs.
  _lock(tmp_path)
  process.stdin.close()
  assert not process.stdout.read()  # The child has ended.


def test_owner_reaches_the_disk_before_training(tmp_path, monkeypatch):
  texts, fsync = [], os.fsync

  def record(descriptor):
    texts.append(os.pread(descriptor, 1000, 0).decode())
    fsync(descriptor)

  monkeypatch.setattr(os, "fsync", record)
  owner = _lock(tmp_path)
  assert [json.loads(text) for text in texts] == [owner._asdict()]


@system_calls.needs_strace
def test_file_system_without_locks_is_reported(tmp_path):
  with system_calls.failing("flock", "ENOLCK", tmp_path / "lock"):
    with pytest.raises(config_lib.ConfigError) as caught:
      _lock(tmp_path)
  assert f"{tmp_path} can't be locked: No locks available." in str(caught.value)
  assert "Move the folder to a file system with locks" in str(caught.value)


def test_process_that_ends_at_once_releases_its_lock(tmp_path):
  process = _start(
    tmp_path,
    "from agents.training.faults import interrupts\n"
    "  with interrupts.Interrupts():\n"
    "    print('locked', flush=True)\n"
    "    while True: time.sleep(100)",
  )
  while process.poll() is None:
    process.send_signal(signal.SIGINT)
    time.sleep(0.1)
  assert process.returncode == 130
  assert run_lock.owner(tmp_path) is None


@pytest.mark.parametrize("process", [0, -1, "1", 10**30, None])
def test_invalid_process_ids_hold_no_lock(process, tmp_path):
  text = json.dumps({"host": socket.gethostname(), "process": process})
  (tmp_path / "lock").write_text(text)
  assert run_lock.holder(tmp_path) is None


def test_holder_is_the_process_with_the_lock(tmp_path):
  assert run_lock.holder(tmp_path) is None
  with run_lock.locked(tmp_path):
    assert run_lock.holder(tmp_path) == (socket.gethostname(), os.getpid())
    text = (tmp_path / "lock").read_text()
  # A killed process leaves its id, but no lock.
  (tmp_path / "lock").write_text(text)
  assert run_lock.owner(tmp_path) and run_lock.holder(tmp_path) is None
