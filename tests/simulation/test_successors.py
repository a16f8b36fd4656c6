"""True successors, which cross apart from the rest, find their rows again."""

import functools
from typing import Any

import gymnasium
import numpy as np
import pytest
import tensorflow as tf

from agents.environments import batch_env
from agents.environments.data import episodes
from agents.simulation import in_graph_batch_env
from agents.simulation import simulate
from tests import modes
from tests import toy

_SEED = 3
_INF = np.inf
_SPACES = {
    "vector": gymnasium.spaces.Box(-_INF, _INF, (2,), np.float32),
    "scalar": gymnasium.spaces.Box(-_INF, _INF, (), np.float32),
    "image": gymnasium.spaces.Box(0, 255, (4, 3, 1), np.uint8),
    "choice": gymnasium.spaces.Discrete(2 ** 60)}
# Steps of the episodes of each environment.
_LENGTHS = {
    "one": (3,), "at once": (1, 1, 1), "apart": (2, 3, 7),
    "together": (4, 4, 4), "some together": (2, 4, 2, 5), "never": (99, 99)}
_spaces = pytest.mark.parametrize("space", _SPACES)
_lengths = pytest.mark.parametrize("lengths", _LENGTHS)
_both_modes = pytest.mark.parametrize(
    "eager", [True, False], ids=["eager", "graph"])


class _Telling(toy.Counter):
  """Observes seed and step, as any space can."""

  def __init__(self, space: gymnasium.Space, length: int):
    super().__init__(length)
    self.observation_space = space

  def _observ(self):
    space, number = self.observation_space, 100 * self._seed + self._step
    if isinstance(space, gymnasium.spaces.Discrete):
      return 2 ** 53 + number
    numbers = np.random.default_rng(number)
    if space.dtype == np.uint8:
      return numbers.integers(0, 256, space.shape, np.uint8)
    return numbers.normal(0, 9, space.shape).astype(np.float32)


class _Idle:
  """Does nothing in particular."""

  def noise(self, clock, amount):
    return tf.fill([amount, 1], tf.cast(clock, tf.float32))

  def initial_state(self, amount):
    return ()

  def act(self, observ, state, noise):
    return noise, state


def _constructors(space, lengths):
  return [functools.partial(_Telling, _SPACES[space], length)
          for length in _LENGTHS[lengths]]


def _by_hand(constructors, quotas):
  """Step each environment alone; return (observ, next_observ, end) by row.

  Args:
    quotas: For every collection, either steps or the episodes of each.
  """
  collections: list[Any] = []
  envs = [constructor() for constructor in constructors]
  episode = [0] * len(envs)
  observs = [_reset(env, index, 0) for index, env in enumerate(envs)]
  for quota in quotas:
    rows: list[Any] = []
    left = None if isinstance(quota, int) else list(quota)
    while len(rows) < quota if left is None else any(left):
      row = []
      for index, env in enumerate(envs):
        observ = next_observ = observs[index]
        end = False
        if left is None or left[index]:
          next_observ, _, end, _, _ = env.step(np.zeros(1))
        observs[index] = next_observ
        if end:
          episode[index] += 1
          observs[index] = _reset(env, index, episode[index])
          if left:
            left[index] -= 1
        row.append((observ, next_observ, end))
      rows.append(row)
    collections.append(rows)
  return collections


def _reset(env, index, episode):
  return env.reset(seed=episodes.episode_seed(_SEED, index, episode))[0]


def _assert_same_bits(transitions, rows):
  assert len(transitions.observ) == len(rows)
  for time, row in enumerate(rows):
    for index, (observ, next_observ, end) in enumerate(row):
      for field, expected in (
          (transitions.observ, observ), (transitions.next_observ, next_observ),
          (transitions.terminated, end)):
        tensor = field[time, index]
        array = np.array(expected, tensor.dtype.as_numpy_dtype)
        assert tensor.shape == array.shape
        assert tensor.numpy().tobytes() == array.tobytes(), (time, index)


def _collector(batch):
  """Return the function that collects from a carry."""
  env = in_graph_batch_env.InGraphBatchEnv(batch)
  @functools.partial(tf.function, autograph=False)
  def collect(carry, quota):
    steps = quota if isinstance(quota, int) else 40
    quota = None if isinstance(quota, int) else tf.constant(quota, tf.int32)
    return simulate.simulate(env, _Idle(), carry, steps, True, quota)
  return collect


def _assert_collects(constructors, quotas, eager):
  """Compare collections in a row with stepping by hand."""
  expected = _by_hand(constructors, quotas)
  with batch_env.BatchEnv(constructors, seed=_SEED) as batch, \
      modes.functions_run_eagerly(eager):
    collect = _collector(batch)
    carry = simulate.initial_carry(batch.reset())
    for quota, rows in zip(quotas, expected, strict=True):
      collected = collect(carry, quota)
      carry = collected.carry
      _assert_same_bits(collected.transitions, rows)
      # Each of them is taken once.
      assert batch.final_observ == []


@pytest.mark.parametrize("name", _SPACES)
def test_resets_and_successors_differ(name):
  # Else nothing here would notice one taken for the other.
  rows, = _by_hand(_constructors(name, "some together"), [12])
  seen = {np.array(value).tobytes() for row in rows for *policy_and_value, _ in row
          for value in policy_and_value}
  # First ones, successors, and resets; those of the last step are not seen.
  resets = sum(end for row in rows[:-1] for *_, end in row)
  assert len(seen) == 4 + 4 * 12 + resets and resets > 5


@_lengths
@_spaces
def test_one_collection(space, lengths):
  _assert_collects(_constructors(space, lengths), [12], eager=True)


@pytest.mark.parametrize("space, lengths", [
    *((space, "some together") for space in _SPACES),
    *(pytest.param("vector", lengths, marks=pytest.mark.slow)
      for lengths in _LENGTHS if lengths != "some together")])
def test_collections_in_a_row(space, lengths):
  # Some of them end in the middle of episodes, some hold no end at all.
  _assert_collects(
      _constructors(space, lengths), [5, 1, 1, 1, 8, 2], eager=False)


@pytest.mark.parametrize("lengths", ["apart", "together"])
@pytest.mark.parametrize("space, eager", [
    *((space, True) for space in _SPACES), ("vector", False),
    *(pytest.param(space, False, marks=pytest.mark.slow)
      for space in _SPACES if space != "vector")])
def test_quotas_in_a_row(space, lengths, eager):
  _assert_collects(_constructors(space, lengths), [
      (1, 1, 1), (3, 1, 0), (0, 2, 1), (2, 2, 2)], eager)


@_both_modes
@pytest.mark.parametrize("quota", [5, (2, 1)], ids=["steps", "episodes"])
def test_observations_without_numbers(quota, eager):
  nothing = gymnasium.spaces.Box(-_INF, _INF, (0,), np.float32)
  _assert_collects([functools.partial(_Telling, nothing, length)
                    for length in (2, 3)], [quota] * 2, eager)


@pytest.mark.parametrize("quota", [4, (2, 1, 3)], ids=["steps", "episodes"])
@pytest.mark.parametrize("space", ["vector", "image", "choice"])
def test_collections_in_one_graph(space, quota):
  constructors = _constructors(space, "apart")
  expected = _by_hand(constructors, [quota] * 3)
  with batch_env.BatchEnv(constructors, seed=_SEED) as batch:
    collect = _collector(batch)
    @tf.function
    def collect_all(carry):
      transitions = []
      for _ in range(3):
        collected = collect(carry, quota)
        carry = collected.carry
        transitions.append(collected.transitions)
      return transitions
    carry = simulate.initial_carry(batch.reset())
    for transitions, rows in zip(collect_all(carry), expected, strict=True):
      _assert_same_bits(transitions, rows)
    assert batch.final_observ == []


def test_they_are_taken_although_nobody_wants_them():
  # An evaluation looks at scores alone; the next one begins with none.
  constructors = _constructors("vector", "apart")
  with batch_env.BatchEnv(constructors, seed=_SEED) as batch:
    collect = _collector(batch)
    @tf.function
    def play(carry):
      return collect(carry, (2, 1, 1)).carry
    carry = simulate.initial_carry(batch.reset())
    for _ in range(2):
      carry = play(carry)
      assert batch.final_observ == []
    assert len(batch.finished) == 8
