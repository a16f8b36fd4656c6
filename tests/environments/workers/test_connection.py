"""The trainer detects deaths of workers while it waits for answers."""

import functools
import os
import signal
import socket
import sys
import time

import pytest

from agents.environments import batch_env
from agents.environments.workers import connection
from agents.environments.workers import pool as pool_lib
from agents.environments.workers import process as process_lib
from tests import toy
from tests.environments import faulty_envs, scripts
from tests.environments.workers import interrupts

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="The tests read /proc.")


@pytest.mark.fast_variants(2)
@pytest.mark.parametrize(
  "use",
  [
    interrupts.step,
    lambda batch: batch.reset(),
    lambda batch: batch.get("length"),
    lambda batch: batch.restore(batch.snapshot()),
  ],
  ids=["step", "reset", "get", "restore"],
)
def test_death_between_two_requests_is_reported_by_the_next_one(use):
  with pool_lib.WorkerPool(2) as workers:
    batch = batch_env.BatchEnv([toy.Counter] * 2, workers)
    batch.reset()
    os.kill(workers.pids[0], signal.SIGKILL)
    scripts.wait_for_exit(workers.pids[:1], 5)
    with pytest.raises(process_lib.WorkerDied, match="Worker 0.*SIGKILL"):
      use(batch)


@pytest.mark.slow
def test_short_steps_send_no_sign_of_life(monkeypatch):
  answers = []
  original = connection.WorkerConnection.receive

  def receive(self):
    answers.append(original(self))
    return answers[-1]

  monkeypatch.setattr(connection.WorkerConnection, "receive", receive)
  with pool_lib.WorkerPool(1) as workers:
    batch = interrupts.batch_after_one_step([faulty_envs.FewSignsOfLife], workers)
    time.sleep(1.1)  # The next step resets later than a second after this one.
    interrupts.step(batch)
  assert len(answers) >= 3 and None not in answers


@pytest.mark.slow
def test_death_is_noticed_while_another_worker_hangs():
  constructors = [interrupts.HANGING["hang"], functools.partial(toy.Faulty, "kill")]
  with pool_lib.WorkerPool(2) as workers:
    batch = interrupts.batch_after_one_step(constructors, workers)
    with pytest.raises(process_lib.WorkerDied, match="Worker 1.*SIGKILL"):
      interrupts.step(batch)
    workers.close(patience=0.1)


@pytest.mark.slow
def test_death_after_an_answer_is_reported_by_the_next_step():
  # Worker 0 answers at once and dies while worker 1 is still stepping.
  constructors = [faulty_envs.DiesAfterStep, functools.partial(faulty_envs.Slow, 1.5)]
  with pool_lib.WorkerPool(2) as workers:
    batch = interrupts.batch_after_one_step(constructors, workers)
    start, cpu_start = time.monotonic(), time.process_time()
    step = interrupts.step(batch)
    seconds = time.monotonic() - start
    cpu_seconds = time.process_time() - cpu_start
    assert not scripts.is_running(workers.pids[0])
    assert step.next_observ[:, 1].tolist() == [2, 2]
    assert 1.5 <= seconds < 5
    assert cpu_seconds < 0.4 * seconds, "The trainer did not sleep."
    with pytest.raises(process_lib.WorkerDied, match="Worker 0.*SIGKILL"):
      interrupts.step(batch)


@pytest.mark.slow
def test_answer_that_arrived_before_the_death_of_its_worker_is_used():
  constructors = [functools.partial(faulty_envs.Slow, 2.5), faulty_envs.DiesAfterStep]
  with pool_lib.WorkerPool(2) as workers:
    batch = interrupts.batch_after_one_step(constructors, workers)
    assert interrupts.step(batch).next_observ[:, 1].tolist() == [2, 2]
    with pytest.raises(process_lib.WorkerDied, match="Worker 1.*SIGKILL"):
      interrupts.step(batch)


@pytest.mark.slow
def test_death_after_an_answer_does_not_hide_another_death():
  constructors = [faulty_envs.DiesAfterStep, functools.partial(faulty_envs.Slow, 1.0, "kill")]
  with pool_lib.WorkerPool(2) as workers:
    batch = interrupts.batch_after_one_step(constructors, workers)
    with pytest.raises(process_lib.WorkerDied, match="Worker 1.*SIGKILL"):
      interrupts.step(batch)


@pytest.mark.slow
def test_death_of_a_worker_without_environments_does_not_affect_a_batch():
  with pool_lib.WorkerPool(3) as workers:
    batch = batch_env.BatchEnv([toy.Counter, functools.partial(faulty_envs.Slow, 1.5)], workers)
    used = {worker.process.pid for worker in batch._block.shares}
    (unused,) = set(workers.pids) - used
    os.kill(unused, signal.SIGKILL)
    scripts.wait_for_exit([unused], 5)
    batch.reset()
    interrupts.step(batch)
    start, cpu_start = time.monotonic(), time.process_time()
    assert interrupts.step(batch).next_observ[:, 1].tolist() == [2, 2]
    cpu_seconds = time.process_time() - cpu_start
    assert cpu_seconds < 0.4 * (time.monotonic() - start)


@pytest.mark.slow
@pytest.mark.parametrize(
  "constructors",
  [[faulty_envs.Forking], [faulty_envs.DiesAfterStep, functools.partial(faulty_envs.Forking, 1.0)]],
  ids=["alone", "after_another_death"],
)
def test_death_is_noticed_although_a_child_of_the_environment_continues(constructors):
  with pool_lib.WorkerPool(len(constructors)) as workers:
    batch = batch_env.BatchEnv(constructors, workers)
    batch.reset()
    child = batch.get("child")[-1]
    try:
      interrupts.step(batch)
      last = len(constructors) - 1
      with pytest.raises(process_lib.WorkerDied, match=f"Worker {last}.*SIGKILL"):
        interrupts.step(batch)
    finally:
      os.kill(child, signal.SIGKILL)


def test_default_timeout_of_sockets_does_not_affect_idle_workers():
  before = socket.getdefaulttimeout()
  socket.setdefaulttimeout(0.1)
  try:
    with pool_lib.WorkerPool(1) as workers, batch_env.BatchEnv([toy.Counter], workers) as batch:
      batch.reset()
      time.sleep(0.3)
      assert interrupts.step(batch).reward.tolist() == [1]
  finally:
    socket.setdefaulttimeout(before)


def test_resets_of_a_worker_continue_while_the_trainer_waits_for_another(tmp_path, monkeypatch):
  monkeypatch.setattr(pool_lib, "_SECONDS_TO_CHECK", 0.1)
  # Each reset sends a sign of life, and a socket has room for less than 300.
  make = functools.partial(faulty_envs.WaitsForReset, str(tmp_path / "reset"))
  idle = [functools.partial(faulty_envs.WaitsForReset, None, False)] * 399
  constructors = [functools.partial(make, True), *idle, *idle, functools.partial(make, False)]
  with pool_lib.WorkerPool(2) as workers, batch_env.BatchEnv(constructors, workers) as batch:
    assert len(batch.reset()) == 800
