"""Environments in groups that take turns, against all stepping at once."""

import functools
import time

import numpy as np
import pytest

from agents.environments import batch_env
from agents.environments import process as process_lib
from agents.environments import workers as workers_lib
from tests import toy
from tests.environments import odd
from tests.environments import rollouts

_groups = pytest.mark.parametrize("groups", [
    3, *(pytest.param(groups, marks=pytest.mark.slow) for groups in (2, 6))])


def _six(name):
  """Six environments; their episodes end at different times."""
  return (rollouts.BATCHES[name] * 2)[:6]


def _counters(mode, groups=2, amount=4):
  return batch_env.BatchEnv([toy.Counter] * amount, mode, groups=groups)


def _views(batch, packed):
  return batch.step_layout.views(packed)


@_groups
@pytest.mark.parametrize("name", rollouts.BATCHES)
def test_groups_make_no_difference_to_steps(name, groups, mode):
  first, expected = rollouts.play(_six(name), None)
  assert any(ended for _, ended in expected), "No episode ended."
  first_in_groups, steps = rollouts.play(_six(name), mode, groups=groups)
  assert first.tobytes() == first_in_groups.tobytes()
  rollouts.assert_same_bits(expected, steps)


@_groups
@pytest.mark.parametrize("name", ["toy", "hopper", "cartpole"])
def test_answers_follow_their_actions_by_so_many_turns(name, groups, mode):
  with batch_env.BatchEnv(_six(name)) as batch:
    first = batch.reset()
    actions = rollouts.draw_actions(batch.action_space, 6, 60)
    expected = [step for step, _ in rollouts.roll(batch, actions)]
    finished, final_observ = batch.finished, batch.final_observ
    running = batch.snapshot()
  with batch_env.BatchEnv(_six(name), mode, groups=groups) as batch:
    batch.reset()
    packed = [batch.exchange(action) for row in actions
              for action in np.split(row, groups)]
    packed += batch.drain()
    assert batch.drain() == []
    assert batch.finished == finished  # In the same order.
    np.testing.assert_equal(batch.final_observ, final_observ)
    in_groups = batch.snapshot()
  # Nothing but first observations comes before the first answers.
  early = [_views(batch, row)["observ"] for row in packed[:groups - 1]]
  np.testing.assert_array_equal(early, np.split(first, groups)[1:])
  answers = [_views(batch, row) for row in packed[groups - 1:]]
  assert len(answers) == 60 * groups
  for number, step in enumerate(expected):
    for field in ("observ", "reward", "terminated", "truncated", "valid"):
      got = np.concatenate([answer[field] for answer in answers[
          number * groups:(number + 1) * groups]])
      assert got.tobytes() == getattr(step, field).tobytes(), field
  for name, array in running.arrays().items():
    np.testing.assert_array_equal(array, in_groups.arrays()[name], name)


@_groups
def test_a_snapshot_is_one_of_all_groups(groups, mode):
  # Taken in one group, restored in some, and the other way around.
  def batches():
    yield batch_env.BatchEnv(_six("hopper"), mode, groups=groups)
    yield batch_env.BatchEnv(_six("hopper"))
  snapshots, continued = [], []
  for batch in batches():
    with batch:
      batch.reset()
      actions = rollouts.draw_actions(batch.action_space, 6, 40)
      rollouts.roll(batch, actions[:30])
      snapshots.append(batch.snapshot())
  for batch, running in zip(batches(), reversed(snapshots)):
    with batch:
      batch.restore(running)
      continued.append(rollouts.roll(batch, actions[30:]))
  rollouts.assert_same_bits(*continued)


def test_one_group_steps_while_another_is_asked_for_actions():
  slow = functools.partial(odd.Slow, 0.5)  # Each step but the first.
  with workers_lib.Workers(1) as workers:
    with batch_env.BatchEnv([slow] * 2, workers, groups=2) as batch:
      batch.reset()
      batch.step(np.zeros((2, 1)))
      batch.exchange(np.zeros((1, 1)))
      time.sleep(0.7)  # Choose an action of the second one.
      start = time.monotonic()
      batch.exchange(np.zeros((1, 1)))
      assert time.monotonic() - start < 0.3
      batch.drain()


def test_groups_are_of_equal_size():
  for groups in (3, 0, -1, 5):
    with pytest.raises(ValueError, match="4 environments .* groups"):
      _counters(None, groups)


def test_actions_are_those_of_one_group(mode):
  with _counters(mode) as batch:
    batch.reset()
    assert batch.groups == 2
    with pytest.raises(ValueError, match=r"must have shape \(2, 1\)"):
      batch.exchange(np.zeros((4, 1)))
    with pytest.raises(ValueError, match=r"must have shape \(4, 1\)"):
      batch.step(np.zeros((2, 1)))
    batch.exchange(np.zeros((2, 1)))
    with pytest.raises(ValueError, match=r"must have shape \(2,\)"):
      batch.exchange(np.zeros((2, 1)), np.ones(4, bool))
    # No harm is done.
    batch.exchange(np.zeros((2, 1)))
    batch.drain()
    assert batch.snapshot().length.tolist() == [1] * 4


def test_no_snapshot_while_a_group_steps(mode):
  with _counters(mode) as batch:
    batch.reset()
    batch.exchange(np.zeros((2, 1)))
    with pytest.raises(RuntimeError, match="half a step"):
      batch.snapshot()
    batch.exchange(np.zeros((2, 1)))
    batch.drain()
    assert batch.snapshot().length.tolist() == [1] * 4


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_to_begin_again_in_the_middle_of_a_step(turns, mode):
  with _counters(mode) as batch:
    first = batch.reset()
    running = batch.snapshot()
    for again in (batch.reset, lambda: batch.restore(running)):
      for _ in range(turns):
        batch.exchange(np.zeros((2, 1)))
      again()
      assert batch.snapshot().observ.tobytes() == first.tobytes()
      step = batch.step(np.zeros((4, 1)))
      assert step.reward.tolist() == [1] * 4
      again()


def test_all_can_only_step_where_no_group_is_ahead(mode):
  with _counters(mode) as batch:
    batch.reset()
    batch.step(np.zeros((4, 1)))
    with pytest.raises(ValueError, match="Environment 3 can't wait"):
      batch.step(np.zeros((4, 1)), [True, True, True, False])
    batch.exchange(np.zeros((2, 1)))
    with pytest.raises(RuntimeError, match="ahead of others"):
      batch.step(np.zeros((4, 1)))
    batch.drain()
    for refused in (batch.snapshot, lambda: batch.step(np.zeros((4, 1)))):
      with pytest.raises(RuntimeError):
        refused()
    batch.exchange(np.zeros((2, 1)))
    batch.drain()
    assert batch.snapshot().length.tolist() == [2] * 4


def test_other_requests_wait_for_the_end_of_a_step(pool):
  with _counters(pool) as batch:
    batch.reset()
    batch.exchange(np.zeros((2, 1)))
    with pytest.raises(RuntimeError, match="in the middle of a step"):
      batch.get("length")
    batch.exchange(np.zeros((2, 1)))
    batch.drain()
    assert batch.get("length") == [3] * 4


def test_batches_that_step_at_the_same_time_get_their_own_answers(pool):
  with _counters(pool) as one, _counters(pool, amount=6) as other:
    one.reset()
    one.exchange(np.zeros((2, 1)))
    first = other.reset()
    for _ in range(2):
      other.step(np.zeros((6, 1)))
    one.exchange(np.zeros((2, 1)))
    step = other.step(np.zeros((6, 1)))
    rewards = [_views(one, packed)["reward"] for packed in one.drain()]
    assert [row.tolist() for row in rewards] == [[1, 1]]
    assert step.reward.tolist() == [3] * 6
    assert len(other.finished) == 6 and one.finished == []
    assert one.snapshot().length.tolist() == [1] * 4
    assert (other.reset() == first).all()


def test_what_does_not_divide_evenly_falls_on_different_workers():
  with workers_lib.Workers(3) as workers:
    with batch_env.BatchEnv([odd.Inside] * 4, workers, groups=2) as batch:
      pids = batch.call("pid")
    # Two of three have something to do for a group, and all for the batch.
    assert len(set(pids[:2])) == len(set(pids[2:])) == 2
    assert set(pids) == set(workers.pids)


def test_closing_while_another_batch_steps(pool):
  with _counters(pool) as one:
    one.reset()
    with _counters(pool) as other:
      other.reset()
      one.exchange(np.zeros((2, 1)))
    one.exchange(np.zeros((2, 1)))
    one.drain()
    assert one.snapshot().length.tolist() == [1] * 4


@pytest.mark.slow
def test_closing_while_an_environment_hangs():
  with workers_lib.Workers(1) as workers:
    batch = batch_env.BatchEnv(
        [functools.partial(toy.Faulty, "hang")] * 2, workers, groups=2)
    batch.reset()
    batch.step(np.zeros((2, 1)))
    batch.exchange(np.zeros((1, 1)))
    batch.close()  # The deadline of all tests is far beyond its own.
    assert len(workers) == 0


def test_to_abandon_a_step_in_this_process_is_not_to_take_it():
  with batch_env.BatchEnv([toy.Uneven] * 2, groups=2) as batch:
    batch.reset()
    batch.exchange(np.zeros((1, 1)))
    batch.reset()
    assert batch.get("taken") == [0, 0]


def test_closing_in_the_middle_of_a_step(tmp_path):
  diary = tmp_path / "diary"
  with workers_lib.Workers(2) as workers:
    batch = batch_env.BatchEnv(
        [functools.partial(odd.Diary, diary, str(number))
         for number in range(4)], workers, groups=2)
    batch.reset()
    batch.exchange(np.zeros((2, 1)))
    batch.close()
    assert rollouts.not_closed(diary) == {}
    with _counters(workers) as other:  # The workers are as good as before.
      other.reset()


@pytest.mark.parametrize("faulty", range(4))
def test_a_fault_in_one_group_ends_the_step_of_all(faulty, mode):
  constructors = [toy.Counter] * 4
  constructors[faulty] = functools.partial(toy.Faulty, "raise")
  with batch_env.BatchEnv(constructors, mode, groups=2) as batch:
    first = batch.reset()
    batch.step(np.zeros((4, 1)))
    before = batch.snapshot()
    with pytest.raises(ValueError, match="faulty step") as caught:
      batch.step(np.zeros((4, 1)))
    assert f"Environment {faulty} " in str(caught.value.__cause__)
    with pytest.raises(RuntimeError, match="half a step"):
      batch.snapshot()
    # Nobody is stepping any more.
    assert batch.get("length") == [3] * 4
    batch.restore(before)
    assert batch.reset().tobytes() == first.tobytes()


def test_a_death_while_two_groups_step():
  constructors = [toy.Counter, toy.Counter, toy.Counter,
                  functools.partial(toy.Faulty, "kill")]
  # Of the second group, the second worker has the first environment.
  with workers_lib.Workers(2) as workers:
    batch = batch_env.BatchEnv(constructors, workers, groups=2)
    batch.reset()
    batch.step(np.zeros((4, 1)))
    with pytest.raises(process_lib.WorkerDied, match="Worker 0.*SIGKILL"):
      batch.step(np.zeros((4, 1)))
    with pytest.raises(RuntimeError, match="died or was given up"):
      batch.reset()
    batch.close()
    assert len(workers) == 0
