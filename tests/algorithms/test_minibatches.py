"""Random splits of rows into minibatches."""

from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from agents.algorithms import gradient_accumulation, minibatches
from agents.ops import masked, random
from tests.support import modes


class _Rows(NamedTuple):
  row: tf.Tensor  # [N], index of the row.
  matrix: tf.Tensor  # [N, 2, 3], 100 * row + position in the matrix.
  flag: tf.Tensor  # [N], whether `row` is odd.


def _rows(num_rows):
  row = np.arange(num_rows)
  matrix = 100.0 * row[:, None, None] + np.arange(6).reshape(2, 3)
  return _Rows(tf.constant(row), tf.constant(matrix), tf.constant(row % 2 == 1))


def _splitter(rows, size, prepare=lambda function: function):
  """Returns a function from the number of valid rows to all minibatches."""

  def split(count, counter):
    result = minibatches.shuffle_split(
      _rows(rows), tf.range(rows) < count, size, random.key(3, counter)
    )
    return [
      result.take(tf.constant(index)) for index in range(1 if size is None else -(-rows // size))
    ], result.num_minibatches

  split = prepare(split)

  def arrays(count, counter=0):
    result, num_minibatches = split(tf.constant(count), tf.constant(counter))
    return tf.nest.map_structure(lambda tensor: tensor.numpy(), result), int(num_minibatches)

  return arrays


@modes.compiled_slowly
@pytest.mark.parametrize("size", [4, 5, 12, 50])
def test_minibatches_contain_every_valid_row_once(prepare, size):
  split = _splitter(12, size, prepare)
  for count in range(1, 13):
    result, num_minibatches = split(count)
    assert num_minibatches == -(-count // size)
    rows = []
    for index, (samples, weight) in enumerate(result):
      valid = weight > 0
      np.testing.assert_allclose(weight, valid / max(1, valid.sum()), 1e-6)
      assert samples.row.shape == valid.shape == (size,)
      assert samples.matrix.shape == (size, 2, 3)
      # Full minibatches precede a partly filled one; empty ones come last.
      assert valid.sum() == np.clip(count - index * size, 0, size)
      assert (np.diff(valid.astype(int)) <= 0).all()
      rows.extend(samples.row[valid])
    np.testing.assert_array_equal(np.sort(rows), np.arange(count))


@modes.compiled_slowly
def test_fields_of_a_row_stay_together(prepare):
  result, _ = _splitter(24, 7, prepare)(20)
  for (row, matrix, flag), _ in result:
    np.testing.assert_array_equal(matrix[..., 0, 0], 100 * row)
    np.testing.assert_array_equal(matrix[..., 1, 2], 100 * row + 5)
    np.testing.assert_array_equal(flag, row % 2 == 1)


def test_every_counter_gives_another_order():
  orders = {
    np.concatenate(
      [minibatch.samples.row for minibatch in _splitter(24, 4)(20, counter)[0]]
    ).tobytes()
    for counter in range(10)
  }
  assert len(orders) == 10


def test_order_equals_the_random_permutation():
  result, num_minibatches = _splitter(12, 4)(9)
  rows = np.concatenate([samples.row[weight > 0] for samples, weight in result])
  order = random.permutation(12, random.key(3, tf.constant(0)), first=tf.range(12) < 9)
  np.testing.assert_array_equal(rows, order[:9])
  assert num_minibatches == 3


@pytest.fixture(name="chunks_of_four_rows")
def _chunks_of_four_rows(monkeypatch):
  monkeypatch.setattr(gradient_accumulation, "_CHUNK_ROWS", 4)
  monkeypatch.setattr(gradient_accumulation, "MAX_ROWS", 4)


@modes.compiled_slowly
@pytest.mark.usefixtures("chunks_of_four_rows")
def test_large_minibatches_are_split_into_chunks(prepare):
  # A minibatch has three chunks of four rows.
  split = _splitter(24, 10, prepare)
  for count, filled in ((24, [3, 3, 1]), (15, [3, 2, 0]), (3, [1, 0, 0])):
    result, num_minibatches = split(count)
    assert num_minibatches == -(-count // 10)
    assert [minibatch.num_chunks for minibatch in result] == filled
    rows = [minibatch.samples.row[minibatch.weight > 0] for minibatch in result]
    np.testing.assert_array_equal(np.sort(np.concatenate(rows)), np.arange(count))
    for minibatch in result:
      assert minibatch.weight.shape == (3, 4)
      assert not minibatch.weight[minibatch.num_chunks :].any()


@modes.compiled_slowly
@pytest.mark.usefixtures("chunks_of_four_rows")
def test_size_none_puts_all_rows_into_one_minibatch(prepare):
  split = _splitter(12, None, prepare)
  for count, num_chunks in ((10, 3), (9, 3), (8, 2), (1, 1)):
    [((row, matrix, _), weight, filled)], num_minibatches = split(count)
    assert num_minibatches == 1 and filled == num_chunks
    np.testing.assert_array_equal(row, np.arange(12).reshape(3, 4))
    np.testing.assert_array_equal(matrix[..., 1, 2], 100 * row + 5)
    np.testing.assert_allclose(weight, (row < count) / count, 1e-6)


@modes.compiled_slowly
@pytest.mark.parametrize("max_rows", [4, 2048])
def test_sum_is_independent_of_chunks(prepare, max_rows, monkeypatch):
  monkeypatch.setattr(gradient_accumulation, "_CHUNK_ROWS", 4)
  monkeypatch.setattr(gradient_accumulation, "MAX_ROWS", max_rows)

  def sums(count):
    minibatch = minibatches.minibatch(_rows(12), masked.weight(tf.range(12) < count))
    return minibatch.sum(
      lambda samples, weight: (
        tf.reduce_sum(tf.cast(samples.row, tf.float32) * weight),
        tf.reduce_sum(tf.cast(weight > 0, tf.int32)),
      )
    )

  sums = prepare(sums)
  for count in range(1, 13):
    mean, rows = sums(tf.constant(count))
    np.testing.assert_allclose(mean, (count - 1) / 2, rtol=1e-6)
    assert rows == count


@modes.compiled_slowly
@pytest.mark.parametrize("max_rows", [4, 2048])
def test_map_rows_computes_the_first_rows(prepare, max_rows, monkeypatch):
  monkeypatch.setattr(gradient_accumulation, "_CHUNK_ROWS", 4)
  monkeypatch.setattr(gradient_accumulation, "MAX_ROWS", max_rows)
  data = tf.constant(np.arange(24, dtype=np.float32).reshape(12, 2))
  function = prepare(
    lambda count: minibatches.map_rows(lambda rows: tf.concat([rows, rows + 1], -1), data, count)
  )
  for count in range(1, 13):
    result = function(tf.constant(count))
    assert result.shape == (12, 4)
    np.testing.assert_array_equal(result[:count], np.concatenate([data, data + 1], -1)[:count])


def test_small_minibatches_do_not_use_chunks(monkeypatch):
  for name in (
    "split_minibatch",
    "map_rows",
    "split",
    "take",
    "num_filled",
    "padded_rows",
    "sum_chunks",
  ):
    monkeypatch.delattr(gradient_accumulation, name)
  result, _ = _splitter(2048, 1024)(2000)
  assert [minibatch.weight.shape for minibatch in result] == 2 * [(1024,)]
  assert minibatches.minibatch(_rows(2048), tf.zeros([2048])).weight.shape == (2048,)
