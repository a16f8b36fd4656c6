"""Policy and value networks with recurrent cells."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from agents import types
from agents.algorithms import feed_forward_model, minibatches
from agents.networks import observation_encoder, torso
from agents.ops import masked


class RecurrentModel(feed_forward_model.Model):
  """Processes the segment of each environment as one sequence.

  The initial recurrent state of a segment is the state with which the policy
  acted in the first step. Batches must keep invalid steps in place, see
  `rollout_to_batch.segments`.

  Args:
    encoder: Maps observations to inputs of the networks.
    networks: Policy and value networks, and torsos with recurrent cells.

  Attributes:
    size: Length of the recurrent state of one episode.
  """

  def __init__(
    self, encoder: observation_encoder.ObservationEncoder, networks: feed_forward_model.Networks
  ) -> None:
    super().__init__(encoder, networks)
    self._slices = {}  # Slice of the recurrent state, by torso.
    self.size = 0
    for torso_ in dict.fromkeys((networks.policy_torso, networks.value_torso)):
      assert isinstance(torso_, torso.RecurrentTorso)
      self._slices[torso_] = slice(self.size, self.size + torso_.size)
      self.size += torso_.size
    state = tf.zeros([1, self.size])
    # The two calls build the variables.
    self.act(encoder.example, state)
    self.policy_and_value(encoder.example, types.Segments(tf.constant([[False]]), state))

  def act(self, observ: Any, state: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns parameters of the policy, [N, P], and the next state, [N, size].

    Args:
      observ: Observations of shape [N, ...].
      state: Recurrent state of the episodes, [N, size].
    """
    inputs = self._encoder.inputs(observ)
    steps = {
      torso_: torso_.step(torso_.encode(inputs), state[:, part])
      for torso_, part in self._slices.items()
    }
    output, _ = steps[self._networks.policy_torso]
    parameters = self._networks.mask(self._networks.policy(output), observ)
    return parameters, tf.concat([state for _, state in steps.values()], -1)

  def policy_and_value(self, observ: Any, context: types.Segments) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns parameters of the policy, [N, P], and values, [N].

    Args:
      observ: Observations of N steps, one segment after the other.
      context: First steps of episodes in these segments, and the recurrent
        states before the segments.
    """
    inputs = self._encoder.inputs(observ)
    outputs = {
      torso_: self._unroll(torso_, torso_.encode(inputs), context)[0] for torso_ in self._slices
    }
    return (
      self._networks.mask(self._networks.policy(outputs[self._networks.policy_torso]), observ),
      self._networks.value(outputs[self._networks.value_torso])[:, 0],
    )

  def policy(self, batch: types.Experience) -> tf.Tensor:
    """Returns parameters of the policy for all rows, [N, P].

    Args:
      batch: Tensors of shape [N, ...].
    """
    outputs, _ = self._unroll_batch(self._networks.policy_torso, batch)
    parameters = self._networks.policy(outputs)
    padding = batch.valid.shape[0] - parameters.shape[0]
    return self._networks.mask(tf.pad(parameters, [[0, padding], [0, 0]]), batch.observ)

  def values(self, batch: types.Experience) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns values of all rows, [N], and of final observations, [S].

    Args:
      batch: Tensors of shape [N, ...] and final observations, [S, ...].
    """
    torso_, value = self._networks.value_torso, self._networks.value
    outputs, states = self._unroll_batch(torso_, batch)
    rows, num_steps = batch.valid.shape[0], outputs.shape[0]
    last = tf.math.unsorted_segment_max(
      tf.where(batch.last & batch.valid, tf.range(rows), 0),
      batch.sequence,
      batch.final_observ.shape[0],
    )
    features = self._encode(torso_, batch.final_observ, tf.reduce_max(batch.sequence) + 1)
    final_output, _ = torso_.step(
      features, tf.gather(states, tf.clip_by_value(last, 0, num_steps - 1))
    )
    return (tf.pad(value(outputs)[:, 0], [[0, rows - num_steps]]), value(final_output)[:, 0])

  def shuffle_split(
    self, samples: Any, batch: types.Experience, size: int | None, key: tf.Tensor
  ) -> SegmentMinibatches:
    """Splits whole segments randomly into minibatches.

    Args:
      samples: Named tuple of tensors of shape [N, ...], with a `context`.
      batch: The batch that the samples belong to.
      size: Number of steps per minibatch, a multiple of the segment length;
        None puts all steps into one minibatch.
      key: Random key of shape [2].
    """
    num_segments, length = batch.segments.first.shape
    steps = types.map_tensors(
      lambda tensor: tf.reshape(
        tensor[: num_segments * length], [num_segments, length, *tensor.shape[1:]]
      ),
      (samples._replace(context=()), batch.valid),
    )
    return SegmentMinibatches(
      *minibatches.shuffle_split(
        (*steps, batch.segments),
        tf.ones([num_segments], tf.bool),
        num_segments if size is None else size // length,
        key,
      )
    )

  def _unroll_batch(
    self, torso_: torso.RecurrentTorso, batch: types.Experience
  ) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns outputs and states of a torso for all steps."""
    num_steps = batch.segments.first.shape.num_elements()
    features = self._encode(torso_, batch.observ, masked.valid_length(batch.valid))
    return self._unroll(torso_, features[:num_steps], batch.segments)

  def _encode(self, torso_: torso.RecurrentTorso, observ: Any, num_rows: tf.Tensor) -> tf.Tensor:
    """Returns features, [N, D]; rows from `num_rows` on are arbitrary."""
    return minibatches.map_rows(
      lambda rows: torso_.encode(self._encoder.inputs(rows)), observ, num_rows
    )

  def _unroll(
    self, torso_: torso.RecurrentTorso, features: tf.Tensor, context: types.Segments
  ) -> tuple[tf.Tensor, tf.Tensor]:
    outputs, states = torso_.unroll(
      tf.reshape(features, [*context.first.shape, features.shape[-1]]),
      context.first,
      context.state[:, self._slices[torso_]],
    )
    return _concat_segments(outputs), _concat_segments(states)


class SegmentMinibatches(minibatches.Minibatches):
  """Minibatches of whole segments; `rows` contains indices of segments."""

  def take(self, index: tf.Tensor) -> minibatches.Minibatch:
    """Returns one minibatch; the steps of each segment are consecutive."""
    rows, weight = tf.gather(self.rows, index), tf.gather(self.weight, index)
    samples, valid, context = types.map_tensors(
      lambda tensor: tf.gather(tensor, rows), self.samples
    )
    valid &= (weight > 0)[:, None]
    samples, valid = _concat_segments((samples, valid))
    return minibatches.Minibatch(samples._replace(context=context), masked.weight(valid))


def _concat_segments(data: Any) -> Any:
  """Reshapes tensors of shape [segments, length, ...] to [steps, ...]."""
  return types.map_tensors(lambda tensor: tf.reshape(tensor, [-1, *tensor.shape[2:]]), data)
