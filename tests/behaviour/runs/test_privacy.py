"""Other users cannot open the sockets and shared memory of a run."""

import os
import pathlib
import sys

import pytest

from agents.environments import batch_env
from agents.environments.workers import pool
from tests import toy

pytestmark = [
  pytest.mark.faults,
  pytest.mark.skipif(sys.platform != "linux", reason="Needs /proc."),
]


def _sockets(pid):
  """Returns the inodes of the sockets of a process."""
  links = [
    os.readlink(path)
    for path in pathlib.Path(f"/proc/{pid}/fd").iterdir()
    if path.is_symlink() and path.exists()
  ]
  return {link[8:-1] for link in links if link.startswith("socket:[")}


def test_sockets_and_shared_memory_have_no_names():
  with pool.WorkerPool(2) as workers, batch_env.BatchEnv([toy.Counter] * 4, workers) as batch:
    batch.reset()
    sockets = [sockets for pid in workers.pids if (sockets := _sockets(pid))]
    assert len(sockets) == 2
    listening = pathlib.Path("/proc/net/unix").read_text().splitlines()[1:]
    # A socket with a path has an eighth column.
    named = {line.split()[6] for line in listening if len(line.split()) > 7}
    assert not set.union(*sockets) & named
    for pid in workers.pids:
      for path in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        link = os.readlink(path)
        assert (
          int(path.name) < 3
          or "(deleted)" in link
          or link.startswith(("socket:[", "pipe:[", "anon_inode:"))
        ), link
