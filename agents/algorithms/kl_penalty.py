"""Penalties for updates that move the policy too far (Heess et al. 2017)."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from agents import config as config_lib
from agents.algorithms import loss as loss_lib
from agents.algorithms import minibatches
from agents.networks import distribution_for_space
from agents.ops import masked

_LARGE, _SMALL = 1.3, 0.7
_BOUNDS = 1e-6, 1e6


class Penalty:
  """Coefficient of the KL divergence, adapted so that updates meet a target.

      weight <- weight * factor   if KL > 1.3 * target
      weight <- weight / factor   if KL < 0.7 * target

  Args:
    initial: Coefficient of the first update.
    factor: Change of the coefficient after an update that missed the target.
    target: Desired KL divergence of one update, in nats.
  """

  def __init__(self, initial: float, factor: float, target: float):
    self._factor = factor
    self._target = target
    self._bounds = min(initial, _BOUNDS[0]), max(initial, _BOUNDS[1])
    self.weight = tf.Variable(initial, trainable=False, name="penalty/weight")

  @property
  def variables(self) -> list[tf.Variable]:
    """Variables for checkpoints."""
    return [self.weight]

  def adapt(self, kl: tf.Tensor):
    """Raises the weight if `kl` exceeds the target range, lowers it if below.

    Args:
      kl: Mean KL divergence from the policy before the update to the one
        after it.
    """
    change = tf.where(kl > _LARGE * self._target, self._factor, tf.where(
        kl < _SMALL * self._target, 1 / self._factor, 1.0))
    self.weight.assign(tf.clip_by_value(self.weight * change, *self._bounds))


class PenalizedLoss(loss_lib.PPOLoss):
  """Adds the KL penalty and the cutoff to the loss if they are enabled.

  Args:
    config: Hyper-parameters.
    distribution: Distribution over actions.
    model: Maps observations to parameters of the distribution and to values.
    penalty: Coefficient of the KL divergence.
  """

  def __init__(self, config: config_lib.Algorithm,
               distribution: distribution_for_space.ActionDistribution,
               model: Any,
               penalty: Penalty):
    super().__init__(config, distribution, model)
    self._penalty = penalty
    if config.kl_cutoff_coef:
      self.minibatch_names = ["kl_cutoff"]

  def bind(self, minibatch: minibatches.AnyMinibatch, num_sequences: int
           ) -> tuple[minibatches.AnyMinibatch, Callable[..., Any],
                      loss_lib.Losses]:
    """See `PPOLoss.bind`; the cutoff depends on whole sequences."""
    config = self._config
    minibatch, loss, losses = super().bind(minibatch, num_sequences)
    if not config.kl_cutoff_coef:
      return minibatch, loss, losses
    def sums(samples, weight):
      parameters, _ = self._model.policy_and_value(
          samples.observ, samples.context)
      kl = self._distribution.kl(samples.policy, parameters)
      return sum_by_sequence(
          kl, samples.sequence, weight > 0, num_sequences)
    kl_sum, length = minibatch.sum(sums)
    kl_cutoff, kl_gradient = cutoff(
        kl_sum, length, config.kl_cutoff_factor * config.kl_target,
        config.kl_cutoff_coef)
    return (minibatch, functools.partial(loss, kl_gradient=kl_gradient),
            {"kl_cutoff": kl_cutoff})

  def __call__(self, samples: loss_lib.Samples, weight: tf.Tensor,
               kl_gradient: tf.Tensor | None = None
               ) -> tuple[tf.Tensor, loss_lib.Losses]:
    """See `PPOLoss.__call__`.

    Args:
      samples, weight: See `PPOLoss.__call__`.
      kl_gradient: `Cutoff.kl_gradient`; None without a cutoff.
    """
    parameters, value = self._model.policy_and_value(
        samples.observ, samples.context)
    loss, losses = self.objective(parameters, value, samples, weight)
    kl = self._distribution.kl(samples.policy, parameters)
    if self._config.kl_penalty:
      loss += self._penalty.weight * masked.mean(kl, weight)  # Equation 8.
    if kl_gradient is not None:
      slope = tf.gather(kl_gradient, samples.sequence)
      loss += tf.reduce_sum(tf.where(weight > 0, slope * kl, 0.0))
    return loss, losses

  def finish(self, kl: tf.Tensor) -> dict[str, tf.Tensor]:
    """See `PPOLoss.finish`."""
    if not self._config.kl_penalty:
      return {}
    metrics = {"kl_penalty": tf.identity(self._penalty.weight)}
    self._penalty.adapt(kl)
    return metrics


class Cutoff(NamedTuple):
  """The cutoff of I sequences and its derivatives."""

  loss: tf.Tensor  # []
  # [I]. Derivative of `loss` with respect to the KL divergence of one step; all
  # steps of a sequence have the same derivative.
  kl_gradient: tf.Tensor


def sum_by_sequence(kl: tf.Tensor, sequence: tf.Tensor, valid: tf.Tensor,
                    num_sequences: int) -> tuple[tf.Tensor, tf.Tensor]:
  """Sums over the steps of each sequence.

  Args:
    kl: KL divergence of each step, of shape [N].
    sequence: Number of each step's sequence, of shape [N].
    valid: Bool tensor of shape [N]; other steps are ignored.
    num_sequences: Exclusive upper bound of the numbers of sequences, I.
  Returns:
    Sums of the divergence, and numbers of steps, each of shape [I].
  """
  mask = tf.cast(valid, tf.float32)
  return (tf.math.unsorted_segment_sum(mask * kl, sequence, num_sequences),
          tf.math.unsorted_segment_sum(mask, sequence, num_sequences))


def cutoff(kl_sum: tf.Tensor, length: tf.Tensor, threshold: float, coef: float
           ) -> Cutoff:
  """Penalizes the square of a sequence's divergence beyond a threshold.

      excess = max(0, kl_sum / length - threshold)
      loss   = coef * mean over sequences(excess^2)

  Args:
    kl_sum: Sum of the KL divergence over each sequence's steps, of shape [I].
    length: Number of these steps, of shape [I]; sequences without steps are
      ignored.
    threshold: Mean KL divergence without a penalty, in nats.
    coef: Coefficient of the squared excess.
  """
  num_sequences = tf.reduce_sum(tf.cast(length > 0, tf.float32))
  length = tf.maximum(length, 1.0)
  excess = tf.nn.relu(kl_sum / length - threshold)
  return Cutoff(coef * tf.reduce_sum(tf.square(excess)) / num_sequences,
                2 * coef * excess / (num_sequences * length))
