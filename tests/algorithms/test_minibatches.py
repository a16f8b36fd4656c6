"""Dealing rows into minibatches."""

from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from agents.algorithms import chunks
from agents.algorithms import minibatches
from agents.ops import random
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


def _dealer(rows, size, prepare=lambda function: function):
  """Return a function that deals and takes all batches."""
  def deal(count, counter):
    dealt = minibatches.deal(
        _rows(rows), tf.range(rows) < count, size, random.key(3, counter))
    return [dealt.take(tf.constant(index)) for index in range(
        1 if size is None else -(-rows // size))], dealt.amount
  deal = prepare(deal)
  def batches(count, counter=0):
    batches, amount = deal(tf.constant(count), tf.constant(counter))
    return [minibatches.Batch(_Rows(*[x.numpy() for x in batch.data]),
                              batch.weight.numpy(), int(batch.amount))
            for batch in batches], int(amount)
  return batches


@modes.eager_and_compiled
@pytest.mark.parametrize("size", [4, 5, 12, 50])
def test_every_valid_row_is_dealt_once(prepare, size):
  deal = _dealer(12, size, prepare)
  for count in range(1, 13):
    batches, amount = deal(count)
    assert amount == -(-count // size)
    dealt = []
    for index, (data, weight, chunk_count) in enumerate(batches):
      valid = weight > 0
      np.testing.assert_allclose(weight, valid / max(1, valid.sum()), 1e-6)
      assert data.number.shape == valid.shape == (1, size)
      assert data.matrix.shape == (1, size, 2, 3)
      assert chunk_count == valid.any()
      # Full ones first, then the rest, then nothing.
      assert valid.sum() == np.clip(count - index * size, 0, size)
      assert (np.diff(valid[0].astype(int)) <= 0).all()
      dealt.extend(data.number[valid])
    np.testing.assert_array_equal(np.sort(dealt), np.arange(count))


@modes.eager_and_compiled
def test_fields_of_a_row_stay_together(prepare):
  batches, _ = _dealer(24, 7, prepare)(20)
  for (number, matrix, flag), _, _ in batches:
    np.testing.assert_array_equal(matrix[..., 0, 0], 100 * number)
    np.testing.assert_array_equal(matrix[..., 1, 2], 100 * number + 5)
    np.testing.assert_array_equal(flag, number % 2 == 1)


def test_every_counter_deals_anew():
  orders = {np.concatenate([
      batch.data.number for batch in _dealer(24, 4)(20, counter)[0]]).tobytes()
            for counter in range(10)}
  assert len(orders) == 10


def test_order_is_that_of_the_permutation():
  batches, amount = _dealer(12, 4)(9)
  numbers = np.concatenate(
      [batch.data.number[batch.weight > 0] for batch in batches])
  order = random.permutation(
      12, random.key(3, tf.constant(0)), first=tf.range(12) < 9)
  np.testing.assert_array_equal(numbers, order[:9])
  assert amount == 3


@modes.eager_and_compiled
def test_large_minibatches_are_chunks_of_which_the_first_are_filled(
    prepare, monkeypatch):
  monkeypatch.setattr(chunks, "_SIZE", 4)
  monkeypatch.setattr(chunks, "_SMALL", 4)
  deal = _dealer(24, 10, prepare)  # Three chunks of four rows each.
  for count, filled in ((24, [3, 3, 1]), (15, [3, 2, 0]), (3, [1, 0, 0])):
    batches, amount = deal(count)
    assert amount == -(-count // 10)
    assert [batch.amount for batch in batches] == filled
    dealt = [batch.data.number[batch.weight > 0] for batch in batches]
    np.testing.assert_array_equal(
        np.sort(np.concatenate(dealt)), np.arange(count))
    for batch in batches:
      assert batch.weight.shape == (3, 4)
      assert not batch.weight[batch.amount:].any()


@modes.eager_and_compiled
def test_without_a_size_there_is_one_batch_of_all(prepare, monkeypatch):
  monkeypatch.setattr(chunks, "_SIZE", 4)
  monkeypatch.setattr(chunks, "_SMALL", 4)
  deal = _dealer(12, None, prepare)
  for count, chunk_count in ((10, 3), (9, 3), (8, 2), (1, 1)):
    [((number, matrix, _), weight, filled)], amount = deal(count)
    assert amount == 1 and filled == chunk_count
    np.testing.assert_array_equal(number, np.arange(12).reshape(3, 4))
    np.testing.assert_array_equal(matrix[..., 1, 2], 100 * number + 5)
    np.testing.assert_allclose(weight, (number < count) / count, 1e-6)
