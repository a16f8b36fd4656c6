"""A failure of an environment ends the episode, and the next episode begins."""

import contextlib
import functools
import os
import re
import signal

import numpy as np
import pytest

from agents.environments import batch_env
from agents.environments.blocks import base
from agents.environments.data import episode_data, failure_budget
from agents.environments.making import action_scaling
from agents.environments.workers import pool as pool_lib
from tests import toy
from tests.environments import faulty_envs, rollouts

_STEPS, _SIZE, _SEED = 40, 4, 5
_faults = pytest.mark.parametrize("fault", ["raise", "observ", "reward"])
_ACTIONS = rollouts.draw_actions(toy.Uneven(7).action_space, _SIZE, _STEPS)


def _play_alone(index):
  """Computes the expected results of one environment in plain Python.

  The environment does not fail. A failure is expected at the steps in which
  `faulty_envs.Breaks` would fail.

  Returns:
    Fields of `batch_env.StepResult` for each step; seed, length and score of
    each finished episode; seed and length of each failed episode.
  """
  env, episode, steps, finished, failed = toy.Uneven(7), 0, [], [], []
  convert = action_scaling.action_converter(env.action_space)

  def begin():
    seed = episode_data.episode_seed(_SEED, index, episode)
    return seed, env.reset(seed=seed)[0], 0, 0.0

  seed, observ, length, score = begin()
  for action in _ACTIONS[:, index]:
    length += 1
    next_observ, reward, terminated, truncated, _ = env.step(convert(action[None])[0])
    if length == faulty_envs.Breaks.breaks_at(seed):
      failed.append((seed, length))
      episode += 1
      seed, observ, length, score = begin()
      steps.append((observ, observ, 0.0, False, False, False))
      continue
    score += reward
    observ = next_observ
    if terminated or truncated:
      finished.append((seed, length, score))
      episode += 1
      seed, observ, length, score = begin()
    steps.append((observ, next_observ, reward, terminated, truncated, True))
  return steps, finished, failed


def _tolerant(workers, fault):
  """Returns a batch that tolerates the failures of some of its episodes."""
  return batch_env.BatchEnv(
    [functools.partial(faulty_envs.Breaks, fault)] * _SIZE,
    workers,
    _SEED,
    failure_budget.FailureBudget(1000),
  )


@pytest.fixture(scope="module")
def tolerant_pool():
  with pool_lib.WorkerPool(2, failure_budget=failure_budget.FailureBudget(10_000)) as workers:
    yield workers


@pytest.fixture(params=["serial", "processes"])
def mode(request, tolerant_pool):
  return tolerant_pool if request.param == "processes" else None


@_faults
def test_failed_steps_are_not_valid_and_other_steps_do_not_change(mode, fault):
  references = [_play_alone(index) for index in range(_SIZE)]
  assert all(finished and failed for _, finished, failed in references)
  with _tolerant(mode, fault) as batch:
    batch.failure_budget.drain()  # Other tests share the workers.
    batch.reset()
    rolled = rollouts.roll(batch, _ACTIONS)
    failures = batch.failure_budget.drain()
  finished = [episode for _, episodes in rolled for episode in episodes]
  assert len(finished) == sum(len(expected) for _, expected, _ in references)
  for index, (steps, expected, failed) in enumerate(references):
    for (step, _), expected_step in zip(rolled, steps, strict=True):
      for field, value in zip(step, expected_step, strict=True):
        np.testing.assert_array_equal(field[index], np.float32(value), err_msg=str(index))
    seeds = {seed for seed, *_ in expected}
    episodes = [episode for episode in finished if episode.seed in seeds]
    assert [(x.seed, x.length) for x in episodes] == [x[:2] for x in expected]
    np.testing.assert_allclose([x.score for x in episodes], [x[2] for x in expected], rtol=1e-6)
    assert [(x.seed, len(x.action)) for _, (x,) in failures if x.environment == index] == failed


def test_failure_names_the_step_and_its_actions_reproduce_the_failure(mode):
  with _tolerant(mode, "raise") as batch:
    batch.reset()
    rollouts.roll(batch, _ACTIONS)
    failures = batch.failure_budget.drain()
    assert failures
    for text, (failed,) in failures:
      assert text.startswith(
        f"Environment {failed.environment} ('Breaks', seed {failed.seed}, "
        f"step {len(failed.action) - 1} of its episode) failed in step():"
      )
      assert "ValueError: broken" in text and "faulty_envs.py" in text
      env = faulty_envs.Breaks()
      env.reset(seed=failed.seed)
      convert = action_scaling.action_converter(env.action_space)
      *actions, last = convert(failed.action)
      for action in actions:
        env.step(action)
      with pytest.raises(ValueError, match="broken"):
        env.step(last)


@pytest.mark.parametrize(
  "fault, message",
  [
    ("observ", r"observation array\(\[nan\].*is not finite"),
    ("reward", "the reward .*inf.* is not finite"),
  ],
)
def test_failure_names_numbers_that_are_not_finite(mode, fault, message):
  with _tolerant(mode, fault) as batch:
    batch.reset()
    rollouts.roll(batch, _ACTIONS)
    failures = batch.failure_budget.drain()
    assert failures
    for text, (failed,) in failures:
      assert re.search(message, text)
      (step,) = re.findall(r"step (\d+) of its episode", text)
      assert int(step) == len(failed.action) - 1


@pytest.mark.slow
def test_killed_workers_do_not_change_results_with_failed_episodes():
  with _tolerant(None, "raise") as batch:
    first = batch.reset()
    steps = rollouts.roll(batch, _ACTIONS)
  with (
    pool_lib.WorkerPool(2, failure_budget=failure_budget.FailureBudget(1000)) as workers,
    _tolerant(workers, "raise") as batch,
  ):
    assert batch.reset().tobytes() == first.tobytes()
    rolled = []
    for step, action in enumerate(_ACTIONS):
      if step in (3, 11, 23):
        os.kill(workers.pids[step % 2], signal.SIGKILL)
      rolled += rollouts.roll(batch, [action])
    rollouts.assert_same_bits(rolled, steps)


def test_restored_batch_equals_uninterrupted_batch_after_failures(mode):
  with _tolerant(mode, "raise") as batch:
    batch.reset()
    rollouts.roll(batch, _ACTIONS[:20])
    assert batch.failure_budget.drain()
    before = batch.snapshot()
    after = rollouts.roll(batch, _ACTIONS[20:])
    batch.restore(before)
    rollouts.assert_same_bits(rollouts.roll(batch, _ACTIONS[20:]), after)


@pytest.mark.parametrize("processes", [False, True])
def test_failure_beyond_the_budget_is_an_error_with_its_episode(processes):
  budget = failure_budget.FailureBudget(3)
  constructors = [toy.Counter, functools.partial(toy.Faulty, "raise")]
  with contextlib.ExitStack() as stack:
    workers = (
      stack.enter_context(pool_lib.WorkerPool(2, failure_budget=budget)) if processes else None
    )
    batch = stack.enter_context(batch_env.BatchEnv(constructors, workers, failure_budget=budget))
    batch.reset()
    with pytest.raises(base.EnvironmentFailure) as caught:
      for _ in range(20):
        batch.step(np.zeros((2, 1)))
    assert "ValueError: faulty step" in str(caught.value)
    failures = batch.failure_budget.drain()
    assert len(failures) == 3
    fatal = batch.failure_budget.fatal
    assert fatal.text == str(caught.value)
    for _, (failed,) in (*failures, fatal):
      # Each episode completes one step and fails in the next one.
      assert (failed.environment, len(failed.action)) == (1, 2)
    batch.reset()


def _run_seed_without_failed_first_resets():
  """Returns a run seed for which the first reset of no environment fails."""
  return next(
    seed
    for seed in range(1000)
    if not any(
      faulty_envs.FailsInReset.reset_fails(episode_data.episode_seed(seed, index, 0))
      for index in range(_SIZE)
    )
  )


@pytest.mark.parametrize("fault", ["raise", "observ"])
def test_episodes_whose_reset_fails_are_skipped(mode, fault):
  run_seed = _run_seed_without_failed_first_resets()
  with batch_env.BatchEnv(
    [functools.partial(faulty_envs.FailsInReset, fault)] * _SIZE,
    mode,
    run_seed,
    failure_budget.FailureBudget(1000),
  ) as batch:
    batch.failure_budget.drain()  # Other tests share the workers.
    batch.reset()
    steps = rollouts.roll(batch, _ACTIONS)
    assert all(step.valid.all() for step, _ in steps)
    failures = batch.failure_budget.drain()
    running = batch.snapshot()
    after = rollouts.roll(batch, _ACTIONS)
    batch.restore(running)
    rollouts.assert_same_bits(rollouts.roll(batch, _ACTIONS), after)
  for index in range(_SIZE):
    seeds = [
      episode_data.episode_seed(run_seed, index, episode)
      for episode in range(running.episode[index] + 1)
    ]
    assert running.seed[index] == seeds[-1]
    failed_seeds = list(filter(faulty_envs.FailsInReset.reset_fails, seeds))
    assert (
      failed_seeds
      and [failed.seed for _, (failed,) in failures if failed.environment == index] == failed_seeds
    )
    lengths = [
      toy.Uneven.episode_length(seed, 7) for seed in seeds[:-1] if seed not in failed_seeds
    ]
    assert sum(lengths) + running.length[index] == _STEPS
  for text, (failed,) in failures:
    assert failed.action.shape == (0, 1)
    assert "failed in reset" in text
    assert ("broken reset" if fault == "raise" else "not finite") in text


def test_environment_whose_resets_always_fail_is_an_error(mode):
  with batch_env.BatchEnv(
    [toy.Counter, faulty_envs.NeverResets], mode, failure_budget=failure_budget.FailureBudget(1000)
  ) as batch:
    batch.reset()
    with pytest.raises(ValueError, match="broken forever"):
      for _ in range(10):
        batch.step(np.zeros((2, 1)))
    _, (failed,) = batch.failure_budget.fatal
    assert (failed.environment, len(failed.action)) == (1, 0)


@_faults
@pytest.mark.parametrize("processes", [False, True])
def test_failure_without_a_budget_is_an_error_with_its_episode(fault, processes, pool):
  with batch_env.BatchEnv(
    [functools.partial(faulty_envs.Breaks, fault)] * _SIZE, pool if processes else None, _SEED
  ) as batch:
    batch.reset()
    with pytest.raises(ValueError) as caught:
      rollouts.roll(batch, _ACTIONS)
    text, (failed,) = batch.failure_budget.fatal
    assert text == str(caught.value.__cause__)
  references = [_play_alone(index) for index in range(_SIZE)]
  first_failure = [
    next(time for time, (*_, valid) in enumerate(steps) if not valid) for steps, _, _ in references
  ]
  assert first_failure[failed.environment] == min(first_failure)
  _, _, failed_episodes = references[failed.environment]
  assert (failed.seed, len(failed.action)) == failed_episodes[0]


@pytest.mark.parametrize("fault", ["reset", "constructor"])
def test_failure_before_the_first_episode_is_an_error(fault, mode):
  with pytest.raises(ValueError, match=f"faulty {fault}") as caught:
    with batch_env.BatchEnv(
      [functools.partial(toy.Faulty, fault)], mode, failure_budget=failure_budget.FailureBudget(9)
    ) as batch:
      batch.reset([11])
  if fault == "reset":
    text, (failed,) = batch.failure_budget.fatal
    assert text == str(caught.value.__cause__)
    assert (failed.environment, failed.seed) == (0, 11)
    assert failed.action.shape == (0, 1)


def test_system_exit_is_an_error_despite_the_budget():
  with batch_env.BatchEnv(
    [functools.partial(toy.Faulty, "exit")], failure_budget=failure_budget.FailureBudget(9)
  ) as batch:
    batch.reset()
    batch.step(np.zeros((1, 1)))
    with pytest.raises(base.EnvironmentFailure, match="SystemExit"):
      batch.step(np.zeros((1, 1)))
