"""Workers give way to the trainer, and have a core each where there are enough.
"""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from agents.environments import batch_env
from agents.environments.data import failure_budget
from agents.environments.workers import affinity
from agents.environments.workers import pool
from tests import command
from tests import toy

pytestmark = pytest.mark.skipif(
    not hasattr(os, "SCHED_BATCH"), reason="No such thing here.")


@pytest.fixture
def cores():
  """Cores that may be used, which are the same again afterwards."""
  allowed = os.sched_getaffinity(0)
  yield sorted(allowed)
  os.sched_setaffinity(0, allowed)


def _places(workers):
  return [(os.sched_getscheduler(pid), os.sched_getaffinity(pid))
          for pid in workers.pids]


def test_as_many_workers_as_cores_have_one_each(cores):
  with pool.WorkerPool(len(cores)) as workers:
    assert _places(workers) == [(os.SCHED_BATCH, {core}) for core in cores]
  assert os.sched_getscheduler(0) == os.SCHED_OTHER
  assert os.sched_getaffinity(0) == set(cores)


def test_more_or_less_workers_than_cores_have_all(cores):
  for amount in {len(cores) + 1, max(1, len(cores) - 1)} - {len(cores)}:
    with pool.WorkerPool(amount) as workers:
      assert _places(workers) == [(os.SCHED_BATCH, set(cores))] * amount


def test_only_cores_that_may_be_used_count(cores):
  os.sched_setaffinity(0, {cores[-1]})
  assert affinity.core_of(0, 1) == cores[-1]
  assert affinity.core_of(0, 2) is None


def test_one_that_takes_the_place_of_another_takes_its_core(cores):
  survived = failure_budget.FailureBudget(5)
  with pool.WorkerPool(len(cores), incidents=survived) as workers:
    with batch_env.BatchEnv([toy.Counter] * len(cores), workers) as batch:
      batch.reset()
      before = _places(workers)
      os.kill(workers.pids[-1], signal.SIGKILL)
      batch.step(np.zeros((len(cores), 1)))
      assert _places(workers) == before


def test_a_process_that_has_ended_is_no_error():
  process = subprocess.Popen([sys.executable, "-c", ""])
  process.wait()
  affinity.place(process.pid, 0)


# In a process of its own, as there is no way back.
_IDLE = """
import os, subprocess
from agents.environments.workers import affinity as scheduling
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
child = subprocess.Popen(["sleep", "60"])
cores = os.sched_getaffinity(child.pid)
scheduling.place(child.pid, min(cores))
print(os.sched_getscheduler(child.pid) == os.SCHED_IDLE,
      os.sched_getaffinity(child.pid) == cores)
child.kill()
child.wait()
"""


def test_what_somebody_has_chosen_for_the_trainer_holds_for_workers():
  output = subprocess.run(
      [sys.executable, "-c", _IDLE], cwd=command.ROOT, check=True, text=True,
      stdout=subprocess.PIPE).stdout
  assert output.split() == ["True", "True"]
