"""Policy and value networks for images."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from agents import types
from agents.algorithms import feed_forward_model
from agents.ops import loops, masked

_CHUNK_ROWS = 256  # Enough for matrix products at full speed.


class ImageModel(feed_forward_model.FeedForward):
  """Computes no more than the necessary results of convolutional networks.

  If both networks share a torso, one pass through it serves both. Only the
  existing final observations are processed, a chunk at a time. The KL
  divergence after an update is that of 256 steps.
  """

  def policy_and_values(
    self, batch: types.Experience
  ) -> tuple[tf.Tensor, tuple[tf.Tensor, tf.Tensor]]:
    """See `FeedForward.policy_and_values`."""
    if self._networks.policy_torso is not self._networks.value_torso:
      return super().policy_and_values(batch)
    size = self._networks.policy.distribution.size

    def outputs(observ: Any) -> tf.Tensor:
      parameters, value = self.policy_and_value(observ)
      return tf.concat([parameters, value[:, None]], -1)

    rows = map_rows(outputs, size + 1, batch.observ, masked.valid_length(batch.valid))
    return rows[:, :size], (rows[:, size], self._final_values(batch))

  def policy(self, batch: types.Experience) -> tf.Tensor:
    """See `FeedForward.policy`."""
    size = self._networks.policy.distribution.size
    return map_rows(self._policy, size, batch.observ, masked.valid_length(batch.valid))

  def mean_kl(self, batch: types.Experience, before: tf.Tensor) -> tf.Tensor:
    """See `FeedForward.mean_kl`; uses evenly spaced steps only."""
    chunk = min(batch.valid.shape[0], _CHUNK_ROWS)
    rows = tf.range(chunk) * masked.valid_length(batch.valid) // chunk
    policy = self._policy(tf.gather(batch.observ, rows))
    return tf.reduce_mean(self._networks.policy.distribution.kl(tf.gather(before, rows), policy))

  def values(self, batch: types.Experience) -> tuple[tf.Tensor, tf.Tensor]:
    """See `FeedForward.values`."""
    value = map_rows(self._value, 1, batch.observ, masked.valid_length(batch.valid))
    return value[:, 0], self._final_values(batch)

  def _final_values(self, batch: types.Experience) -> tf.Tensor:
    """Returns the values of final observations, [S]."""
    num_sequences = tf.reduce_max(batch.sequence) + 1
    return map_rows(self._value, 1, batch.final_observ, num_sequences)[:, 0]


def map_rows(
  function: Callable[[Any], tf.Tensor], size: int, data: Any, num_rows: tf.Tensor
) -> tf.Tensor:
  """Applies a function to the first `num_rows` of N rows, a chunk at a time.

  Args:
    function: Maps a tensor of shape [M, ...] to a float32 tensor [M, size].
    size: Length of a result.
    data: Tensor or `types.FrameIndices` of shape [N, ...].
    num_rows: Number of rows that need results; the results of all other rows
      are arbitrary.

  Returns:
    Tensor of shape [N, size].
  """
  rows = data.shape[0]
  chunk = min(rows, _CHUNK_ROWS)
  num_chunks = -(-rows // chunk)

  def write(index: tf.Tensor, outputs: tf.TensorArray) -> tf.TensorArray:
    indices = tf.minimum(index * chunk + tf.range(chunk), rows - 1)
    return outputs.write(index, function(tf.gather(data, indices)))

  outputs = tf.TensorArray(tf.float32, num_chunks, element_shape=[chunk, size])
  outputs = loops.repeat((num_rows + chunk - 1) // chunk, write, outputs)
  return tf.reshape(outputs.stack(), [-1, size])[:rows]
