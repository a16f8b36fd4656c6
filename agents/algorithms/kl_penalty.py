"""Penalties for updates that move the policy too far (Heess et al. 2017)."""

import tensorflow as tf

_LARGE, _SMALL = 1.3, 0.7
_BOUNDS = 1e-6, 1e6


class Penalty:
  """Adaptive coefficient of the KL penalty.

  The coefficient changes so that the KL divergence of updates stays near a
  target:

      weight <- weight * factor   if KL > 1.3 * target
      weight <- weight / factor   if KL < 0.7 * target

  Args:
    initial: Coefficient of the first update.
    factor: Factor by which the coefficient changes after one update.
    target: Desired KL divergence of one update, in nats.

  Attributes:
    weight: The coefficient.
    variables: Variables for checkpoints.
  """

  def __init__(self, initial: float, factor: float, target: float) -> None:
    self._factor = factor
    self._target = target
    self._bounds = min(initial, _BOUNDS[0]), max(initial, _BOUNDS[1])
    self.weight = tf.Variable(initial, trainable=False, name="penalty/weight")
    self.variables = [self.weight]

  def adapt(self, kl: tf.Tensor) -> None:
    """Adapts the weight after an update.

    Args:
      kl: Mean KL divergence from the old to the updated policy, in nats.
    """
    # --8<-- [start:adapt]
    change = tf.where(
      kl > _LARGE * self._target,
      self._factor,
      tf.where(kl < _SMALL * self._target, 1 / self._factor, 1.0),
    )
    self.weight.assign(tf.clip_by_value(self.weight * change, *self._bounds))
    # --8<-- [end:adapt]


def sum_by_sequence(
  kl: tf.Tensor, sequence: tf.Tensor, valid: tf.Tensor, num_sequences: int
) -> tuple[tf.Tensor, tf.Tensor]:
  """Sums the KL divergence and counts the steps of each sequence.

  Args:
    kl: KL divergence of each step, of shape [N].
    sequence: Index of each step's sequence, of shape [N].
    valid: Bool tensor of shape [N]; invalid steps are ignored.
    num_sequences: Exclusive upper bound of the sequence indices, S.

  Returns:
    KL divergence, summed over the valid steps of each sequence, and number of
    these steps, each of shape [S].
  """
  mask = tf.cast(valid, tf.float32)
  return (
    tf.math.unsorted_segment_sum(mask * kl, sequence, num_sequences),
    tf.math.unsorted_segment_sum(mask, sequence, num_sequences),
  )


def cutoff(
  kl_sum: tf.Tensor, length: tf.Tensor, threshold: float, coef: float
) -> tuple[tf.Tensor, tf.Tensor]:
  """Penalizes sequences with a mean KL divergence above a threshold.

      excess = max(0, kl_sum / length - threshold)
      loss   = coef * mean over sequences(excess^2)

  Args:
    kl_sum: Sum of the KL divergence over each sequence's steps, of shape [S].
    length: Number of steps of each sequence, of shape [S]; sequences without
      steps are ignored.
    threshold: Mean KL divergence above which the penalty begins, in nats.
    coef: Coefficient of the squared excess.

  Returns:
    The loss, of shape [], and the derivative of the loss with respect to the KL
    divergence of one step, of shape [S]. All steps of a sequence have an equal
    derivative.
  """
  num_sequences = tf.reduce_sum(tf.cast(length > 0, tf.float32))
  length = tf.maximum(length, 1.0)
  # --8<-- [start:cutoff]
  excess = tf.nn.relu(kl_sum / length - threshold)
  return (
    coef * tf.reduce_sum(tf.square(excess)) / num_sequences,
    2 * coef * excess / (num_sequences * length),
  )
  # --8<-- [end:cutoff]
