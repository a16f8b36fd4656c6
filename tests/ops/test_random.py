"""Random numbers that depend only on seed and counter."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from agents.ops import random
from tests.support import modes


def _uniform(key):
  return random.uniform([100], key)


def _normal(key):
  return random.normal([100], key)


def _permutation(key):
  return random.permutation(100, key, first=tf.range(100) < 70)


_each_draw = pytest.mark.parametrize("function", [_uniform, _normal, _permutation])


def _draw(function, seed, counter):
  return function(random.key(seed, tf.constant(counter, tf.int64))).numpy()


@pytest.mark.fast_variants(3)
@_each_draw
@pytest.mark.parametrize("jit_compile", [False, True], ids=["graph", "xla"])
def test_compiled_functions_return_the_numbers_of_eager_execution(function, jit_compile):
  # The key is an argument, because TensorFlow would fold a constant key outside
  # of XLA.
  compiled = tf.function(function, jit_compile=jit_compile)
  # The logarithm and cosine in a normal may differ in their last bit.
  tolerance = 1e-5 if function is _normal else 0
  np.testing.assert_allclose(_draw(compiled, 3, 7), _draw(function, 3, 7), tolerance, tolerance)


@_each_draw
def test_numbers_depend_only_on_seed_and_counter(function):
  first = _draw(function, 3, 7)
  tf.random.set_seed(99)
  tf.random.uniform([10])
  np.testing.assert_array_equal(_draw(function, 3, 7), first)


@modes.eager_and_compiled
@_each_draw
def test_numbers_differ_for_every_counter_and_seed(function, prepare):
  def numbers(seed, counter):
    return function(tf.stack([seed, counter]))

  numbers = prepare(numbers)
  keys = [(seed, counter) for seed in (0, 1, 2**32 - 1) for counter in (0, 1, 2, 2**31, 2**40)]
  drawn = [numbers(*[tf.constant(x, tf.int64) for x in key]).numpy() for key in keys]
  assert len({array.tobytes() for array in drawn}) == len(keys)


def test_key_contains_seed_and_counter():
  key = random.key(2**32 - 1, tf.constant(5))
  np.testing.assert_array_equal(key, [2**32 - 1, 5])
  assert key.dtype == tf.int64


def test_streams_differ_by_run_seed_and_by_name():
  seeds = [
    random.stream(run_seed, name)
    for run_seed in range(20)
    for name in ("act", "shuffle", "policy", "value", "eval")
  ]
  assert len(set(seeds)) == len(seeds)
  assert seeds[0] == random.stream(0, "act")
  assert all(0 <= seed < 2**32 for seed in seeds)


def test_uniform_fills_the_unit_interval():
  numbers = random.uniform([100_000], random.key(0, tf.constant(0))).numpy()
  assert numbers.min() >= 0 and numbers.max() < 1
  counts, _ = np.histogram(numbers, 10, (0, 1))
  assert np.abs(counts - 10_000).max() < 5 * np.sqrt(10_000 * 0.9)


def test_normal_has_the_moments_of_a_standard_normal():
  numbers = random.normal([100_000], random.key(0, tf.constant(0))).numpy()
  error = 1 / np.sqrt(100_000)
  assert abs(numbers.mean()) < 5 * error
  assert abs(numbers.var() - 1) < 5 * np.sqrt(2) * error
  assert abs((numbers**4).mean() - 3) < 5 * np.sqrt(96) * error


@modes.eager_and_compiled
def test_permutation_contains_every_index_once(prepare):
  function = prepare(lambda key: random.permutation(257, key, first=tf.fill([257], True)))
  for counter in range(3):
    order = function(random.key(0, tf.constant(counter))).numpy()
    np.testing.assert_array_equal(np.sort(order), np.arange(257))
    assert (order != np.arange(257)).any()


@pytest.mark.fast_variants(3)
@modes.eager_and_compiled
@pytest.mark.parametrize(
  "first", [[1, 1, 1, 0, 0], [0, 1, 0, 1, 0], [0, 0, 0, 0, 1], [0, 0, 0, 0, 0]], ids=str
)
def test_permutation_begins_with_the_selected_indices(prepare, first):
  first = np.array(first, bool)
  function = prepare(lambda key, first: random.permutation(5, key, first))
  orders = [
    function(random.key(0, tf.constant(counter)), tf.constant(first)) for counter in range(20)
  ]
  for order in orders:
    order = order.numpy()
    np.testing.assert_array_equal(np.sort(order[: first.sum()]), np.flatnonzero(first))
    # The other indices are not shuffled.
    np.testing.assert_array_equal(order[first.sum() :], np.flatnonzero(~first))
  if first.sum() > 1:
    assert len({order.numpy().tobytes() for order in orders}) > 1


def test_selecting_more_indices_keeps_the_order_of_the_first_ones():
  key = random.key(0, tf.constant(0))
  few, many = (
    random.permutation(50, key, first=tf.range(50) < count).numpy() for count in (10, 40)
  )
  np.testing.assert_array_equal(many[many < 10], few[:10])


def test_all_orders_are_equally_probable():
  # Counts the orders of indices 0 to 2; index 3 always comes last.
  draw = tf.function(
    lambda counter: random.permutation(4, random.key(0, counter), first=tf.range(4) < 3)[:3]
  )
  count = 1200
  orders = collections.Counter(
    tuple(draw(tf.constant(counter)).numpy()) for counter in range(count)
  )
  assert len(orders) == 6
  error = np.sqrt(count * 1 / 6 * 5 / 6)
  assert max(abs(n - count / 6) for n in orders.values()) < 5 * error
