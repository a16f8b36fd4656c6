"""An episode whose environment fails is broken off, and the next one begins."""

import functools
import os
import re
import signal

import numpy as np
import pytest

from agents.environments import batch_env
from agents.environments.blocks import base
from agents.environments.data import episodes
from agents.environments.data import failure_budget
from agents.environments.making import action_scaling
from agents.environments.workers import pool as pool_lib
from tests import toy
from tests.environments import faulty_envs
from tests.environments import rollouts

_STEPS, _SIZE, _SEED = 40, 4, 5
_hows = pytest.mark.parametrize("how", ["raise", "observ", "reward"])
_ACTIONS = rollouts.draw_actions(toy.Uneven(7).action_space, _SIZE, _STEPS)


def _by_hand(index):
  """Play one environment in plain Python, without any that break.

  Returns:
    Of each step, the fields of `batch_env.Step`; episodes that ended, and those
    that broke off, each as seed, number of steps and score.
  """
  env, number, steps, ended, broken = toy.Uneven(7), 0, [], [], []
  convert = action_scaling.action_converter(env.action_space)
  def begin():
    seed = episodes.episode_seed(_SEED, index, number)
    return seed, env.reset(seed=seed)[0], 0, 0.0
  seed, observ, length, score = begin()
  for action in _ACTIONS[:, index]:
    length += 1
    after, reward, terminated, truncated, _ = env.step(convert(action[None])[0])
    if length == faulty_envs.Breaks.breaks_at(seed):
      broken.append((seed, length))
      number += 1
      seed, observ, length, score = begin()
      steps.append((observ, observ, 0.0, False, False, False))
      continue
    score += reward
    observ = after
    if terminated or truncated:
      ended.append((seed, length, score))
      number += 1
      seed, observ, length, score = begin()
    steps.append((observ, after, reward, terminated, truncated, True))
  return steps, ended, broken


def _tolerant(workers, how, groups=1):
  incidents = failure_budget.FailureBudget(1000)
  return batch_env.BatchEnv(
      [functools.partial(faulty_envs.Breaks, how)] * _SIZE, workers, _SEED, groups,
      incidents)


@pytest.fixture(scope="module")
def tolerant_pool():
  with pool_lib.WorkerPool(
      2, incidents=failure_budget.FailureBudget(10_000)) as workers:
    yield workers


@pytest.fixture(params=["serial", "processes"])
def mode(request, tolerant_pool):
  return tolerant_pool if request.param == "processes" else None


@_hows
@pytest.mark.parametrize("groups", [1, 2])
def test_only_the_step_that_failed_is_missing(mode, how, groups):
  hands = [_by_hand(index) for index in range(_SIZE)]
  assert all(ended and broken for _, ended, broken in hands)
  with _tolerant(mode, how, groups) as batch:
    batch.reset()
    rolled = rollouts.roll(batch, _ACTIONS)
    for index, (steps, ended, _) in enumerate(hands):
      for (step, _), by_hand in zip(rolled, steps, strict=True):
        for field, expected in zip(step, by_hand, strict=True):
          np.testing.assert_array_equal(
              field[index], np.float32(expected), err_msg=str(index))
      seeds = {seed for seed, *_ in ended}
      finished = [episode for episode in batch.finished
                  if episode.seed in seeds]
      assert [(x.seed, x.length) for x in finished] == [x[:2] for x in ended]
      np.testing.assert_allclose(
          [x.score for x in finished], [x[2] for x in ended], rtol=1e-6)
    told = [one for incident in batch.incidents.take()
            for one in incident.broken]
    for index, (_, _, broken) in enumerate(hands):
      assert [(x.seed, len(x.action)) for x in told
              if x.environment == index] == broken
    assert len(batch.finished) == sum(len(ended) for _, ended, _ in hands)


def test_what_is_told_says_where_and_repeats_the_failure(mode):
  with _tolerant(mode, "raise") as batch:
    batch.reset()
    rollouts.roll(batch, _ACTIONS)
    for text, (broken,) in batch.incidents.take():
      assert text.startswith(
          f"Environment {broken.environment} ('Breaks', seed {broken.seed}, "
          f"step {len(broken.action) - 1} of its episode) failed in step():")
      assert "ValueError: broken" in text and "faulty_envs.py" in text
      env = faulty_envs.Breaks()
      env.reset(seed=broken.seed)
      convert = action_scaling.action_converter(env.action_space)
      *actions, last = convert(broken.action)
      for action in actions:
        env.step(action)
      with pytest.raises(ValueError, match="broken"):
        env.step(last)


@pytest.mark.parametrize("how, message", [
    ("observ", r"observation array\(\[nan\].*is not finite"),
    ("reward", "the reward .*inf.* is not finite")])
def test_what_is_not_finite_is_told(mode, how, message):
  with _tolerant(mode, how) as batch:
    batch.reset()
    rollouts.roll(batch, _ACTIONS)
    told = batch.incidents.take()
    assert told
    for text, (broken,) in told:
      assert re.search(message, text)
      where, = re.findall(r"step (\d+) of its episode", text)
      assert int(where) == len(broken.action) - 1


def test_same_bits_although_workers_die_as_well():
  with _tolerant(None, "raise", 2) as batch:
    first = batch.reset()
    steps = rollouts.roll(batch, _ACTIONS)
  with pool_lib.WorkerPool(
      2, incidents=failure_budget.FailureBudget(1000)) as workers, \
      _tolerant(workers, "raise", 2) as batch:
    assert batch.reset().tobytes() == first.tobytes()
    rolled = []
    for number, action in enumerate(_ACTIONS):
      if number in (3, 11, 23):
        os.kill(workers.pids[number % 2], signal.SIGKILL)
      rolled += rollouts.roll(batch, [action])
    rollouts.assert_same_bits(rolled, steps)


def test_a_snapshot_knows_nothing_of_what_broke(mode):
  with _tolerant(mode, "raise") as batch:
    batch.reset()
    rollouts.roll(batch, _ACTIONS[:20])
    assert batch.incidents.take()
    before = batch.snapshot()
    after = rollouts.roll(batch, _ACTIONS[20:])
    batch.restore(before)
    rollouts.assert_same_bits(rollouts.roll(batch, _ACTIONS[20:]), after)


@pytest.mark.parametrize("workers", [0, 2])
def test_too_many_are_an_error_that_says_what_failed(workers):
  incidents = failure_budget.FailureBudget(3)
  constructors = [toy.Counter, functools.partial(toy.Faulty, "raise")]
  def play(pool):
    with batch_env.BatchEnv(
        constructors, pool, incidents=incidents) as batch:
      batch.reset()
      with pytest.raises(base.EnvironmentFailure) as caught:
        for _ in range(20):
          batch.step(np.zeros((2, 1)))
      assert "ValueError: faulty step" in str(caught.value)
      told = batch.incidents.take()
      fatal = batch.incidents.fatal
      assert fatal.text == str(caught.value)
      for (broken,) in [x.broken for x in (*told, fatal)]:
        assert broken.environment == 1
        # Each of its episodes lasts a step, and fails at the next.
        assert len(broken.action) == 2
      assert len(told) == 3
      batch.reset()
  if workers:
    with pool_lib.WorkerPool(workers, incidents=incidents) as pool:
      play(pool)
  else:
    play(None)


def _first_seed(begins):
  """A run seed with which the first episodes of all environments begin."""
  return next(seed for seed in range(1000) if all(
      begins(episodes.episode_seed(seed, index, 0)) for index in range(_SIZE)))


@pytest.mark.parametrize("how", ["raise", "observ"])
@pytest.mark.parametrize("groups", [1, 2])
def test_episodes_that_do_not_begin_are_left_out(mode, how, groups):
  run_seed = _first_seed(lambda seed: not faulty_envs.Refuses.refuses(seed))
  with batch_env.BatchEnv(
      [functools.partial(faulty_envs.Refuses, how)] * _SIZE, mode, run_seed, groups,
      failure_budget.FailureBudget(1000)) as batch:
    batch.incidents.take()  # Of tests with the same workers.
    batch.reset()
    steps = rollouts.roll(batch, _ACTIONS)
    assert all(step.valid.all() for step, _ in steps)
    told = batch.incidents.take()
    running = batch.snapshot()
    after = rollouts.roll(batch, _ACTIONS)
    batch.restore(running)
    rollouts.assert_same_bits(rollouts.roll(batch, _ACTIONS), after)
  for index in range(_SIZE):
    seeds = [episodes.episode_seed(run_seed, index, number)
             for number in range(running.episode[index] + 1)]
    assert running.seed[index] == seeds[-1]
    refused = list(filter(faulty_envs.Refuses.refuses, seeds))
    assert refused and [
        broken.seed for _, (broken,) in told if broken.environment == index
        ] == refused
    ended = [len(_lengths(seed)) for seed in seeds[:-1] if seed not in refused]
    assert sum(ended) + running.length[index] == _STEPS
  for text, (broken,) in told:
    assert broken.action.shape == (0, 1)
    assert re.search("failed in reset|no beginning|not finite", text)


def _lengths(seed):
  """As many items as the episode with this seed has steps."""
  env = toy.Uneven(7)
  env.reset(seed=seed)
  for number in range(100):
    _, _, terminated, truncated, _ = env.step(np.zeros(1))
    if terminated or truncated:
      return range(number + 1)


def test_an_environment_that_never_begins_is_an_error(mode):
  with batch_env.BatchEnv(
      [toy.Counter, functools.partial(faulty_envs.Never)], mode,
      incidents=failure_budget.FailureBudget(1000)) as batch:
    batch.reset()
    with pytest.raises(ValueError, match="never again"):
      for _ in range(10):
        batch.step(np.zeros((2, 1)))
    _, (broken,) = batch.incidents.fatal
    assert (broken.environment, len(broken.action)) == (1, 0)


@_hows
@pytest.mark.parametrize("processes", [False, True])
def test_what_is_not_tolerated_leaves_its_episode(how, processes, pool):
  with batch_env.BatchEnv(
      [functools.partial(faulty_envs.Breaks, how)] * _SIZE, pool if processes else None,
      _SEED) as batch:
    batch.reset()
    with pytest.raises(ValueError) as caught:
      rollouts.roll(batch, _ACTIONS)
    text, (broken,) = batch.incidents.fatal
    assert text == str(caught.value.__cause__)
  failing = [index for index in range(_SIZE) if _by_hand(index)[2]]
  first = {index: next(step for step, row in enumerate(_by_hand(index)[0])
                       if not row[-1]) for index in failing}
  assert first[broken.environment] == min(first.values())
  assert (broken.seed, len(broken.action)) == _by_hand(
      broken.environment)[2][0]


@pytest.mark.parametrize("fault", ["reset", "constructor"])
def test_what_fails_before_an_episode_is_an_error(fault, mode):
  with pytest.raises(ValueError, match=f"faulty {fault}") as caught:
    with batch_env.BatchEnv(
        [functools.partial(toy.Faulty, fault)], mode,
        incidents=failure_budget.FailureBudget(9)) as batch:
      batch.reset([11])
  if fault == "reset":
    text, (broken,) = batch.incidents.fatal
    assert text == str(caught.value.__cause__)
    assert (broken.environment, broken.seed) == (0, 11)
    assert broken.action.shape == (0, 1)


def test_exits_are_errors():
  with batch_env.BatchEnv(
      [functools.partial(toy.Faulty, "exit")],
      incidents=failure_budget.FailureBudget(9)) as batch:
    batch.reset()
    batch.step(np.zeros((1, 1)))
    with pytest.raises(base.EnvironmentFailure, match="SystemExit"):
      batch.step(np.zeros((1, 1)))
