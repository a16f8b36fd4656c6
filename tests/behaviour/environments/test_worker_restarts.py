"""A pool replaces workers that die or hang, and results do not change."""

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
from agents.environments.blocks import base
from agents.environments.data import failure_budget
from agents.environments.workers import pool, process, replacement
from tests import toy
from tests.environments import faulty_envs, rollouts, scripts

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="The tests read /proc.")


def _workers(num_workers, limit=100, timeout=0.0):
  return pool.WorkerPool(
    num_workers, failure_budget=failure_budget.FailureBudget(limit), timeout=timeout
  )


def _kill(workers, index):
  os.kill(workers.pids[index], signal.SIGKILL)


def _roll_and_kill(batch, workers, actions, kills):
  """Steps a batch with the given actions, and kills workers before some steps.

  Args:
    batch: The environments.
    workers: Pool of workers that step the environments.
    actions: Actions of shape [T, B, ...].
    kills: Indices of the workers to kill, by index of the step.

  Returns:
    Result of `rollouts.roll`.
  """
  steps = []
  for time, action in enumerate(actions):
    for index in kills.get(time, ()):
      _kill(workers, index)
    steps += rollouts.roll(batch, [action])
  return steps


@pytest.mark.parametrize(
  "name",
  [
    "toy",
    *(
      pytest.param(name, marks=pytest.mark.slow)
      for name in ("hopper", "cheetah", "uneven", "frozen_lake", "wrapped")
    ),
  ],
)
def test_killed_worker_is_replaced_with_the_same_bits(name):
  constructors = rollouts.BATCHES[name][:4]
  first, steps = rollouts.play(constructors, None, seed=3)
  with _workers(2) as workers:
    with batch_env.BatchEnv(constructors, workers, 3) as batch:
      _kill(workers, 1)
      assert batch.reset().tobytes() == first.tobytes()
      actions = rollouts.draw_actions(batch.action_space, 4, 60)
      rollouts.assert_same_bits(
        _roll_and_kill(batch, workers, actions, {0: [0], 7: [1], 20: [0, 1], 59: [1]}), steps
      )
      failures = batch.failure_budget.drain()
      assert len(failures) == 6
      assert all("SIGKILL" in failure.text for failure in failures)


@pytest.mark.slow
def test_worker_killed_within_a_step_is_replaced_with_the_same_bits():
  constructors = [rollouts.make_env("Humanoid-v5")] * 8
  _, steps = rollouts.play(constructors, None, num_steps=150)
  with _workers(2) as workers, batch_env.BatchEnv(constructors, workers) as batch:
    batch.reset()
    actions = rollouts.draw_actions(batch.action_space, 8, 150)
    done = threading.Event()

    def kill_repeatedly():
      num_kills = 0
      while not done.wait(0.15 + 0.0137 * num_kills):
        with contextlib.suppress(ProcessLookupError):
          _kill(workers, num_kills % 2)
        num_kills += 1

    thread = threading.Thread(target=kill_repeatedly)
    thread.start()
    try:
      rolled, failures = [], []
      for action in actions:
        rolled += rollouts.roll(batch, [action])
        failures += workers.failure_budget.drain()
        if len(failures) > 4:
          done.set()
    finally:
      done.set()
      thread.join()
    rollouts.assert_same_bits(rolled, steps)
    assert failures


@pytest.mark.slow
def test_killed_worker_with_waiting_environments_is_replaced():
  constructors = [rollouts.make_env("tests.toy:Uneven", kwargs={"max_length": 4})] * 5
  actions = np.zeros((30, 5, 1), np.float32)
  with batch_env.BatchEnv(constructors) as batch:
    batch.reset()
    steps = rollouts.roll_with_pauses(batch, actions)
  with _workers(2) as workers, batch_env.BatchEnv(constructors, workers) as batch:
    batch.reset()
    times = iter(range(1000))
    step = batch.step

    def kill_and_step(*args):
      if next(times) % 7 == 3:
        _kill(workers, 0)
      return step(*args)

    batch.step = kill_and_step
    rollouts.assert_same_bits(rollouts.roll_with_pauses(batch, actions), steps)
    assert len(workers.failure_budget.drain()) == 4


@pytest.mark.slow
@pytest.mark.parametrize(
  "send",
  [
    pytest.param(lambda batch, _: batch.reset().tolist(), id="reset", marks=pytest.mark.slow),
    pytest.param(lambda batch, _: batch.get("observation_space"), id="get", marks=pytest.mark.slow),
    pytest.param(lambda batch, before: batch.restore(before), id="restore"),
  ],
)
def test_requests_other_than_steps_are_repeated_after_a_death(send):
  constructors = [rollouts.make_env("Hopper-v5")] * 3
  results = []
  for kill in (False, True):
    with _workers(2) as workers, batch_env.BatchEnv(constructors, workers) as batch:
      actions = rollouts.draw_actions(batch.action_space, 3, 20)
      batch.reset()
      rollouts.roll(batch, actions[:5])
      before = batch.snapshot()
      rollouts.roll(batch, actions[5:10])
      if kill:
        _kill(workers, 0)
      answer = send(batch, before)
      assert len(workers.failure_budget.drain()) == kill
      results.append((answer, rollouts.roll(batch, actions[10:])))
  (answer, steps), (other_answer, other_steps) = results
  assert answer == other_answer
  rollouts.assert_same_bits(steps, other_steps)


@pytest.mark.slow
def test_replaced_worker_rebuilds_its_share_of_all_open_batches():
  def play(kill):
    with _workers(2) as workers:
      first = batch_env.BatchEnv([toy.Counter] * 3, workers)
      second = batch_env.BatchEnv(rollouts.BATCHES["uneven"][:3], workers)
      closed = batch_env.BatchEnv([toy.Counter], workers)
      closed.close()
      batches, observ = [first, second], []
      for batch in batches:
        observ.append(batch.reset())
      for time in range(5):
        if kill and time == 2:
          _kill(workers, 0)
        for batch in batches:
          observ.append(
            batch.step(rollouts.draw_actions(batch.action_space, 3, 1, seed=time)[0]).next_observ
          )
      if kill:
        _kill(workers, 1)
      new = batch_env.BatchEnv([toy.Counter] * 2, workers)
      observ.append(new.reset())
      if kill:
        assert len(workers.failure_budget.drain()) == 2
      return [array.tobytes() for array in observ]

  assert play(kill=False) == play(kill=True)


@pytest.mark.slow
@pytest.mark.parametrize(
  "fault, message",
  [
    ("hang", "no answer for 1 seconds.*It was here:.*faulty_envs.py.*in step"),
    ("stop", "no answer for 1 seconds"),
    ("crash", "SIGSEGV.*native code.*It was here:.*faulty_envs.py.*in step"),
  ],
)
def test_fault_that_happens_once_does_not_change_results(fault, message, tmp_path):
  once = functools.partial(faulty_envs.FailsOnce, str(tmp_path / "fault"), fault)
  _, steps = rollouts.play([toy.Counter] * 3, None, 8)
  with _workers(2, limit=1, timeout=1.0) as workers:
    pids = workers.pids
    _, faulty = rollouts.play([toy.Counter, once, toy.Counter], workers, 8)
    rollouts.assert_same_bits(faulty, steps)
    (reason,) = (text.replace("\n", " ") for text, _ in workers.failure_budget.drain())
    assert reason.startswith("Worker ")
    assert re.search(message, reason)
    assert len(set(pids) & set(workers.pids)) == 1  # One process is new.
  assert not scripts.wait_for_exit(pids, 5)


@pytest.mark.slow
def test_worker_that_stops_while_it_sends_an_answer_is_replaced(tmp_path, monkeypatch):
  monkeypatch.setattr(replacement, "SECONDS_TO_OPEN", 5.0)
  _, steps = rollouts.play([lambda: toy.Counter(2)] * 2, None, 8)
  with _workers(1, limit=1, timeout=1.0) as workers:
    _, faulty = rollouts.play(
      [functools.partial(faulty_envs.StopsWhileSending, str(tmp_path / "fault"))] * 2, workers, 8
    )
    rollouts.assert_same_bits(faulty, steps)
    ((reason, _),) = workers.failure_budget.drain()
    assert "no answer for 5 seconds" in reason


@pytest.mark.slow
def test_worker_that_does_not_read_a_request_is_replaced(monkeypatch):
  monkeypatch.setattr(replacement, "SECONDS_TO_OPEN", 5.0)
  with (
    _workers(1, limit=1, timeout=1.0) as workers,
    batch_env.BatchEnv([toy.Counter], workers) as batch,
  ):
    os.kill(workers.pids[0], signal.SIGSTOP)
    assert batch.call("add", np.ones(10**6), 1)[0].sum() == 2e6
    ((reason, _),) = workers.failure_budget.drain()
    assert "no answer for 5 seconds" in reason


@pytest.mark.slow
def test_worker_that_reads_a_request_late_is_not_replaced():
  with (
    pool.WorkerPool(1, timeout=60.0) as workers,
    batch_env.BatchEnv([toy.Counter], workers) as batch,
  ):
    os.kill(workers.pids[0], signal.SIGSTOP)
    timer = threading.Timer(3.0, os.kill, (workers.pids[0], signal.SIGCONT))
    timer.start()
    assert batch.call("add", np.ones(10**6), 1)[0].sum() == 2e6
    timer.join()


@pytest.mark.slow
def test_worker_that_stops_during_a_replay_is_replaced(tmp_path):
  with (
    _workers(1, limit=2, timeout=1.0) as workers,
    batch_env.BatchEnv(
      [functools.partial(faulty_envs.StopsReplay, str(tmp_path / "fault"))], workers
    ) as batch,
  ):
    batch.reset()
    for _ in range(40):
      step = batch.step(np.zeros((1, 1)))
    assert step.next_observ[0, 1] == 40
    first, second = (text for text, _ in workers.failure_budget.drain())
    assert "SIGKILL" in first and "no answer for 1 seconds" in second


@pytest.mark.slow
def test_child_processes_of_environments_end_with_a_killed_worker(tmp_path):
  path = tmp_path / "pid"
  with (
    _workers(1, limit=1, timeout=1.0) as workers,
    batch_env.BatchEnv(
      [functools.partial(faulty_envs.HangsWithChild, str(path))], workers
    ) as batch,
  ):
    batch.reset()
    child_pid = int(path.read_text())
    batch.step(np.zeros((1, 1)))
    assert len(workers.failure_budget.drain()) == 1
    assert not scripts.wait_for_exit([child_pid], 5)


def test_repeated_fault_exceeds_the_budget():
  with _workers(2, limit=3) as workers:
    batch = batch_env.BatchEnv([toy.Counter, functools.partial(toy.Faulty, "kill")], workers)
    batch.reset()
    batch.step(np.zeros((2, 1)))
    with pytest.raises(process.WorkerDied, match="Worker 1.*SIGKILL"):
      batch.step(np.zeros((2, 1)))
    failures = workers.failure_budget.drain()
    assert len(failures) == 3
    for _, (failed,) in (*failures, workers.failure_budget.fatal):
      assert (failed.environment, len(failed.action)) == (1, 2)
    with pytest.raises(RuntimeError, match="died or did not answer"):
      batch.reset()


@pytest.mark.slow
def test_failure_contains_all_episodes_of_the_dead_worker():
  constructors = [rollouts.make_env("Hopper-v5")] * 8
  with _workers(2) as workers, batch_env.BatchEnv(constructors, workers, 3) as batch:
    batch.reset()
    actions = rollouts.draw_actions(batch.action_space, 8, 40)
    rollouts.roll(batch, actions[:30])
    before = batch.snapshot()
    _kill(workers, 0)
    rollouts.roll(batch, actions[30:31])
    ((_, failed),) = workers.failure_budget.drain()
  assert [episode.environment for episode in failed] == [0, 1, 2, 3]
  for index, episode in enumerate(failed):
    assert episode.seed == before.seed[index]
    np.testing.assert_array_equal(
      episode.action, [*before.episode_actions(index), actions[30, index]]
    )


@pytest.mark.slow
def test_hang_without_a_failure_budget_is_an_error():
  with pool.WorkerPool(1, timeout=1.0) as workers:
    batch = batch_env.BatchEnv([functools.partial(toy.Faulty, "spin")], workers)
    batch.reset()
    batch.step(np.zeros((1, 1)))
    with pytest.raises(process.WorkerDied, match="(?s)here:.*toy.py"):
      batch.step(np.zeros((1, 1)))
    assert workers.failure_budget.drain() == []


def test_restarts_before_the_window_do_not_count(monkeypatch):
  monkeypatch.setattr(failure_budget, "WINDOW", 0.0)
  with _workers(1, limit=1) as workers, batch_env.BatchEnv([toy.Counter], workers) as batch:
    batch.reset()
    for _ in range(3):
      _kill(workers, 0)
      batch.step(np.zeros((1, 1)))
    assert len(workers.failure_budget.drain()) == 3


@pytest.mark.parametrize("part", ["observation", "reward", "error"])
def test_episode_fails_if_its_replay_in_a_new_worker_differs(part, tmp_path):
  differs = functools.partial(faulty_envs.DiffersLater, str(tmp_path / "changed"), part)
  with (
    _workers(1) as workers,
    batch_env.BatchEnv([functools.partial(toy.Counter, 50), differs], workers, 7) as batch,
  ):
    batch.reset()
    for _ in range(3):
      batch.step(np.zeros((2, 1)))
    (tmp_path / "changed").touch()
    _kill(workers, 0)
    step = batch.step(np.zeros((2, 1)))
    assert step.valid.tolist() == [True, False]
    assert step.observ[:, 1].tolist() == [4, 0]  # The next episode has begun.
    assert not batch.take_finished()
    death, failure = workers.failure_budget.drain()
    assert "SIGKILL" in death.text
    assert ("fails since today" if part == "error" else "not deterministic") in failure.text
    ((index, _, action),) = failure.episodes
    assert (index, len(action)) == (1, 4)
    assert batch.step(np.zeros((2, 1))).valid.all()


def test_episodes_with_other_replays_count_as_one_failure():
  with _workers(1, limit=3) as workers:
    batch = batch_env.BatchEnv([faulty_envs.IgnoresSeed] * 5, workers)
    batch.reset()
    for num_failures in (1 + 5, 1):
      batch.step(np.zeros((5, 1)))
      _kill(workers, 0)
      if num_failures > 1:
        batch.step(np.zeros((5, 1)))
        assert len(workers.failure_budget.drain()) == num_failures
    with pytest.raises(base.EnvironmentFailure, match="Environment 4 .* is not deterministic"):
      batch.step(np.zeros((5, 1)))


def test_reset_repeated_by_a_new_worker_ignores_other_replays():
  with _workers(1) as workers:
    batch = batch_env.BatchEnv([faulty_envs.IgnoresSeed] * 2, workers)
    batch.reset()
    batch.step(np.zeros((2, 1)))
    _kill(workers, 0)
    batch.reset()
    assert batch.step(np.zeros((2, 1))).valid.all()
    assert len(workers.failure_budget.drain()) == 1


def test_environment_that_cannot_be_built_again_is_an_error(tmp_path):
  path = tmp_path / "built"

  def build():
    if path.exists():
      raise ValueError("already built")
    return toy.Counter()

  with _workers(1) as workers:
    batch = batch_env.BatchEnv([build], workers)
    batch.reset()
    path.touch()
    _kill(workers, 0)
    with pytest.raises(ValueError, match="already built"):
      batch.step(np.zeros((1, 1)))


@pytest.mark.slow
def test_replaced_workers_leave_no_processes_and_no_descriptors():
  def descriptors():
    return len(os.listdir("/proc/self/fd"))

  gc.collect()
  before = descriptors()
  pids = []
  with _workers(2) as workers:
    batch = batch_env.BatchEnv([toy.Counter] * 4, workers)
    batch.reset()
    while_open = descriptors()
    for _ in range(4):
      pids += workers.pids
      _kill(workers, 0)
      _kill(workers, 1)
      batch.step(np.zeros((4, 1)))
      assert descriptors() == while_open
    pids += workers.pids
    batch.close()
  del batch
  assert descriptors() == before
  assert not scripts.wait_for_exit(pids, 5)


def test_close_does_not_replace_workers():
  with _workers(2) as workers:
    batch = batch_env.BatchEnv([toy.Counter] * 4, workers)
    batch.reset()
    batch._block.step_async()  # The answer to a step is pending.
    _kill(workers, 0)
    batch.close()
  assert workers.failure_budget.drain() == []


@pytest.mark.parametrize("has_begun", [pytest.param(False, marks=pytest.mark.slow), True])
def test_workers_killed_before_a_replay_are_replaced(has_begun):
  constructors = rollouts.BATCHES["uneven"][:4]
  with batch_env.BatchEnv(constructors) as batch:
    batch.reset()
    actions = rollouts.draw_actions(batch.action_space, 4, 30)
    rollouts.roll(batch, actions[:10])
    before = batch.snapshot()
    after = rollouts.roll(batch, actions[10:])
  with _workers(2) as workers, batch_env.BatchEnv(constructors, workers) as batch:
    if has_begun:
      batch.reset()
      rollouts.roll(batch, actions[:3])
    block = batch._block
    replay = block.replay

    def kill_and_replay(*args):
      _kill(workers, 0)
      _kill(workers, 1)
      replay(*args)

    block.replay = kill_and_replay
    batch.restore(before)
    assert len(workers.failure_budget.drain()) == 2
    rollouts.assert_same_bits(rollouts.roll(batch, actions[10:]), after)


def test_worker_killed_before_a_reset_with_seeds_is_replaced():
  with _workers(1) as workers, batch_env.BatchEnv([toy.Counter] * 4, workers) as batch:
    first = batch.reset()
    batch.step(np.zeros((4, 1)))
    _kill(workers, 0)
    assert batch.reset([5, 6, 7, 8])[:, 0].tolist() == [5, 6, 7, 8]
    assert batch.reset().tobytes() == first.tobytes()


@pytest.mark.slow
def test_timeout_applies_to_each_step_of_a_replay():
  with _workers(1, limit=1, timeout=0.5) as workers:
    batch = batch_env.BatchEnv([faulty_envs.SlowSteps] * 2, workers)
    batch.reset()
    for _ in range(6):
      batch.step(np.zeros((2, 1)))
    _kill(workers, 0)
    step = batch.step(np.zeros((2, 1)))
    assert step.next_observ[:, 1].tolist() == [7, 7]


@pytest.mark.slow
def test_timeout_applies_to_each_reset():
  constructor = functools.partial(faulty_envs.SlowReset, 0.3)
  with (
    _workers(1, limit=1, timeout=1.0) as workers,
    batch_env.BatchEnv([constructor] * 4, workers) as batch,
  ):
    batch.reset()
    for _ in range(3):  # All episodes end in the third step.
      step = batch.step(np.zeros((4, 1)))
    assert step.terminated.all()
    assert not workers.failure_budget.drain()
