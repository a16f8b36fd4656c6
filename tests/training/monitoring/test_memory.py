"""Memory of processes, from the operating system."""

import os
import pathlib
import subprocess

import numpy as np
import pytest

from agents.environments import batch_env
from agents.environments.workers import pool
from agents.training.monitoring import memory
from tests import toy


def test_memory_grows_by_the_size_of_a_new_array():
  before = memory.resident([os.getpid()])
  array = np.ones(100_000_000, np.uint8)
  assert memory.resident([os.getpid()]) - before == pytest.approx(100, abs=20)
  del array


def test_usage_is_that_of_this_process_and_the_sum_over_the_workers():
  with pool.WorkerPool(2) as workers, batch_env.BatchEnv([toy.Counter] * 2, workers) as batch:
    batch.reset()
    assert batch.worker_pids == workers.pids
    usage = memory.usage(batch.worker_pids)
    each = [memory.resident([pid]) for pid in workers.pids]
  assert usage["worker_memory"] == pytest.approx(sum(each), rel=0.05)
  assert min(each) > 10 and usage["trainer_memory"] > 10


def test_memory_of_no_process_is_unknown():
  assert memory.usage([])["worker_memory"] is None
  ended = subprocess.Popen(["true"])
  ended.wait()
  assert memory.resident([ended.pid]) is None


@pytest.mark.skipif(not pathlib.Path("/proc/self/statm").exists(), reason="Needs /proc.")
def test_proc_and_ps_agree():
  from_ps = memory._from_ps([os.getpid()])
  assert from_ps == pytest.approx(memory._from_proc([os.getpid()]), rel=0.1)
