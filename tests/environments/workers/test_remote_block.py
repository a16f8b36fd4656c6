"""A block on several workers behaves as one block."""

import os
import sys
import threading

import pytest

from agents.environments import batch_env
from agents.environments.workers import pool as pool_lib
from agents.environments.workers import protocol
from tests import toy
from tests.environments.workers import interrupts

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="The tests read /proc.")


def test_argument_that_cannot_be_pickled_leaves_the_workers_usable(pool):
  with batch_env.BatchEnv([toy.Counter] * 2, pool) as one, \
      batch_env.BatchEnv([toy.Counter] * 2, pool) as other:
    for batch in (one, other):
      batch.reset()
    with pytest.raises(TypeError, match="cannot pickle"):
      one.set("length", [3, threading.Lock()])
    assert one.get("length") == other.get("length") == [3, 3]
    for batch in (one, other):
      assert interrupts.step(batch).reward.tolist() == [1, 1]


def test_closed_blocks_leave_no_descriptors_open_in_the_workers(monkeypatch):
  monkeypatch.setattr(protocol, "MAX_BLOCKS", 10)
  def descriptors(workers):
    with batch_env.BatchEnv([toy.Counter] * 2, workers) as batch:
      batch.reset()
    return [len(os.listdir(f"/proc/{pid}/fd")) for pid in workers.pids]
  with pool_lib.WorkerPool(2) as workers:
    before = descriptors(workers)
    with batch_env.BatchEnv([toy.Counter] * 2, workers) as other:
      other.reset()
      for _ in range(protocol.MAX_BLOCKS + 5):  # More than the open maximum.
        after = descriptors(workers)
      assert interrupts.step(other).reward.tolist() == [1, 1]
  assert [now - then for now, then in zip(after, before)] == [1, 1]
