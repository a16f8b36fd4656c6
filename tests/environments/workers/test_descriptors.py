"""Hundreds of workers exceed neither the limit of open files nor `select`."""

import os
import signal
import sys

import pytest

from tests.environments import scripts

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="The tests read /proc.")

_IMPORTS = """
import os, resource, time
from agents.environments.workers import pool
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
"""
_MANY_FILES = """
resource.setrlimit(resource.RLIMIT_NOFILE, (2048, hard))
for _ in range(1100):  # As many as those of 360 workers.
  os.dup(0)
"""


def test_soft_limit_of_open_files_is_raised(tmp_path):
  stdout, _ = scripts.run(
    _IMPORTS
    + """
resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/dev/fd")) + 3, hard))
with pool.WorkerPool(2) as workers:
  print(len(workers))
  # Starting a process temporarily needs further descriptors.
  soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
  print(soft >= len(os.listdir("/dev/fd")) + 100)
""",
    tmp_path,
  )
  assert stdout.split() == ["2", "True"]


def test_hard_limit_that_is_too_low_is_reported(tmp_path):
  stdout, _ = scripts.run(
    _IMPORTS
    + """
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
try:
  pool.WorkerPool(384)
except Exception as error:
  print(error)
""",
    tmp_path,
  )
  assert stdout.startswith("384 workers need 14")
  assert "the hard limit of this process is 1024. Raise it (`ulimit -Hn 14" in stdout
  fewer = int(stdout.partition("--set num_workers=")[2].rstrip(".\n"))
  assert 200 < fewer < 256


@pytest.mark.slow
def test_hanging_worker_with_high_descriptors_ends_with_its_trainer(tmp_path):
  trainer = scripts.start(
    _IMPORTS
    + _MANY_FILES
    + """
import functools
import numpy as np
from agents.environments import batch_env
from tests import toy

workers = pool.WorkerPool(1)
batch = batch_env.BatchEnv([functools.partial(toy.Faulty, "hang")], workers)
batch.reset()
batch.step(np.zeros((1, 1)))
batch._block.step_async()  # The second step hangs.
print(*workers.pids, flush=True)
time.sleep(1000)
""",
    tmp_path,
  )
  try:
    (pid,) = map(int, trainer.stdout.readline().split())
  finally:
    trainer.kill()
    trainer.wait()
    # Reading to the end would wait for the worker, which inherits stderr.
    trainer.stdout.close()
    trainer.stderr.close()
  running = scripts.wait_for_exit([pid], 5)
  for pid in running:
    os.kill(pid, signal.SIGKILL)
  assert not running


def test_signals_are_received_with_high_descriptors(tmp_path):
  stdout, _ = scripts.run(
    _IMPORTS
    + _MANY_FILES
    + """
import signal
from agents.training.faults import interrupts
with interrupts.Interrupts() as requested:
  os.kill(os.getpid(), signal.SIGTERM)
  deadline = time.monotonic() + 5
  while not requested() and time.monotonic() < deadline:
    time.sleep(0.01)
  print(requested())
""",
    tmp_path,
  )
  assert stdout == "True\n"
