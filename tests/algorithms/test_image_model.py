"""`ImageModel` computes the results of `FeedForward` in chunks."""

import gymnasium
import numpy as np
import pytest
import tensorflow as tf

from agents import build, types
from agents import config as config_lib
from agents.algorithms import feed_forward_model, image_model

_ROWS, _SEQUENCES = 11, 3
_SPACE = gymnasium.spaces.Box(0, 255, (40, 40), np.uint8)


def _algorithm(share_core, stack):
  config = config_lib.Config().override(
    {
      "network.share_core": share_core,
      "network.frame_stack": stack,
      "network.policy_layers": [4],
      "network.value_layers": [4],
    }
  )
  return build.algorithm(config, _SPACE, gymnasium.spaces.Discrete(3))


def _batch(stack, num_valid):
  rng = np.random.default_rng(0)
  frames = tf.constant(rng.integers(0, 256, (20, 40, 40), dtype=np.uint8))

  def observ(rows):
    return types.FrameIndices(frames, tf.constant(rng.integers(0, 20, (rows, stack)), tf.int32))

  sequence = np.minimum(np.arange(_ROWS) // 4, _SEQUENCES - 1).astype(np.int32)
  return types.Experience(
    observ(_ROWS),
    *[None] * 4,
    valid=tf.range(_ROWS) < num_valid,
    last=None,
    sequence=tf.constant(sequence),
    final_observ=observ(_ROWS),
  )


@pytest.mark.fast_variants(2)
@pytest.mark.parametrize("use_xla", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("num_valid", [_ROWS, 6])
@pytest.mark.parametrize("share_core", [True, False])
@pytest.mark.parametrize("stack", [1, 3])
def test_results_equal_those_without_chunks(stack, share_core, num_valid, use_xla, monkeypatch):
  monkeypatch.setattr(image_model, "_CHUNK_ROWS", 4)
  algorithm, batch = _algorithm(share_core, stack), _batch(stack, num_valid)
  model = algorithm.model
  assert isinstance(model, image_model.ImageModel)
  plain = feed_forward_model.FeedForward.policy_and_values(model, batch)
  expected = (
    model._policy(batch.observ),
    model._value(batch.observ),
    model._value(batch.final_observ),
  )
  compute = tf.function(lambda: model.policy_and_values(batch), jit_compile=use_xla)
  for policy, (value, final_value) in (compute(), plain):
    for result, reference, rows in (
      (policy, expected[0], num_valid),
      (value, expected[1][:, 0], num_valid),
      (final_value, expected[2][:, 0], _SEQUENCES),
    ):
      assert result.shape == reference.shape
      np.testing.assert_allclose(result[:rows], reference[:rows], rtol=1e-4, atol=1e-6)


def test_only_chunks_with_needed_rows_are_computed(monkeypatch):
  monkeypatch.setattr(image_model, "_CHUNK_ROWS", 4)
  rows = image_model.map_rows(
    lambda x: tf.cast(x, tf.float32), 1, tf.ones([_ROWS, 1], tf.uint8), tf.constant(5)
  )
  assert rows[:, 0].numpy().tolist() == [1.0] * 8 + [0.0] * 3


@pytest.mark.parametrize("num_valid", [_ROWS, 6, 1])
def test_kl_is_the_mean_over_evenly_spaced_valid_steps(num_valid, monkeypatch):
  monkeypatch.setattr(image_model, "_CHUNK_ROWS", 4)
  algorithm, batch = _algorithm(True, 1), _batch(1, num_valid)
  before = tf.constant(np.random.default_rng(1).normal(size=(_ROWS, 3)), tf.float32)
  rows = [index * num_valid // 4 for index in range(4)]
  kl = algorithm.distribution.kl(before, algorithm.model._policy(batch.observ)).numpy()
  np.testing.assert_allclose(algorithm.model.mean_kl(batch, before), kl[rows].mean(), rtol=1e-4)
