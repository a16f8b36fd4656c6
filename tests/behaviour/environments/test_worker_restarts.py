"""Workers that die or hang are replaced, and nothing else changes."""

import contextlib
import functools
import gc
import os
import re
import signal
import sys
import threading

import numpy as np
import pytest

from agents.environments import batch_env
from agents.environments import group as group_lib
from agents.environments.data import failure_budget
from agents.environments.workers import pool
from agents.environments.workers import process
from tests import toy
from tests.environments import faulty_envs
from tests.environments import rollouts
from tests.environments import scripts

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="Looks into /proc.")


def _workers(amount):
  return pool.WorkerPool(amount, incidents=failure_budget.FailureBudget(100))


def _kill(workers, number):
  os.kill(workers.pids[number], signal.SIGKILL)


def _roll_and_kill(batch, workers, actions, at):
  """Play while workers are killed: numbers by the step before which they are.
  """
  steps = []
  for number, action in enumerate(actions):
    for worker in at.get(number, ()):
      _kill(workers, worker)
    steps += rollouts.roll(batch, [action])
  return steps


@pytest.mark.parametrize("groups", [
    pytest.param(1, marks=pytest.mark.slow), 2])
@pytest.mark.parametrize("name", [
    "toy", *(pytest.param(name, marks=pytest.mark.slow) for name in (
        "hopper", "cheetah", "uneven", "frozen_lake", "wrapped"))])
def test_same_bits_whenever_workers_die(name, groups):
  constructors = rollouts.BATCHES[name][:4]
  first, steps = rollouts.play(constructors, None, seed=3, groups=groups)
  with _workers(2) as workers:
    with batch_env.BatchEnv(constructors, workers, 3, groups) as batch:
      _kill(workers, 1)
      assert batch.reset().tobytes() == first.tobytes()
      actions = rollouts.draw_actions(batch.action_space, 4, 60)
      rollouts.assert_same_bits(_roll_and_kill(
          batch, workers, actions, {0: [0], 7: [1], 20: [0, 1], 59: [1]}),
                                steps)
      told = batch.incidents.take()
      assert len(told) == 6
      assert all("SIGKILL" in incident.text for incident in told)
      assert not batch.incidents.take()


@pytest.mark.slow
@pytest.mark.parametrize("groups", [1, 2])
def test_same_bits_although_a_worker_dies_in_the_middle_of_steps(groups):
  constructors = [rollouts.make_env("Humanoid-v5")] * 8
  _, steps = rollouts.play(constructors, None, steps=150, groups=groups)
  with _workers(2) as workers, \
      batch_env.BatchEnv(constructors, workers, 0, groups) as batch:
    batch.reset()
    actions = rollouts.draw_actions(batch.action_space, 8, 150)
    done = threading.Event()
    def kill_now_and_then():
      number = 0
      while not done.wait(0.15 + 0.0137 * number):
        with contextlib.suppress(ProcessLookupError):
          _kill(workers, number % 2)
        number += 1
    thread = threading.Thread(target=kill_now_and_then)
    thread.start()
    try:
      rolled, told = [], []
      for action in actions:
        rolled += rollouts.roll(batch, [action])
        told += workers.incidents.take()
        if len(told) > 4:
          done.set()
    finally:
      done.set()
      thread.join()
    rollouts.assert_same_bits(rolled, steps)
    assert told


def test_same_bits_of_environments_that_wait():
  constructors = [rollouts.make_env(
      "tests.toy:Uneven", kwargs={"most": 4})] * 5
  actions = np.zeros((30, 5, 1), np.float32)
  with batch_env.BatchEnv(constructors) as batch:
    batch.reset()
    steps = rollouts.roll_with_pauses(batch, actions)
  with _workers(2) as workers, \
      batch_env.BatchEnv(constructors, workers) as batch:
    batch.reset()
    killed = iter(range(1000))
    step = batch.step
    def step_and_kill(*args):
      if next(killed) % 7 == 3:
        _kill(workers, 0)
      return step(*args)
    batch.step = step_and_kill
    rollouts.assert_same_bits(
        rollouts.roll_with_pauses(batch, actions), steps)
    assert len(workers.incidents.take()) == 4


@pytest.mark.parametrize("use", [
    pytest.param(lambda batch, _: batch.reset().tolist(), id="reset",
                 marks=pytest.mark.slow),
    pytest.param(lambda batch, _: batch.get("observation_space"), id="get",
                 marks=pytest.mark.slow),
    pytest.param(lambda batch, before: batch.restore(before), id="restore")])
def test_any_other_request_survives_a_death(use):
  constructors = [rollouts.make_env("Hopper-v5")] * 3
  results = []
  for kill in (False, True):
    with _workers(2) as workers, \
        batch_env.BatchEnv(constructors, workers) as batch:
      actions = rollouts.draw_actions(batch.action_space, 3, 20)
      batch.reset()
      rollouts.roll(batch, actions[:5])
      before = batch.snapshot()
      rollouts.roll(batch, actions[5:10])
      if kill:
        _kill(workers, 0)
      answer = use(batch, before)
      assert len(workers.incidents.take()) == kill
      results.append((answer, rollouts.roll(batch, actions[10:])))
  (answer, steps), (other_answer, other_steps) = results
  assert answer == other_answer
  rollouts.assert_same_bits(steps, other_steps)


def test_all_batches_of_a_worker_are_rebuilt_and_new_ones_can_follow():
  def play(kill):
    with _workers(2) as workers:
      one = batch_env.BatchEnv([toy.Counter] * 3, workers)
      other = batch_env.BatchEnv(
          [rollouts.make_env("Hopper-v5")] * 3, workers, groups=3)
      closed = batch_env.BatchEnv([toy.Counter], workers)
      closed.close()
      batches, observ = [one, other], []
      for batch in batches:
        observ.append(batch.reset())
      for number in range(5):
        if kill and number == 2:
          _kill(workers, 0)
        for batch in batches:
          observ.append(batch.step(rollouts.draw_actions(
              batch.action_space, 3, 1, number)[0]).next_observ)
      if kill:
        _kill(workers, 1)
      new = batch_env.BatchEnv([toy.Counter] * 2, workers)
      observ.append(new.reset())
      if kill:
        assert len(workers.incidents.take()) == 2
      return [array.tobytes() for array in observ]
  assert play(kill=False) == play(kill=True)


@pytest.mark.slow
@pytest.mark.parametrize("fault, told", [
    ("hang", "no answer for 1 seconds.*It was here:.*faulty_envs.py.*in step"),
    ("stop", "no answer for 1 seconds"),
    ("crash", "SIGSEGV.*native code.*It was here:.*faulty_envs.py.*in step")])
def test_a_fault_that_does_not_come_again_changes_nothing(
    fault, told, tmp_path):
  path = str(tmp_path / "fault")
  _, steps = rollouts.play([toy.Counter] * 3, None, 8)
  with pool.WorkerPool(
      2, incidents=failure_budget.FailureBudget(1), timeout=1.0) as workers:
    pids = workers.pids
    _, faulty = rollouts.play(
        [toy.Counter, functools.partial(faulty_envs.Once, path, fault), toy.Counter],
        workers, 8)
    rollouts.assert_same_bits(faulty, steps)
    reason, = (text.replace("\n", " ") for text, _ in workers.incidents.take())
    assert reason.startswith("Worker ")
    assert re.search(told, reason)
    assert len(set(pids) & set(workers.pids)) == 1
  assert not scripts.wait_for_ends(pids, 5)


@pytest.mark.slow
def test_same_bits_although_a_worker_is_stopped_within_an_answer(
    tmp_path, monkeypatch):
  monkeypatch.setattr(pool, "_SECONDS_TO_OPEN", 5.0)
  _, steps = rollouts.play([lambda: toy.Counter(2)] * 2, None, 8)
  with pool.WorkerPool(
      1, incidents=failure_budget.FailureBudget(1), timeout=1.0) as workers:
    _, faulty = rollouts.play([functools.partial(
        faulty_envs.StopsWithinAnswer, str(tmp_path / "fault"))] * 2, workers, 8)
    rollouts.assert_same_bits(faulty, steps)
    (reason, _), = workers.incidents.take()
    assert "no answer for 5 seconds" in reason


@pytest.mark.slow
def test_a_worker_that_does_not_read_what_it_is_asked_is_replaced(monkeypatch):
  monkeypatch.setattr(pool, "_SECONDS_TO_OPEN", 5.0)
  with pool.WorkerPool(
      1, incidents=failure_budget.FailureBudget(1), timeout=1.0) as workers, \
      batch_env.BatchEnv([toy.Counter], workers) as batch:
    os.kill(workers.pids[0], signal.SIGSTOP)
    assert batch.call("add", np.ones(10**6), 1)[0].sum() == 2e6
    (reason, _), = workers.incidents.take()
    assert "no answer for 5 seconds" in reason


@pytest.mark.slow
def test_a_worker_that_pauses_before_it_reads_is_waited_for():
  with pool.WorkerPool(1, timeout=60.0) as workers, \
      batch_env.BatchEnv([toy.Counter], workers) as batch:
    os.kill(workers.pids[0], signal.SIGSTOP)
    timer = threading.Timer(3.0, os.kill, (workers.pids[0], signal.SIGCONT))
    timer.start()
    assert batch.call("add", np.ones(10**6), 1)[0].sum() == 2e6
    timer.join()


@pytest.mark.slow
def test_a_worker_that_stops_while_it_replays_is_soon_noticed(
    tmp_path):
  with pool.WorkerPool(
      1, incidents=failure_budget.FailureBudget(2), timeout=1.0) as workers, \
      batch_env.BatchEnv([functools.partial(
          faulty_envs.StopsReplay, str(tmp_path / "fault"))], workers) as batch:
    batch.reset()
    for _ in range(40):
      step = batch.step(np.zeros((1, 1)))
    assert step.next_observ[0, 1] == 40
    first, second = (text for text, _ in workers.incidents.take())
    assert "SIGKILL" in first and "no answer for 1 seconds" in second


def test_what_environments_have_started_ends_with_a_worker_that_is_killed(
    tmp_path):
  path = tmp_path / "pid"
  with pool.WorkerPool(
      1, incidents=failure_budget.FailureBudget(1), timeout=1.0) as workers, \
      batch_env.BatchEnv([functools.partial(
          faulty_envs.HangsWithServer, str(path))], workers) as batch:
    batch.reset()
    server = int(path.read_text())
    batch.step(np.zeros((1, 1)))
    assert len(workers.incidents.take()) == 1
    assert not scripts.wait_for_ends([server], 5)


def test_a_signal_to_all_processes_of_a_run_is_the_trainers():
  with pool.WorkerPool(2) as workers, \
      batch_env.BatchEnv([toy.Counter] * 2, workers) as batch:
    batch.reset()
    for pid in workers.pids:
      os.kill(pid, signal.SIGTERM)
    assert batch.step(np.zeros((2, 1))).next_observ[:, 1].tolist() == [1, 1]


def test_what_environments_have_started_can_be_terminated():
  with pool.WorkerPool(1) as workers, \
      batch_env.BatchEnv([faulty_envs.Terminates], workers) as batch:
    for _ in range(20):
      assert batch.call("codes") == [[-signal.SIGTERM] * 2]


def test_a_fault_that_comes_again_is_an_error_in_the_end():
  with pool.WorkerPool(
      2, incidents=failure_budget.FailureBudget(3)) as workers:
    batch = batch_env.BatchEnv(
        [toy.Counter, functools.partial(toy.Faulty, "kill")], workers)
    batch.reset()
    batch.step(np.zeros((2, 1)))
    with pytest.raises(process.WorkerDied, match="Worker 1.*SIGKILL"):
      batch.step(np.zeros((2, 1)))
    told = workers.incidents.take()
    assert len(told) == 3
    for _, (broken,) in (*told, workers.incidents.fatal):
      assert (broken.environment, len(broken.action)) == (1, 2)
    with pytest.raises(RuntimeError, match="died or was given up"):
      batch.reset()


@pytest.mark.parametrize("groups", [
    pytest.param(1, marks=pytest.mark.slow), 2])
def test_what_a_worker_may_have_died_of_is_kept(groups):
  constructors = [rollouts.make_env("Hopper-v5")] * 8
  with _workers(2) as workers, \
      batch_env.BatchEnv(constructors, workers, 3, groups) as batch:
    batch.reset()
    actions = rollouts.draw_actions(batch.action_space, 8, 40)
    rollouts.roll(batch, actions[:30])
    before = batch.snapshot()
    _kill(workers, 0)
    rollouts.roll(batch, actions[30:31])
    (_, broken), = workers.incidents.take()
  # Its share of every group; a group that has not begun its step is not to
  # blame.
  assert 2 <= len(broken) <= 4
  for one in broken:
    index = one.environment
    assert index % (8 // groups) // (4 // groups) == (
        index // 4 % 2 if groups == 2 else 0)
    assert one.seed == before.seed[index]
    np.testing.assert_array_equal(
        one.action, [*before.episode_actions(index), actions[30, index]])


def test_without_restarts_a_hang_is_an_error():
  with pool.WorkerPool(1, timeout=1.0) as workers:
    batch = batch_env.BatchEnv([functools.partial(toy.Faulty, "spin")], workers)
    batch.reset()
    batch.step(np.zeros((1, 1)))
    with pytest.raises(process.WorkerDied, match="(?s)here:.*toy.py"):
      batch.step(np.zeros((1, 1)))
    assert workers.incidents.take() == []


def test_restarts_of_long_ago_do_not_count(monkeypatch):
  monkeypatch.setattr(failure_budget, "WINDOW", 0.0)
  with pool.WorkerPool(
      1, incidents=failure_budget.FailureBudget(1)) as workers, \
      batch_env.BatchEnv([toy.Counter], workers) as batch:
    batch.reset()
    for _ in range(3):
      _kill(workers, 0)
      batch.step(np.zeros((1, 1)))
    assert len(workers.incidents.take()) == 3


def test_what_replay_does_not_rebuild_is_an_error():
  with _workers(1) as workers:
    batch = batch_env.BatchEnv([faulty_envs.Forgetful] * 2, workers)
    batch.reset()
    batch.step(np.zeros((2, 1)))
    _kill(workers, 0)
    with pytest.raises(group_lib.ReplayError, match="not deterministic"):
      batch.step(np.zeros((2, 1)))


def test_an_environment_that_can_not_be_built_again_is_an_error(tmp_path):
  path = tmp_path / "built"
  def build():
    if path.exists():
      raise ValueError("there is one already")
    return toy.Counter()
  with _workers(1) as workers:
    batch = batch_env.BatchEnv([build], workers)
    batch.reset()
    path.touch()
    _kill(workers, 0)
    with pytest.raises(ValueError, match="there is one already"):
      batch.step(np.zeros((1, 1)))


@pytest.mark.slow
def test_nothing_is_left_of_those_that_were_replaced():
  def descriptors():
    return len(os.listdir("/proc/self/fd"))
  gc.collect()
  before = descriptors()
  pids = []
  with _workers(2) as workers:
    batch = batch_env.BatchEnv([toy.Counter] * 4, workers)
    batch.reset()
    open_ = descriptors()
    for _ in range(4):
      pids += workers.pids
      _kill(workers, 0)
      _kill(workers, 1)
      batch.step(np.zeros((4, 1)))
      assert descriptors() == open_
    pids += workers.pids
    batch.close()
  del batch
  assert descriptors() == before
  assert not scripts.wait_for_ends(pids, 5)


def test_closing_replaces_nobody():
  with _workers(2) as workers:
    batch = batch_env.BatchEnv([toy.Counter] * 4, workers, groups=2)
    batch.reset()
    batch.exchange(np.zeros((2, 1), np.float32))
    _kill(workers, 0)
    batch.close()
  assert workers.incidents.take() == []


@pytest.mark.parametrize("begun", [
    pytest.param(False, marks=pytest.mark.slow), True])
def test_deaths_while_several_groups_are_restored(begun):
  constructors = [rollouts.make_env("Hopper-v5")] * 4
  with batch_env.BatchEnv(constructors, None, 0, 2) as batch:
    batch.reset()
    actions = rollouts.draw_actions(batch.action_space, 4, 30)
    rollouts.roll(batch, actions[:10])
    before = batch.snapshot()
    after = rollouts.roll(batch, actions[10:])
  with _workers(2) as workers, \
      batch_env.BatchEnv(constructors, workers, 0, 2) as batch:
    if begun:
      batch.reset()
      rollouts.roll(batch, actions[:3])
    block = batch._turns.groups[1].block
    replay = block.replay
    def kill_and_replay(*args):
      _kill(workers, 0)
      _kill(workers, 1)
      replay(*args)
    block.replay = kill_and_replay
    batch.restore(before)
    assert len(workers.incidents.take()) == 2
    rollouts.assert_same_bits(rollouts.roll(batch, actions[10:]), after)


def test_a_death_while_several_groups_are_reset_again():
  constructors = [toy.Counter] * 4
  with _workers(1) as workers, \
      batch_env.BatchEnv(constructors, workers, 0, 2) as batch:
    first = batch.reset()
    batch.step(np.zeros((4, 1)))
    _kill(workers, 0)
    assert batch.reset([5, 6, 7, 8])[:, 0].tolist() == [5, 6, 7, 8]
    assert batch.reset().tobytes() == first.tobytes()


@pytest.mark.slow
def test_a_replay_may_take_as_long_as_its_steps():
  with pool.WorkerPool(
      1, incidents=failure_budget.FailureBudget(1), timeout=0.5) as workers:
    batch = batch_env.BatchEnv([faulty_envs.Tired] * 2, workers)
    batch.reset()
    for _ in range(6):
      batch.step(np.zeros((2, 1)))
    _kill(workers, 0)
    step = batch.step(np.zeros((2, 1)))
    assert step.next_observ[:, 1].tolist() == [7, 7]


def test_resets_that_take_long_together_are_no_hang():
  incidents = failure_budget.FailureBudget(1)
  with pool.WorkerPool(1, incidents=incidents, timeout=1.0) as workers, \
      batch_env.BatchEnv(
          [functools.partial(faulty_envs.SlowReset, 0.3)] * 4, workers) as batch:
    batch.reset()
    for _ in range(3):  # In the last of which all episodes end.
      step = batch.step(np.zeros((4, 1)))
  assert step.terminated.all() and not incidents.take()
