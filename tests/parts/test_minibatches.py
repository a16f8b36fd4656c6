"""Dealing rows into minibatches."""

from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from agents.ops import random
from agents.parts import minibatches
from tests import modes


class _Rows(NamedTuple):
  number: tf.Tensor  # [N]
  matrix: tf.Tensor  # [N, 2, 3], 100 * number + position.
  flag: tf.Tensor  # [N], whether number is odd.


def _rows(amount):
  number = np.arange(amount)
  matrix = 100.0 * number[:, None, None] + np.arange(6).reshape(2, 3)
  return _Rows(tf.constant(number), tf.constant(matrix),
               tf.constant(number % 2 == 1))


def _shuffle(amount, size, counter=0, function=minibatches.shuffle):
  return function(_rows(amount), size, random.key(3, tf.constant(counter)))


@modes.both
@pytest.mark.parametrize("size", [1, 4, 12])
def test_every_row_is_dealt_once(prepare, size):
  dealt = _shuffle(12, size, function=prepare(minibatches.shuffle))
  assert dealt.number.shape == (12 // size, size)
  assert dealt.matrix.shape == (12 // size, size, 2, 3)
  np.testing.assert_array_equal(np.sort(dealt.number, None), np.arange(12))


@modes.both
def test_fields_of_a_row_stay_together(prepare):
  number, matrix, flag = _shuffle(
      24, 4, function=prepare(minibatches.shuffle))
  np.testing.assert_array_equal(matrix[..., 0, 0], 100 * number)
  np.testing.assert_array_equal(matrix[..., 1, 2], 100 * number + 5)
  np.testing.assert_array_equal(flag, number % 2 == 1)


def test_every_counter_deals_anew():
  orders = {_shuffle(24, 4, counter).number.numpy().tobytes()
            for counter in range(10)}
  assert len(orders) == 10


def test_order_is_that_of_the_permutation():
  np.testing.assert_array_equal(
      tf.reshape(_shuffle(12, 4).number, [-1]),
      random.permutation(12, random.key(3, tf.constant(0))))


@modes.both
def test_take_returns_one_minibatch(prepare):
  dealt = _shuffle(12, 4)
  take = prepare(minibatches.take)
  for index in range(3):
    taken = take(dealt, tf.constant(index))
    for field, batches in zip(taken, dealt, strict=True):
      np.testing.assert_array_equal(field, batches[index])


@pytest.mark.parametrize("size", [5, 24])
def test_a_size_that_does_not_divide_is_refused(size):
  with pytest.raises(
      ValueError, match=f"Minibatches of {size} don't divide 12 rows"):
    _shuffle(12, size)
