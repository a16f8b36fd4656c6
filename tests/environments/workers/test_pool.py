"""Worker processes are lean, tell why they end, and always do."""

import collections
import contextlib
import functools
import gc
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from agents.environments import batch_env
from agents.environments.workers import pool as pool_lib
from agents.environments.workers import process as process_lib
from agents.environments.workers import protocol
from tests import toy
from tests.environments import faulty_envs
from tests.environments import rollouts
from tests.environments import scripts

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="Looks into /proc.")

_STUCK = {
    "hang": functools.partial(toy.Faulty, "hang"),
    "spin": functools.partial(toy.Faulty, "spin"),
    "native": functools.partial(faulty_envs.Stuck, "native"),
    "deaf": functools.partial(faulty_envs.Stuck, "deaf")}


def _step(batch):
  return batch.step(np.zeros((len(batch), 1)))


@contextlib.contextmanager
def _pipe():
  read, write = os.pipe()
  try:
    yield read, write
  finally:
    os.close(read)
    os.close(write)


@contextlib.contextmanager
def _interrupted(constructors, amount=1, seconds=0.2):
  """Provide workers and a batch that was interrupted in its second step."""
  with _pipe() as (read, write), contextlib.ExitStack() as stack:
    workers = stack.enter_context(pool_lib.WorkerPool(amount, read))
    batch = batch_env.BatchEnv(constructors, workers)
    batch.reset()
    _step(batch)
    timer = threading.Timer(seconds, os.write, (write, b"\0"))
    timer.start()
    with pytest.raises(pool_lib.Interrupted, match="Interrupted"):
      _step(batch)
    timer.join()
    os.read(read, 1)
    yield workers, batch


# What they are like.


def test_environments_are_shared_evenly_and_in_order(pool):
  with pool_lib.WorkerPool(3) as three:
    for workers, size in ((pool, 4), (pool, 5), (three, 8), (three, 2)):
      with batch_env.BatchEnv([faulty_envs.Inside] * size, workers) as batch:
        pids = batch.call("pid")
      assert [pid for pid in workers.pids if pid in pids] == list(
          dict.fromkeys(pids))
      shares = collections.Counter(pids)
      assert sorted(pids, key=pids.index) == pids
      assert max(shares.values()) <= -(-size // len(workers))
    assert len(three) == 3


def test_needs_at_least_one():
  with pytest.raises(ValueError, match="at least 1. Received: 0"):
    pool_lib.WorkerPool(0)


def test_cores_are_those_this_process_may_use():
  allowed = os.sched_getaffinity(0)
  assert pool_lib.num_cores() == len(allowed)
  os.sched_setaffinity(0, {min(allowed)})
  try:
    assert pool_lib.num_cores() == 1
  finally:
    os.sched_setaffinity(0, allowed)


def test_variables_reach_them(monkeypatch):
  monkeypatch.setenv("FRUIT", "pear")
  monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
  with pool_lib.WorkerPool(1, variables={"TREE": "oak"}) as workers, \
      batch_env.BatchEnv([faulty_envs.Inside], workers) as batch:
    assert batch.call("variable", "FRUIT") == ["pear"]
    assert batch.call("variable", "TREE") == ["oak"]
    assert batch.call("variable", "OMP_NUM_THREADS") == ["1"]
  assert "TREE" not in os.environ


@pytest.mark.slow
def test_neither_tensorflow_nor_main_is_imported_again(tmp_path):
  # A second import of this script would start workers of its own.
  stdout, _ = scripts.run("""
import sys
print("main", flush=True)
import tensorflow
from agents.environments import batch_env
from agents.environments.workers import process as process_lib
from agents.environments.workers import pool as workers_lib
from tests.environments import faulty_envs as odd

class MineError(Exception):
  pass

class Mine(odd.Inside):
  def fail(self):
    raise MineError("of main")

with workers_lib.WorkerPool(2) as workers:
  with batch_env.BatchEnv([Mine] * 3, workers) as batch:
    print(batch.call("imported", "gymnasium"))
    print(batch.call("imported", "tensorflow"), "tensorflow" in sys.modules)
    try:
      batch.call("fail")
    except MineError as error:
      print(error)
""", tmp_path)
  assert stdout.splitlines() == [
      "main", "[True, True, True]", "[False, False, False] True", "of main"]


def test_modules_of_the_current_folder_are_not_taken_for_others(tmp_path):
  (tmp_path / "cwd").mkdir()
  for name in ("signal", "socket", "agents", "cloudpickle"):
    (tmp_path / "cwd" / f"{name}.py").write_text("raise Exception('wrong')")
  stdout, _ = scripts.run("""
from agents.environments import batch_env
from agents.environments.workers import process as process_lib
from agents.environments.workers import pool as workers_lib
from tests import toy

with workers_lib.WorkerPool(1) as workers:
  with batch_env.BatchEnv([toy.Counter], workers) as batch:
    print(batch.reset([5]))
""", tmp_path)
  assert stdout == "[[5. 0.]]\n"


def test_37_cheetahs_take_less_than_150_megabytes():
  constructor = rollouts.make_env("HalfCheetah-v5")
  with pool_lib.WorkerPool(1) as workers:
    rollouts.play([constructor] * 37, workers, steps=50)
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
      # Locks of this process's other libraries may have been there.
      assert "/dev/shm" not in maps.replace("/dev/shm/sem.", "")


def test_nothing_is_left_open():
  gc.collect()
  before = len(os.listdir("/proc/self/fd"))
  with pool_lib.WorkerPool(2) as workers:
    with batch_env.BatchEnv([toy.Counter] * 3, workers) as batch:
      batch.reset()
    assert len(os.listdir("/proc/self/fd")) > before
  del batch, workers
  gc.collect()
  assert len(os.listdir("/proc/self/fd")) == before


def test_batches_until_no_byte_is_left_for_another():
  with pool_lib.WorkerPool(1) as workers:
    batches = []
    with pytest.raises(RuntimeError, match="254 batches"):
      for _ in range(256):
        batches.append(batch_env.BatchEnv([toy.Counter], workers))
    assert len(batches) == protocol.BLOCKS == 254
    for number, batch in enumerate(batches):
      batch.reset([number])
    # Each is stepped by a byte of its own, and no byte asks for more.
    for number, batch in enumerate(batches):
      assert _step(batch).next_observ.tolist() == [[number, 1]]
    assert batches[0].get("length") == batches[-1].get("length") == [3]


def test_each_batch_has_memory_of_its_own_although_one_could_not_be_built():
  # What is sent along with a request stays with that request.
  faulty = functools.partial(toy.Faulty, "constructor")
  with pool_lib.WorkerPool(2) as workers:
    batches = []
    for length in (2, 3, 4):
      batches.append(batch_env.BatchEnv(
          [functools.partial(toy.Counter, length)] * 3, workers))
      with pytest.raises(ValueError, match="faulty constructor"):
        batch_env.BatchEnv([toy.Counter, faulty], workers)
      for number, batch in enumerate(batches):
        batch.reset([number] * 3)
      for number, batch in enumerate(batches):
        assert _step(batch).next_observ.tolist() == [[number, 1]] * 3


# How they end although nobody asked them to.


def test_ctrl_c_is_for_the_trainer_alone(pool):
  with batch_env.BatchEnv([toy.Counter] * 2, pool) as batch:
    batch.reset()
    for pid in pool.pids:
      os.kill(pid, signal.SIGINT)
    for _ in range(20):
      time.sleep(0.01)
      _step(batch)
    assert all(map(scripts.runs, pool.pids))


def test_ctrl_c_while_they_start(tmp_path):
  # A terminal sends it to the whole group of processes.
  stdout, stderr = scripts.run("""
import os, signal, time
from agents.environments import batch_env
from agents.environments.workers import pool as workers_lib
from tests import toy

signal.signal(signal.SIGINT, lambda *_: None)
with workers_lib.WorkerPool(2) as workers:
  for _ in range(50):
    os.killpg(0, signal.SIGINT)
    time.sleep(0.005)
  with batch_env.BatchEnv([toy.Counter] * 2, workers) as batch:
    print(batch.reset([5, 6]).tolist())
""", tmp_path)
  assert stdout == "[[5.0, 0.0], [6.0, 0.0]]\n"
  assert stderr == ""


@pytest.mark.parametrize("fault, message", [
    (functools.partial(toy.Faulty, "kill"), "SIGKILL.*out of memory"),
    (functools.partial(faulty_envs.Ends, signal.SIGSEGV), "SIGSEGV.*native code"),
    (functools.partial(faulty_envs.Ends, signal.SIGUSR1), "SIGUSR1"),
    (functools.partial(faulty_envs.Ends, code=7), "exited with code 7")],
                         ids=["kill", "segv", "usr1", "code"])
def test_death_in_a_step(fault, message):
  with pool_lib.WorkerPool(2) as workers:
    batch = batch_env.BatchEnv([toy.Counter, fault], workers)
    batch.reset()
    _step(batch)
    with pytest.raises(process_lib.WorkerDied, match=message) as caught:
      _step(batch)
    assert f"Worker 1 (process {workers.pids[1]})" in str(caught.value)


def test_death_in_a_constructor():
  here = os.getpid()
  def build():
    if os.getpid() != here:
      os._exit(7)
    return toy.Counter()
  with pool_lib.WorkerPool(1) as workers:
    with pytest.raises(process_lib.WorkerDied, match="exited with code 7"):
      batch_env.BatchEnv([build], workers)


@pytest.mark.parametrize("use", [
    _step, lambda batch: batch.reset(), lambda batch: batch.get("length"),
    lambda batch: batch.restore(batch.snapshot())],
                         ids=["step", "reset", "get", "restore"])
def test_death_between_two_requests(use):
  with pool_lib.WorkerPool(2) as workers:
    batch = batch_env.BatchEnv([toy.Counter] * 2, workers)
    batch.reset()
    os.kill(workers.pids[0], signal.SIGKILL)
    scripts.wait_for_ends(workers.pids[:1], 5)
    with pytest.raises(process_lib.WorkerDied, match="Worker 0.*SIGKILL"):
      use(batch)


def test_death_is_noticed_although_another_hangs():
  constructors = [_STUCK["hang"], functools.partial(toy.Faulty, "kill")]
  with pool_lib.WorkerPool(2) as workers:
    batch = batch_env.BatchEnv(constructors, workers)
    batch.reset()
    _step(batch)
    with pytest.raises(process_lib.WorkerDied, match="Worker 1.*SIGKILL"):
      _step(batch)
    workers.close(patience=0.1)


def test_death_behind_an_answer_is_told_by_the_next_step():
  # The first one answers at once and is killed while the other is stepping.
  constructors = [faulty_envs.DiesBehind, functools.partial(faulty_envs.Slow, 1.5)]
  with pool_lib.WorkerPool(2) as workers:
    batch = batch_env.BatchEnv(constructors, workers)
    batch.reset()
    _step(batch)
    start, busy = time.monotonic(), time.process_time()
    step = _step(batch)
    took, busy = time.monotonic() - start, time.process_time() - busy
    assert not scripts.runs(workers.pids[0])
    # All had answered. To wait for that was no work.
    assert step.next_observ[:, 1].tolist() == [2, 2]
    assert 1.5 <= took < 5
    assert busy < 0.4 * took
    with pytest.raises(process_lib.WorkerDied, match="Worker 0.*SIGKILL"):
      _step(batch)


@pytest.mark.slow
def test_death_behind_an_answer_that_is_not_read_yet():
  constructors = [functools.partial(faulty_envs.Slow, 2.5), faulty_envs.DiesBehind]
  with pool_lib.WorkerPool(2) as workers:
    batch = batch_env.BatchEnv(constructors, workers)
    batch.reset()
    _step(batch)
    assert _step(batch).next_observ[:, 1].tolist() == [2, 2]
    with pytest.raises(process_lib.WorkerDied, match="Worker 1.*SIGKILL"):
      _step(batch)


def test_death_behind_an_answer_although_another_hangs():
  # Nothing comes any more; an interruption still does.
  with _interrupted([faulty_envs.DiesBehind, _STUCK["hang"]], 2,
                    seconds=1.0) as (workers, _):
    assert not scripts.runs(workers.pids[0])
    workers.close(patience=0.1)


def test_death_behind_an_answer_does_not_hide_another():
  constructors = [faulty_envs.DiesBehind, functools.partial(faulty_envs.Slow, 1.0, "kill")]
  with pool_lib.WorkerPool(2) as workers:
    batch = batch_env.BatchEnv(constructors, workers)
    batch.reset()
    _step(batch)
    with pytest.raises(process_lib.WorkerDied, match="Worker 1.*SIGKILL"):
      _step(batch)


def test_death_of_a_worker_without_environments_is_none_of_a_batch():
  with pool_lib.WorkerPool(3) as workers:
    batch = batch_env.BatchEnv(
        [toy.Counter, functools.partial(faulty_envs.Slow, 1.5)], workers)
    used = set(
        worker.process.pid for worker, _ in batch._turns.groups[0].block.shares)
    unused, = set(workers.pids) - used
    os.kill(unused, signal.SIGKILL)
    scripts.wait_for_ends([unused], 5)
    batch.reset()
    _step(batch)
    start, busy = time.monotonic(), time.process_time()
    assert _step(batch).next_observ[:, 1].tolist() == [2, 2]
    busy = time.process_time() - busy
    assert busy < 0.4 * (time.monotonic() - start)


@pytest.mark.slow
def test_death_is_noticed_behind_a_death_and_a_child_that_lives():
  constructors = [faulty_envs.DiesBehind, functools.partial(faulty_envs.Forking, 1.0)]
  with pool_lib.WorkerPool(2) as workers:
    batch = batch_env.BatchEnv(constructors, workers)
    batch.reset()
    child = batch.get("child")[1]
    try:
      _step(batch)
      with pytest.raises(process_lib.WorkerDied, match="Worker 1.*SIGKILL"):
        _step(batch)
    finally:
      os.kill(child, signal.SIGKILL)


def test_the_others_close_their_environments_after_a_death(tmp_path):
  path = tmp_path / "diary"
  constructors = [functools.partial(faulty_envs.Diary, path, "a"),
                  functools.partial(toy.Faulty, "kill")]
  with pytest.raises(process_lib.WorkerDied):
    with pool_lib.WorkerPool(2) as workers, \
        batch_env.BatchEnv(constructors, workers) as batch:
      batch.reset()
      _step(batch)
      _step(batch)
  assert rollouts.not_closed(path) == {}


# How they end because somebody asked them to.


@pytest.mark.parametrize("fault", _STUCK)
def test_interruption_and_close_although_one_hangs(fault):
  with _interrupted([toy.Counter, _STUCK[fault]], 2) as (workers, _):
    pids = workers.pids
    assert all(map(scripts.runs, pids))
    start = time.monotonic()
    workers.close(patience=0.3)
    assert time.monotonic() - start < 10
    assert not any(map(scripts.runs, pids))
    workers.close()


@pytest.mark.slow
def test_a_batch_closes_although_its_environment_hangs(deadline):
  with _interrupted([_STUCK["hang"]]) as (_, batch):
    deadline(20)
    batch.close()
    batch.close()


def test_a_batch_closes_although_an_interruption_is_pending(tmp_path):
  path = tmp_path / "diary"
  with _pipe() as (read, write), pool_lib.WorkerPool(1, read) as workers:
    batch = batch_env.BatchEnv(
        [functools.partial(faulty_envs.Diary, path, "a", seconds=0.3)], workers)
    os.write(write, b"\0")
    batch.close()
    assert rollouts.not_closed(path) == {}


def test_late_answers_are_not_taken_for_those_of_another_step():
  with _interrupted([faulty_envs.Slow]) as (_, batch):
    time.sleep(0.5)  # The second step has been answered by now.
    with pytest.raises(RuntimeError):
      _step(batch)


@pytest.mark.slow
def test_a_batch_closes_although_its_environment_hangs_then(tmp_path):
  with pool_lib.WorkerPool(1) as workers:
    batch = batch_env.BatchEnv([functools.partial(
        faulty_envs.Diary, tmp_path / "diary", "a", fault)
                                for fault in ("", "hang")], workers)
    pids = workers.pids
    batch.close()
    assert not any(map(scripts.runs, pids))


@pytest.mark.slow
def test_leaving_the_context_ends_a_worker_that_hangs():
  start = time.monotonic()
  with _interrupted([_STUCK["hang"]]) as (workers, _):
    pids = workers.pids
  assert time.monotonic() - start < 15
  assert not any(map(scripts.runs, pids))


def test_closing_an_environment_that_hangs_then(tmp_path):
  with pool_lib.WorkerPool(1) as workers:
    batch_env.BatchEnv([functools.partial(
        faulty_envs.Diary, tmp_path / "diary", "a", fault)
                        for fault in ("", "hang")], workers)
    pids = workers.pids
    workers.close(patience=0.3)
    assert not any(map(scripts.runs, pids))


def test_idle_workers_close_at_once_and_again():
  workers = pool_lib.WorkerPool(2)
  pids = workers.pids
  batch = batch_env.BatchEnv([toy.Counter] * 3, workers)
  # Not even asked to terminate: their exit code says so.
  processes = [worker.process for worker in workers._workers]
  workers.close()
  assert [process.returncode for process in processes] == [0, 0]
  assert not any(map(scripts.runs, pids))
  workers.close()
  assert len(workers) == 0 and workers.pids == []
  batch.close()
  with pytest.raises(RuntimeError, match="closed"):
    batch_env.BatchEnv([toy.Counter], workers)


@pytest.mark.slow
def test_patience_lasts_as_long_as_it_is_told_to(tmp_path):
  path = tmp_path / "diary"
  with pool_lib.WorkerPool(1) as workers:
    batch_env.BatchEnv([functools.partial(faulty_envs.Diary, path, "a", seconds=seconds)
                        for seconds in (0, 5)], workers)
    workers.close(patience=20)
  assert rollouts.not_closed(path) == {}


def test_nothing_is_left_of_them():
  for patience, constructor in ((3, toy.Counter), (0, _STUCK["deaf"])):
    with _interrupted([toy.Counter, constructor, faulty_envs.Slow], 3) as (workers, _):
      family = {pid for worker in workers.pids for pid in _family(worker)}
      assert family >= set(workers.pids)
      workers.close(patience)
      assert not scripts.wait_for_ends(family, 5)


def _family(pid):
  """Return a process and all processes below it."""
  children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
  return [pid] + [below for child in children.split()
                  for below in _family(int(child))]


def test_errors_in_the_context_close_them():
  with pytest.raises(KeyboardInterrupt):
    with pool_lib.WorkerPool(2) as workers:
      pids = workers.pids
      raise KeyboardInterrupt
  assert not any(map(scripts.runs, pids))


def test_every_environment_of_every_batch_is_closed(tmp_path):
  path = tmp_path / "diary"
  with pool_lib.WorkerPool(2) as workers:
    for names in ("abc", "defg"):
      batch_env.BatchEnv([functools.partial(faulty_envs.Diary, path, name)
                          for name in names], workers)
    assert len(rollouts.not_closed(path)) == 7
  assert rollouts.not_closed(path) == {}


def test_every_batch_is_closed_although_one_fails_to(tmp_path):
  path = tmp_path / "diary"
  with pool_lib.WorkerPool(1) as workers:
    for names, fault in (("ab", "close"), ("cd", "")):
      batch_env.BatchEnv([toy.Counter] + [functools.partial(
          faulty_envs.Diary, path, name, fault) for name in names], workers)
  assert rollouts.not_closed(path) == {}


# How they end with their trainer.


_TRAINER = """
import functools, os, signal, sys, threading, time
import numpy as np
from agents.environments import batch_env
from agents.environments.workers import process as process_lib
from agents.environments.workers import pool as workers_lib
from tests import toy
from tests.environments import faulty_envs as odd

constructors = {constructors}
read, write = os.pipe()
workers = workers_lib.WorkerPool(len(constructors), read)
batch = batch_env.BatchEnv(constructors, workers)
batch.reset()
batch.step(np.zeros((len(batch), 1)))
if len(batch) > 1:
  threading.Timer(0.5, os.write, (write, b" ")).start()
  try:
    batch.step(np.zeros((len(batch), 1)))
  except workers_lib.Interrupted:
    pass
print(*workers.pids, flush=True)
{end}
"""


def _pids(trainer):
  return [int(pid) for pid in trainer.stdout.readline().split()]


@pytest.fixture(scope="module")
def orphans(tmp_path_factory):
  """What still runs 5 seconds after the SIGKILL of a trainer, by fault."""
  diary = str(tmp_path_factory.mktemp("diary") / "diary")
  constructors = {
      "idle": "functools.partial(toy.Counter, 9)",
      "hang": "functools.partial(toy.Faulty, 'hang')",
      "spin": "functools.partial(toy.Faulty, 'spin')",
      "native": "functools.partial(odd.Stuck, 'native')",
      "close": f"functools.partial(odd.Diary, {diary!r}, 'a', 'hang')"}
  code = _TRAINER.format(
      constructors=f"[{', '.join(constructors.values())}]",
      end="time.sleep(1000)")
  trainer = scripts.start(code, tmp_path_factory.mktemp("trainer"))
  try:
    pids = dict(zip(constructors, _pids(trainer)))
  finally:
    trainer.kill()
    trainer.wait()
    trainer.stdout.close()  # Workers may hold the other ends.
    trainer.stderr.close()
  assert len(pids) == len(constructors)
  left = scripts.wait_for_ends(pids.values(), 5)
  for pid in left:
    os.kill(pid, signal.SIGKILL)
  return {fault: pid in left for fault, pid in pids.items()}


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["idle", "hang", "spin", "native", "close"])
def test_sigkill_of_the_trainer_ends_a_worker(orphans, fault):
  assert not orphans[fault]


@pytest.mark.parametrize("end", [
    "pass", "sys.exit(3)", "os._exit(3)", "raise ValueError",
    "os.kill(os.getpid(), signal.SIGTERM)"])
def test_any_end_of_the_trainer_ends_its_workers(end, tmp_path):
  trainer = scripts.start(
      _TRAINER.format(constructors="[toy.Counter]", end=end), tmp_path)
  try:
    pids = _pids(trainer)
    trainer.communicate(timeout=20)
  finally:
    trainer.kill()
  assert len(pids) == 1
  assert not scripts.wait_for_ends(pids, 5)


def test_other_children_of_the_trainer_do_not_keep_a_worker_alive():
  workers = pool_lib.WorkerPool(1)
  child = subprocess.Popen(["sleep", "60"])
  try:
    process = workers._workers[0].process
    workers.close()
    assert process.returncode == 0
  finally:
    child.kill()
    child.wait()


@pytest.mark.slow
def test_death_is_noticed_although_a_child_of_the_environment_lives():
  with pool_lib.WorkerPool(1) as workers:
    batch = batch_env.BatchEnv([faulty_envs.Forking], workers)
    batch.reset()
    child, = batch.get("child")
    try:
      _step(batch)
      with pytest.raises(process_lib.WorkerDied, match="SIGKILL"):
        _step(batch)
    finally:
      os.kill(child, signal.SIGKILL)


def test_what_cannot_be_pickled_harms_nobody(pool):
  with batch_env.BatchEnv([toy.Counter] * 2, pool) as one, \
      batch_env.BatchEnv([toy.Counter] * 2, pool) as other:
    for batch in (one, other):
      batch.reset()
    with pytest.raises(TypeError, match="cannot pickle"):
      one.set("length", [3, threading.Lock()])
    assert one.get("length") == other.get("length") == [3, 3]
    assert _step(one).reward.tolist() == _step(other).reward.tolist() == [1, 1]


def test_nothing_is_left_of_a_closed_batch_in_the_workers():
  def opened(workers):
    with batch_env.BatchEnv([toy.Counter] * 2, workers) as batch:
      batch.reset()
    return [len(os.listdir(f"/proc/{pid}/fd")) for pid in workers.pids]
  with pool_lib.WorkerPool(2) as workers:
    before = opened(workers)
    with batch_env.BatchEnv([toy.Counter] * 2, workers) as other:
      other.reset()
      for _ in range(protocol.BLOCKS + 5):  # More than can be open.
        after = opened(workers)
      assert _step(other).reward.tolist() == [1, 1]
  assert [now - then for now, then in zip(after, before)] == [1, 1]


def test_who_has_a_timeout_for_all_sockets_has_workers_that_wait():
  before = socket.getdefaulttimeout()
  socket.setdefaulttimeout(30)
  try:
    with pool_lib.WorkerPool(1) as workers, \
        batch_env.BatchEnv([toy.Counter], workers) as batch:
      batch.reset()
      time.sleep(0.2)
      assert _step(batch).reward.tolist() == [1]
  finally:
    socket.setdefaulttimeout(before)


def test_what_is_no_text_in_the_path_is_ignored(monkeypatch, tmp_path):
  monkeypatch.setattr(sys, "path", [*sys.path, tmp_path])
  with pool_lib.WorkerPool(1) as workers, \
      batch_env.BatchEnv([toy.Counter], workers) as batch:
    batch.reset()
