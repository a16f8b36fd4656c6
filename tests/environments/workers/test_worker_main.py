"""Worker processes are small, ignore Ctrl-C and end soon after the trainer."""

import os
import pathlib
import signal
import sys
import time

import pytest

from agents.environments import batch_env
from agents.environments.workers import pool as pool_lib
from tests import toy
from tests.environments import faulty_envs, rollouts, scripts
from tests.environments.workers import interrupts

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="The tests read /proc.")


# Imports and memory.


@pytest.mark.slow
def test_workers_import_neither_tensorflow_nor_the_main_module(tmp_path):
  # If a worker imported this script, it would start workers and print "main".
  stdout, _ = scripts.run(
    """
import sys
print("main", flush=True)
import tensorflow
from agents.environments import batch_env
from agents.environments.workers import pool
from tests.environments import faulty_envs

class LocalError(Exception):
  pass

class Local(faulty_envs.ProcessInfo):
  def fail(self):
    raise LocalError("local error")

with pool.WorkerPool(2) as workers:
  with batch_env.BatchEnv([Local] * 3, workers) as batch:
    print(batch.call("imported", "gymnasium"))
    print(batch.call("imported", "tensorflow"),
          "tensorflow" in sys.modules)
    try:
      batch.call("fail")
    except LocalError as error:
      print(error)
""",
    tmp_path,
  )
  assert stdout.splitlines() == [
    "main",
    "[True, True, True]",
    "[False, False, False] True",
    "local error",
  ]


def test_modules_in_the_current_folder_do_not_shadow_others(tmp_path):
  (tmp_path / "cwd").mkdir()
  for name in ("signal", "socket", "agents", "cloudpickle"):
    (tmp_path / "cwd" / f"{name}.py").write_text("raise Exception('wrong')")
  stdout, _ = scripts.run(
    """
from agents.environments import batch_env
from agents.environments.workers import pool
from tests import toy

with pool.WorkerPool(1) as workers:
  with batch_env.BatchEnv([toy.Counter], workers) as batch:
    print(batch.reset([5]))
""",
    tmp_path,
  )
  assert stdout == "[[5. 0.]]\n"


def test_worker_with_37_cheetahs_needs_less_than_150_megabytes():
  constructor = rollouts.make_env("HalfCheetah-v5")
  with pool_lib.WorkerPool(1) as workers:
    rollouts.play([constructor] * 37, workers, num_steps=50)
    status = pathlib.Path(f"/proc/{workers.pids[0]}/status").read_text()
  peak, unit = status.partition("VmHWM:")[2].split()[:2]
  assert unit == "kB"
  assert 10_000 < int(peak) < 150_000


def test_shared_memory_has_no_path(pool):
  with batch_env.BatchEnv([toy.Counter] * 4, pool) as batch:
    batch.reset()
    for pid in (os.getpid(), *pool.pids):
      maps = pathlib.Path(f"/proc/{pid}/maps").read_text()
      assert "memfd:agents" in maps
      # Other libraries in this process may use semaphores in /dev/shm.
      assert "/dev/shm" not in maps.replace("/dev/shm/sem.", "")


def test_kernel_kills_workers_before_the_trainer_if_memory_runs_out(pool):
  with batch_env.BatchEnv([toy.Counter] * 2, pool) as batch:
    batch.reset()
    trainer, *workers = (
      int(pathlib.Path(f"/proc/{pid}/oom_score").read_text()) for pid in (os.getpid(), *pool.pids)
    )
  # The trainer of a test has more memory than its workers.
  assert min(workers) > trainer


# Signals.


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_workers_ignore_signals_to_all_processes_of_a_run(pool, signum):
  with batch_env.BatchEnv([toy.Counter] * 2, pool) as batch:
    batch.reset()
    for pid in pool.pids:
      os.kill(pid, signum)
    for _ in range(20):
      time.sleep(0.01)
      interrupts.step(batch)
    assert all(map(scripts.is_running, pool.pids))


def test_workers_ignore_ctrl_c_while_they_start(tmp_path):
  # A terminal sends the signal to the whole process group.
  stdout, stderr = scripts.run(
    """
import os, signal, time
from agents.environments import batch_env
from agents.environments.workers import pool
from tests import toy

signal.signal(signal.SIGINT, lambda *_: None)
with pool.WorkerPool(2) as workers:
  for _ in range(50):
    os.killpg(0, signal.SIGINT)
    time.sleep(0.005)
  with batch_env.BatchEnv([toy.Counter] * 2, workers) as batch:
    print(batch.reset([5, 6]).tolist())
""",
    tmp_path,
  )
  assert stdout == "[[5.0, 0.0], [6.0, 0.0]]\n"
  assert stderr == ""


def test_environments_can_terminate_their_child_processes():
  with (
    pool_lib.WorkerPool(1) as workers,
    batch_env.BatchEnv([faulty_envs.TerminatesChildren], workers) as batch,
  ):
    for _ in range(20):
      assert batch.call("terminate_children") == [[-signal.SIGTERM] * 2]


# End of the trainer.


_TRAINER = """
import functools, os, signal, sys, threading, time
import numpy as np
from agents.environments import batch_env
from agents.environments.workers import pool
from tests import toy
from tests.environments import faulty_envs

constructors = {constructors}
read, write = os.pipe()
workers = pool.WorkerPool(len(constructors), read)
batch = batch_env.BatchEnv(constructors, workers)
batch.reset()
batch.step(np.zeros((len(batch), 1)))
if len(batch) > 1:
  # The second step hangs; an interrupt ends the wait.
  threading.Timer(0.5, os.write, (write, b" ")).start()
  try:
    batch.step(np.zeros((len(batch), 1)))
  except pool.Interrupted:
    pass
print(*workers.pids, flush=True)
{end}
"""


def _read_pids(trainer):
  return [int(pid) for pid in trainer.stdout.readline().split()]


@pytest.fixture(scope="module")
def orphans(tmp_path_factory):
  """Kills a trainer with SIGKILL while its workers idle or hang.

  Returns:
    By fault, whether the worker is still running 5 seconds later.
  """
  path = str(tmp_path_factory.mktemp("log") / "log")
  child = tmp_path_factory.mktemp("child") / "pid"
  constructors = {
    "idle": "functools.partial(toy.Counter, 9)",
    "hang": "functools.partial(toy.Faulty, 'hang')",
    "spin": "functools.partial(toy.Faulty, 'spin')",
    "native": "functools.partial(faulty_envs.Stuck, 'native')",
    "close": (f"functools.partial(faulty_envs.LogsLifetime, {path!r}, 'a', 'hang')"),
    "parent": f"functools.partial(faulty_envs.HangsWithChild, {str(child)!r}, 1)",
  }
  code = _TRAINER.format(
    constructors=f"[{', '.join(constructors.values())}]", end="time.sleep(1000)"
  )
  trainer = scripts.start(code, tmp_path_factory.mktemp("trainer"))
  try:
    pids = dict(zip(constructors, _read_pids(trainer)))
  finally:
    trainer.kill()
    trainer.wait()
    # Reading to the end would wait for workers, which inherit the other ends.
    trainer.stdout.close()
    trainer.stderr.close()
  assert len(pids) == len(constructors)
  pids["child"] = int(child.read_text())
  running = scripts.wait_for_exit(pids.values(), 5)
  for pid in running:
    os.kill(pid, signal.SIGKILL)
  return {fault: pid in running for fault, pid in pids.items()}


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["idle", "hang", "spin", "native", "close", "parent", "child"])
def test_sigkill_of_the_trainer_ends_a_worker(orphans, fault):
  assert not orphans[fault]


@pytest.mark.fast_variants(2)
@pytest.mark.parametrize(
  "end",
  [
    "pass",
    "sys.exit(3)",
    "os._exit(3)",
    "raise ValueError",
    "os.kill(os.getpid(), signal.SIGTERM)",
  ],
)
def test_any_end_of_the_trainer_ends_its_workers(end, tmp_path):
  trainer = scripts.start(_TRAINER.format(constructors="[toy.Counter]", end=end), tmp_path)
  try:
    pids = _read_pids(trainer)
    trainer.communicate(timeout=20)
  finally:
    trainer.kill()
  assert len(pids) == 1
  assert not scripts.wait_for_exit(pids, 5)
