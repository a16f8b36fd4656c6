"""WorkerPool divides batches evenly among workers and ends all workers."""

import collections
import functools
import gc
import os
import pathlib
import subprocess
import sys
import threading
import time

import pytest

from agents.environments import batch_env
from agents.environments.workers import pool as pool_lib
from agents.environments.workers import protocol
from tests import toy
from tests.environments import faulty_envs, rollouts, scripts
from tests.environments.workers import interrupts

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="The tests read /proc.")

_HANG = interrupts.HANGING["hang"]


def _logged(path, names, fault="", seconds=0.0):
  """Returns constructors of environments that log their lifetimes."""
  return [functools.partial(faulty_envs.LogsLifetime, path, name, fault, seconds) for name in names]


# Batches.


def test_environments_are_divided_evenly_and_in_order(pool):
  with pool_lib.WorkerPool(3) as three:
    for workers, size in ((pool, 4), (pool, 5), (three, 8), (three, 2)):
      constructors = [faulty_envs.ProcessInfo] * size
      with batch_env.BatchEnv(constructors, workers) as batch:
        pids = batch.call("pid")
      assert [pid for pid in workers.pids if pid in pids] == list(dict.fromkeys(pids))
      shares = collections.Counter(pids)
      assert sorted(pids, key=pids.index) == pids
      assert max(shares.values()) <= -(-size // len(workers))
    assert len(three) == 3


@pytest.mark.parametrize("size", [0, 1, 2, 7, 9])
@pytest.mark.parametrize("num_workers", [1, 2, 3])
def test_split_evenly_covers_every_environment_once(size, num_workers):
  shares = pool_lib.split_evenly(size, num_workers)
  assert len(shares) == num_workers
  assert [row for rows in shares for row in range(rows.start, rows.stop)] == list(range(size))
  sizes = [rows.stop - rows.start for rows in shares]
  assert max(sizes) - min(sizes) <= 1


def test_pool_without_workers_is_refused():
  with pytest.raises(ValueError, match="at least 1. Received: 0"):
    pool_lib.WorkerPool(0)


def test_num_cores_counts_the_available_cores():
  allowed = os.sched_getaffinity(0)
  assert pool_lib.num_cores() == len(allowed)
  os.sched_setaffinity(0, {min(allowed)})
  try:
    assert pool_lib.num_cores() == 1
  finally:
    os.sched_setaffinity(0, allowed)


@pytest.mark.slow
def test_number_of_open_batches_is_limited():
  with pool_lib.WorkerPool(1) as workers:
    batches = []
    with pytest.raises(RuntimeError, match="254 batches"):
      for _ in range(256):
        batches.append(batch_env.BatchEnv([toy.Counter], workers))
    assert len(batches) == protocol.MAX_BLOCKS == 254
    for index, batch in enumerate(batches):
      batch.reset([index])
    # One byte selects the batch to step; each batch must have its own byte.
    for index, batch in enumerate(batches):
      assert interrupts.step(batch).next_observ.tolist() == [[index, 1]]
    assert batches[0].get("length") == batches[-1].get("length") == [3]


def test_batches_have_separate_memory_even_after_failed_constructors():
  # The next request must not use the descriptor of a failed request.
  faulty = functools.partial(toy.Faulty, "constructor")
  with pool_lib.WorkerPool(2) as workers:
    batches = []
    for length in (2, 3, 4):
      batches.append(batch_env.BatchEnv([functools.partial(toy.Counter, length)] * 3, workers))
      with pytest.raises(ValueError, match="faulty constructor"):
        batch_env.BatchEnv([toy.Counter, faulty], workers)
      for index, batch in enumerate(batches):
        batch.reset([index] * 3)
      for index, batch in enumerate(batches):
        assert interrupts.step(batch).next_observ.tolist() == [[index, 1]] * 3


@pytest.mark.slow
def test_closed_pools_leave_no_descriptors_open():
  gc.collect()
  before = len(os.listdir("/proc/self/fd"))
  with pool_lib.WorkerPool(2) as workers:
    with batch_env.BatchEnv([toy.Counter] * 3, workers) as batch:
      batch.reset()
    assert len(os.listdir("/proc/self/fd")) > before
  del batch, workers
  gc.collect()
  assert len(os.listdir("/proc/self/fd")) == before


def test_argument_that_cannot_be_pickled_leaves_the_workers_usable(pool):
  with (
    batch_env.BatchEnv([toy.Counter] * 2, pool) as one,
    batch_env.BatchEnv([toy.Counter] * 2, pool) as other,
  ):
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
      for _ in range(protocol.MAX_BLOCKS + 5):  # More than can be open at once.
        after = descriptors(workers)
      assert interrupts.step(other).reward.tolist() == [1, 1]
  # The only new descriptor of each worker is the shared memory of `other`.
  assert [now - then for now, then in zip(after, before)] == [1, 1]


# Interrupts.


@pytest.mark.fast_variants(1)
@pytest.mark.parametrize("fault", interrupts.HANGING)
def test_hanging_environment_delays_neither_interrupt_nor_close(fault):
  with interrupts.interrupted([toy.Counter, interrupts.HANGING[fault]], 2) as (workers, _):
    pids = workers.pids
    assert all(map(scripts.is_running, pids))
    start = time.monotonic()
    workers.close(patience=0.3)
    assert time.monotonic() - start < 10
    assert not any(map(scripts.is_running, pids))
    workers.close()


@pytest.mark.slow
def test_interrupt_ends_the_wait_for_a_dead_and_a_hanging_worker():
  with interrupts.interrupted([faulty_envs.DiesAfterStep, _HANG], 2, delay=1.0) as (workers, _):
    assert not scripts.is_running(workers.pids[0])
    workers.close(patience=0.1)


def test_pool_refuses_requests_after_an_interrupt():
  # Otherwise, the pool could take the late answer for that to the next step.
  with interrupts.interrupted([faulty_envs.Slow]) as (_, batch):
    time.sleep(0.5)  # The interrupted step ends during this time.
    with pytest.raises(RuntimeError):
      interrupts.step(batch)


@pytest.mark.slow
def test_batch_with_a_hanging_environment_closes_after_an_interrupt(deadline):
  with interrupts.interrupted([_HANG]) as (_, batch):
    deadline(20)
    batch.close()
    batch.close()


def test_batch_closes_its_environments_even_if_an_interrupt_is_pending(tmp_path):
  path = tmp_path / "log"
  with interrupts.pipe() as (read, write), pool_lib.WorkerPool(1, read) as workers:
    batch = batch_env.BatchEnv(_logged(path, "a", seconds=0.3), workers)
    os.write(write, b"\0")
    batch.close()
    assert rollouts.count_open(path) == {}


# Close.


def test_idle_workers_end_with_code_zero_and_close_can_be_repeated():
  workers = pool_lib.WorkerPool(2)
  pids = workers.pids
  batch = batch_env.BatchEnv([toy.Counter] * 3, workers)
  processes = [worker.process for worker in workers._workers]
  workers.close()
  assert [process.poll() for process in processes] == [0, 0]
  assert not any(map(scripts.is_running, pids))
  workers.close()
  assert len(workers) == 0 and workers.pids == []
  batch.close()
  with pytest.raises(RuntimeError, match="closed"):
    batch_env.BatchEnv([toy.Counter], workers)


@pytest.mark.slow
def test_batch_ends_workers_whose_environment_hangs_in_close(tmp_path):
  with pool_lib.WorkerPool(1) as workers:
    batch = batch_env.BatchEnv(
      [*_logged(tmp_path / "log", "a"), *_logged(tmp_path / "log", "a", "hang")], workers
    )
    pids = workers.pids
    batch.close()
    assert not any(map(scripts.is_running, pids))


def test_pool_ends_workers_whose_environment_hangs_in_close(tmp_path):
  with pool_lib.WorkerPool(1) as workers:
    batch_env.BatchEnv(
      [*_logged(tmp_path / "log", "a"), *_logged(tmp_path / "log", "a", "hang")], workers
    )
    pids = workers.pids
    workers.close(patience=0.3)
    assert not any(map(scripts.is_running, pids))


@pytest.mark.slow
def test_leaving_the_context_ends_hanging_workers():
  start = time.monotonic()
  with interrupts.interrupted([_HANG]) as (workers, _):
    pids = workers.pids
  assert time.monotonic() - start < 15
  assert not any(map(scripts.is_running, pids))


@pytest.mark.slow
def test_close_waits_for_environments_until_its_patience_ends(tmp_path):
  path = tmp_path / "log"
  with pool_lib.WorkerPool(1) as workers:
    batch_env.BatchEnv([*_logged(path, "a"), *_logged(path, "a", seconds=5)], workers)
    workers.close(patience=20)
  assert rollouts.count_open(path) == {}


@pytest.mark.fast_variants(1)
@pytest.mark.parametrize(
  "patience, constructor", [(3, toy.Counter), (0, interrupts.HANGING["sigterm"])]
)
def test_close_ends_the_workers_and_their_guards(patience, constructor):
  with interrupts.interrupted([toy.Counter, constructor, faulty_envs.Slow], 3) as (workers, _):
    pids = {pid for worker in workers.pids for pid in _with_descendants(worker)}
    assert pids > set(workers.pids)
    workers.close(patience)
    assert not scripts.wait_for_exit(pids, 5)


def _with_descendants(pid):
  """Returns a process and all its direct and indirect children."""
  children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
  return [pid] + [
    descendant for child in children.split() for descendant in _with_descendants(int(child))
  ]


def test_exception_in_the_context_closes_the_pool():
  with pytest.raises(KeyboardInterrupt):
    with pool_lib.WorkerPool(2) as workers:
      pids = workers.pids
      raise KeyboardInterrupt
  assert not any(map(scripts.is_running, pids))


def test_pool_closes_every_environment_of_every_batch(tmp_path):
  path = tmp_path / "log"
  with pool_lib.WorkerPool(2) as workers:
    for names in ("abc", "defg"):
      batch_env.BatchEnv(_logged(path, names), workers)
    assert len(rollouts.count_open(path)) == 7
  assert rollouts.count_open(path) == {}


def test_pool_closes_every_batch_even_if_one_raises(tmp_path):
  path = tmp_path / "log"
  with pool_lib.WorkerPool(1) as workers:
    for names, fault in (("ab", "close"), ("cd", "")):
      batch_env.BatchEnv([toy.Counter, *_logged(path, names, fault)], workers)
  assert rollouts.count_open(path) == {}


def test_other_child_processes_of_the_trainer_do_not_delay_close():
  workers = pool_lib.WorkerPool(1)
  child = subprocess.Popen(["sleep", "60"])
  try:
    process = workers._workers[0].process
    workers.close()
    assert process.poll() == 0
  finally:
    child.kill()
    child.wait()
