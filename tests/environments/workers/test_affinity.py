"""Workers do not preempt the trainer; each worker gets a core if possible."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from agents.environments import batch_env
from agents.environments.data import failure_budget
from agents.environments.workers import affinity, pool
from tests import toy
from tests.support import command

pytestmark = pytest.mark.skipif(
  not hasattr(os, "SCHED_BATCH"), reason="The system has no batch policy."
)


@pytest.fixture
def cores():
  """The available cores, which are restored after the test."""
  allowed = os.sched_getaffinity(0)
  yield sorted(allowed)
  os.sched_setaffinity(0, allowed)


def _settings(workers):
  """Returns the scheduling policy and the allowed cores of each worker."""
  return [(os.sched_getscheduler(pid), os.sched_getaffinity(pid)) for pid in workers.pids]


def test_each_worker_gets_its_own_core_if_there_are_as_many_cores(cores):
  with pool.WorkerPool(len(cores)) as workers:
    assert _settings(workers) == [(os.SCHED_BATCH, {core}) for core in cores]
  assert os.sched_getscheduler(0) == os.SCHED_OTHER
  assert os.sched_getaffinity(0) == set(cores)


def test_workers_share_all_cores_if_there_are_more_or_fewer_cores(cores):
  for num_workers in {len(cores) + 1, max(1, len(cores) - 1)} - {len(cores)}:
    with pool.WorkerPool(num_workers) as workers:
      assert _settings(workers) == [(os.SCHED_BATCH, set(cores))] * num_workers


def test_only_available_cores_are_considered(cores):
  os.sched_setaffinity(0, {cores[-1]})
  assert affinity.core_for(0, 1) == cores[-1]
  assert affinity.core_for(0, 2) is None


def test_replaced_worker_gets_the_core_of_the_old_one(cores):
  budget = failure_budget.FailureBudget(5)
  with pool.WorkerPool(len(cores), failure_budget=budget) as workers:
    with batch_env.BatchEnv([toy.Counter] * len(cores), workers) as batch:
      batch.reset()
      before = _settings(workers)
      os.kill(workers.pids[-1], signal.SIGKILL)
      batch.step(np.zeros((len(cores), 1)))
      assert _settings(workers) == before


def test_process_that_has_ended_is_ignored():
  process = subprocess.Popen([sys.executable, "-c", ""])
  process.wait()
  affinity.configure(process.pid, 0)


# A separate process runs this script, because an unprivileged process cannot
# leave the idle policy.
_IDLE = """
import os, subprocess
from agents.environments.workers import affinity
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
child = subprocess.Popen(["sleep", "60"])
cores = os.sched_getaffinity(child.pid)
affinity.configure(child.pid, min(cores))
print(os.sched_getscheduler(child.pid) == os.SCHED_IDLE,
      os.sched_getaffinity(child.pid) == cores)
child.kill()
child.wait()
"""


def test_workers_keep_a_policy_that_was_set_for_the_trainer():
  output = subprocess.run(
    [sys.executable, "-c", _IDLE], cwd=command.ROOT, check=True, text=True, stdout=subprocess.PIPE
  ).stdout
  assert output.split() == ["True", "True"]
