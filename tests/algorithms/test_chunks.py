"""Partly filled arrays, chunk by chunk."""

import numpy as np
import pytest
import tensorflow as tf

from agents.algorithms import chunks
from tests import modes


@pytest.fixture(autouse=True)
def _few_rows_a_chunk(monkeypatch):
  monkeypatch.setattr(chunks, "_CHUNK_ROWS", 4)
  monkeypatch.setattr(chunks, "MAX_ROWS", 4)


def test_the_least_number_that_splits_without_a_rest():
  for rows in range(1, 60):
    amount = -(-rows // 4)  # Chunks of up to four.
    sufficient = [n for n in range(rows, rows + 60) if n % amount == 0]
    assert chunks.padded_rows(rows) == sufficient[0]
    assert chunks.padded_rows(chunks.padded_rows(rows)) == chunks.padded_rows(rows)


def test_small_arrays_are_one_chunk(monkeypatch):
  monkeypatch.setattr(chunks, "_CHUNK_ROWS", 512)
  monkeypatch.setattr(chunks, "MAX_ROWS", 2048)
  assert [chunks.padded_rows(n) for n in (1, 513, 2047, 2049, 30_000)] == [
      1, 513, 2047, 2050, 30_031 // 59 * 59]
  assert chunks.split(tf.range(2048)).shape == (1, 2048)
  assert chunks.split(tf.range(2050)).shape == (5, 410)


@pytest.mark.parametrize("rows", range(1, 30))
def test_chunks_are_as_large_as_they_may_be_and_in_order(rows):
  rows = chunks.padded_rows(rows)
  number = np.arange(rows)
  parts = chunks.split({
      "number": tf.constant(number),
      "matrix": tf.constant(10 * number[:, None, None] + np.zeros((2, 3)))})
  amount, size = parts["number"].shape
  assert amount == -(-rows // 4) and amount * size == rows and size <= 4
  assert parts["matrix"].shape == (amount, size, 2, 3)
  np.testing.assert_array_equal(
      tf.reshape(parts["number"], [-1]), number)
  np.testing.assert_array_equal(
      parts["matrix"][..., 1, 2], 10 * parts["number"])


@modes.eager_and_compiled
@pytest.mark.parametrize("rows", [3, 4, 9, 20])
def test_filled_counts_the_chunks_that_hold_any(prepare, rows):
  rows = chunks.padded_rows(rows)
  filled = prepare(lambda count: chunks.num_filled(count, rows))
  of = chunks.split(tf.range(rows)).numpy()
  for count in range(rows + 1):
    expected = sum((chunk < count).any() for chunk in of)
    assert filled(tf.constant(count)) == expected


def _data(amount=5, size=3):
  number = np.arange(amount * size, dtype=np.float32).reshape(amount, size)
  return {"number": tf.constant(number),
          "pair": tf.constant(
              100 * number[..., None] + np.array([0, 1], np.float32))}


@modes.eager_and_compiled
def test_apply_fills_the_first_chunks_and_leaves_the_rest_zero(prepare):
  data = _data()
  function = prepare(lambda amount: chunks.map_chunks(
      lambda chunk: chunk["pair"] + chunk["number"][:, None] + 1, data, amount,
      (2,)))
  expected = data["pair"] + data["number"][..., None] + 1
  for amount in range(6):
    result = function(tf.constant(amount))
    assert result.shape == (5, 3, 2)
    np.testing.assert_array_equal(result[:amount], expected[:amount])
    np.testing.assert_array_equal(result[amount:], 0)


@modes.eager_and_compiled
def test_apply_needs_no_loop_for_a_single_chunk(prepare):
  data = _data(1)
  result = prepare(lambda amount: chunks.map_chunks(
      lambda chunk: chunk["number"] + 1, data, amount))(tf.constant(1))
  np.testing.assert_array_equal(result, data["number"] + 1)


@modes.eager_and_compiled
@pytest.mark.parametrize("chunk_count", [1, 5])
def test_total_sums_over_the_first_chunks_at_least_one(prepare, chunk_count):
  data = _data(chunk_count)
  function = prepare(lambda amount: chunks.sum_chunks(
      lambda chunk: (tf.reduce_sum(chunk["number"]),
                     {"by_row": chunk["pair"]}), data, amount))
  for amount in range(1, chunk_count + 1):
    number, parts = function(tf.constant(amount))
    assert number == data["number"].numpy()[:amount].sum()
    np.testing.assert_array_equal(
        parts["by_row"], data["pair"].numpy()[:amount].sum(0))


@modes.eager_and_compiled
def test_chunks_that_hold_nothing_are_not_looked_at(prepare):
  data = _data()["number"].numpy()
  data[2:] = np.nan
  total = prepare(lambda amount: chunks.sum_chunks(
      tf.reduce_sum, tf.constant(data), amount))
  assert total(tf.constant(2)) == data[:2].sum()


@modes.eager_and_compiled
def test_take_returns_one_chunk(prepare):
  data = _data()
  taken = prepare(lambda index: chunks.take(data, index))(tf.constant(3))
  for name, value in data.items():
    np.testing.assert_array_equal(taken[name], value[3])
