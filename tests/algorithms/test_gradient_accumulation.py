"""Chunks of arrays that contain padding."""

import numpy as np
import pytest
import tensorflow as tf

from agents.algorithms import gradient_accumulation
from tests.support import modes


@pytest.fixture(autouse=True)
def _chunks_of_four_rows(monkeypatch):
  monkeypatch.setattr(gradient_accumulation, "_CHUNK_ROWS", 4)
  monkeypatch.setattr(gradient_accumulation, "MAX_ROWS", 4)


def test_padded_rows_is_the_next_multiple_of_the_number_of_chunks():
  for rows in range(1, 60):
    num_chunks = -(-rows // 4)  # Chunks have up to four rows.
    sufficient = [n for n in range(rows, rows + 60) if n % num_chunks == 0]
    assert gradient_accumulation.padded_rows(rows) == sufficient[0]
    assert gradient_accumulation.padded_rows(sufficient[0]) == sufficient[0]


def test_small_arrays_are_one_chunk(monkeypatch):
  monkeypatch.setattr(gradient_accumulation, "_CHUNK_ROWS", 512)
  monkeypatch.setattr(gradient_accumulation, "MAX_ROWS", 2048)
  assert [gradient_accumulation.padded_rows(n) for n in (1, 513, 2047, 2049, 30_000)] == [
    1,
    513,
    2047,
    2050,
    30_031 // 59 * 59,
  ]
  assert gradient_accumulation.split(tf.range(2048)).shape == (1, 2048)
  assert gradient_accumulation.split(tf.range(2050)).shape == (5, 410)


@pytest.mark.parametrize("rows", range(1, 30))
def test_split_keeps_the_order_and_fills_chunks(rows):
  rows = gradient_accumulation.padded_rows(rows)
  index = np.arange(rows)
  parts = gradient_accumulation.split(
    {
      "index": tf.constant(index),
      "matrix": tf.constant(10 * index[:, None, None] + np.zeros((2, 3))),
    }
  )
  num_chunks, size = parts["index"].shape
  assert num_chunks == -(-rows // 4) and num_chunks * size == rows and size <= 4
  assert parts["matrix"].shape == (num_chunks, size, 2, 3)
  np.testing.assert_array_equal(tf.reshape(parts["index"], [-1]), index)
  np.testing.assert_array_equal(parts["matrix"][..., 1, 2], 10 * parts["index"])


@modes.eager_and_compiled
@pytest.mark.parametrize("rows", [3, 4, 9, 20])
def test_num_filled_counts_chunks_with_valid_rows(prepare, rows):
  rows = gradient_accumulation.padded_rows(rows)
  filled = prepare(lambda count: gradient_accumulation.num_filled(count, rows))
  chunks = gradient_accumulation.split(tf.range(rows)).numpy()
  for count in range(rows + 1):
    expected = sum((chunk < count).any() for chunk in chunks)
    assert filled(tf.constant(count)) == expected


def _data(num_chunks=5, size=3):
  index = np.arange(num_chunks * size, dtype=np.float32)
  index = index.reshape(num_chunks, size)
  return {
    "index": tf.constant(index),
    "pair": tf.constant(100 * index[..., None] + np.array([0, 1], np.float32)),
  }


@modes.eager_and_compiled
@pytest.mark.parametrize("rows", [3, 20])
def test_map_rows_returns_zeros_for_unprocessed_chunks(prepare, rows):
  data = tf.constant(np.arange(2.0 * rows, dtype=np.float32).reshape(rows, 2))
  function = prepare(
    lambda num_rows: gradient_accumulation.map_rows(
      lambda chunk: tf.concat([chunk, chunk + 1], -1), data, num_rows
    )
  )
  expected = np.concatenate([data, data + 1], -1)
  for num_rows in range(1, rows + 1):
    result = function(tf.constant(num_rows))
    assert result.shape == (rows, 4)
    processed = min(rows, -(-num_rows // 4) * 4)
    np.testing.assert_array_equal(result[:processed], expected[:processed])
    np.testing.assert_array_equal(result[processed:], 0)


@modes.eager_and_compiled
@pytest.mark.parametrize("chunk_count", [1, 5])
def test_sum_chunks_sums_over_the_first_chunks(prepare, chunk_count):
  data = _data(chunk_count)
  function = prepare(
    lambda num_chunks: gradient_accumulation.sum_chunks(
      lambda chunk: (tf.reduce_sum(chunk["index"]), {"pair": chunk["pair"]}), data, num_chunks
    )
  )
  for num_chunks in range(1, chunk_count + 1):
    index_sum, sums = function(tf.constant(num_chunks))
    assert index_sum == data["index"].numpy()[:num_chunks].sum()
    np.testing.assert_array_equal(sums["pair"], data["pair"].numpy()[:num_chunks].sum(0))


@modes.eager_and_compiled
def test_empty_chunks_are_not_evaluated(prepare):
  data = _data()["index"].numpy()
  data[2:] = np.nan
  total = prepare(
    lambda num_chunks: gradient_accumulation.sum_chunks(
      tf.reduce_sum, tf.constant(data), num_chunks
    )
  )
  assert total(tf.constant(2)) == data[:2].sum()


@modes.eager_and_compiled
def test_take_returns_one_chunk(prepare):
  data = _data()
  taken = prepare(lambda index: gradient_accumulation.take(data, index))(tf.constant(3))
  for name, value in data.items():
    np.testing.assert_array_equal(taken[name], value[3])
