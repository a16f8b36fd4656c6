"""Penalties on how far an update moves the policy (Heess et al. 2017)."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

_LARGE, _SMALL = 1.3, 0.7
_BOUNDS = 1e-6, 1e6


class Penalty:
  """Weight of the KL divergence, adapted so that updates meet a target.

      weight <- weight * factor   if KL > 1.3 * target
      weight <- weight / factor   if KL < 0.7 * target

  Args:
    initial: Weight at the first update.
    factor: Change of the weight after an update that missed the target.
    target: KL divergence of one update to hold.
  """

  def __init__(self, initial: float, factor: float, target: float):
    self._factor = factor
    self._target = target
    self._bounds = min(initial, _BOUNDS[0]), max(initial, _BOUNDS[1])
    self.weight = tf.Variable(initial, trainable=False, name="penalty/weight")

  @property
  def variables(self) -> list[tf.Variable]:
    return [self.weight]

  def adapt(self, kl: tf.Tensor):
    """Grow the weight after too large an update, shrink it after a small one.

    Args:
      kl: Mean KL divergence from the policy before the update to the one
        after it.
    """
    change = tf.where(kl > _LARGE * self._target, self._factor, tf.where(
        kl < _SMALL * self._target, 1 / self._factor, 1.0))
    self.weight.assign(tf.clip_by_value(self.weight * change, *self._bounds))


class Cutoff(NamedTuple):
  """The cutoff of I sequences and its derivatives."""

  loss: tf.Tensor  # []
  slope: tf.Tensor  # [I], by the divergence of each single step.


def sums(kl: tf.Tensor, sequence: tf.Tensor, valid: tf.Tensor, sequences: int
         ) -> tuple[tf.Tensor, tf.Tensor]:
  """Sum over the steps of each sequence.

  Args:
    kl: KL divergence of each step, of shape [N].
    sequence: Number of the sequence that each step belongs to, of shape [N].
    valid: Which steps count, of shape [N].
    sequences: Bound that the numbers of the sequences are below, I.
  Returns:
    Sums of the divergence, and numbers of steps, each of shape [I].
  """
  mask = tf.cast(valid, tf.float32)
  return (tf.math.unsorted_segment_sum(mask * kl, sequence, sequences),
          tf.math.unsorted_segment_sum(mask, sequence, sequences))


def cutoff(kl_sum: tf.Tensor, length: tf.Tensor, threshold: float, coef: float
           ) -> Cutoff:
  """Penalize sequences that have gone too far, by the square of the excess.

      excess = max(0, kl_sum / length - threshold)
      loss   = coef * mean over sequences(excess^2)

  Args:
    kl_sum: Sum of the KL divergence over each sequence's steps, of shape [I].
    length: Number of these steps, of shape [I]; sequences without any do not
      count.
    threshold: Mean KL divergence that is free.
    coef: Weight of the squared excess.
  """
  amount = tf.reduce_sum(tf.cast(length > 0, tf.float32))
  length = tf.maximum(length, 1.0)
  excess = tf.nn.relu(kl_sum / length - threshold)
  return Cutoff(coef * tf.reduce_sum(tf.square(excess)) / amount,
                2 * coef * excess / (amount * length))
