"""The PPO objective; equation numbers refer to Schulman et al. 2017."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from agents import config as config_lib
from agents.algorithms import kl_penalty, minibatches
from agents.networks import action_distribution
from agents.ops import masked

Losses = dict[str, tf.Tensor]


class Samples(NamedTuple):
  """Inputs of the loss for N steps."""

  observ: Any  # [N, ...]
  action: tf.Tensor  # [N, ...], as sampled (not clipped).
  policy: tf.Tensor  # [N, P] float32, parameters of the policy that acted.
  log_prob: tf.Tensor  # [N] float32, of the action under `policy`.
  value: tf.Tensor  # [N] float32, before the update.
  advantage: tf.Tensor  # [N] float32
  value_target: tf.Tensor  # [N] float32
  sequence: tf.Tensor  # [N] int32, index of the step's sequence.
  context: Any = ()  # `types.Segments` for recurrent models.


class PPOLoss:
  """Clipped surrogate, value error, entropy bonus and KL penalties.

  Args:
    config: Hyper-parameters.
    distribution: Distribution over actions.
    model: Maps observations to parameters of the distribution and to values.

  Attributes:
    names: Names of the losses that `__call__` returns.
    minibatch_names: Names of the losses that `bind` returns.
    penalty: Adaptive coefficient of the KL penalty. Checkpoints contain the
      coefficient even if the config disables the penalty.
  """

  def __init__(
    self,
    config: config_lib.Algorithm,
    distribution: action_distribution.ActionDistribution,
    model: Any,
  ) -> None:
    self._config = config
    self._distribution = distribution
    self._model = model
    self.names = ["policy_loss", "value_loss", "entropy"] + (
      ["clip_fraction"] if config.clip_ratio is not None else []
    )
    self.minibatch_names = ["kl_cutoff"] if config.kl_cutoff_coef else []
    self.penalty = kl_penalty.Penalty(config.kl_penalty, config.kl_penalty_factor, config.kl_target)

  def bind(
    self, minibatch: minibatches.AnyMinibatch, num_sequences: int
  ) -> tuple[minibatches.AnyMinibatch, Callable[..., Any], Losses]:
    """Normalizes advantages and computes the KL cutoff of a whole minibatch.

    Args:
      minibatch: Minibatch of `Samples`.
      num_sequences: Exclusive upper bound of the sequence indices.

    Returns:
      The minibatch with normalized advantages; the loss as a function of rows
      of this minibatch (see `__call__`); and losses of the whole minibatch, by
      name.
    """
    config = self._config
    if config.normalize_advantage:
      advantage = masked.normalize(minibatch.samples.advantage, minibatch.weight)
      minibatch = minibatch._replace(samples=minibatch.samples._replace(advantage=advantage))
    if not config.kl_cutoff_coef:
      return minibatch, self, {}
    kl_cutoff, kl_gradient = self._cutoff(minibatch, num_sequences)
    return minibatch, functools.partial(self, kl_gradient=kl_gradient), {"kl_cutoff": kl_cutoff}

  def __call__(
    self, samples: Samples, weight: tf.Tensor, kl_gradient: tf.Tensor | None = None
  ) -> tuple[tf.Tensor, Losses]:
    """Returns the loss of some rows of a minibatch, and the terms of the loss.

    Args:
      samples: Tensors of shape [N, ...].
      weight: Weight of each row, [N]; the weights of a whole minibatch sum to
        one.
      kl_gradient: Derivative of the KL cutoff from `kl_penalty.cutoff`, [S];
        None disables the cutoff.
    """
    config = self._config
    mean = functools.partial(masked.mean, weights=weight)
    parameters, value = self._model.policy_and_value(samples.observ, samples.context)
    log_prob = self._distribution.log_prob(parameters, samples.action)
    # --8<-- [start:surrogate]
    ratio = tf.exp(log_prob - samples.log_prob)
    surrogate = ratio * samples.advantage  # Equation 6.
    if config.clip_ratio is not None:
      clipped = tf.clip_by_value(ratio, 1 - config.clip_ratio, 1 + config.clip_ratio)
      surrogate = tf.minimum(surrogate, clipped * samples.advantage)  # Equation 7.
    # --8<-- [end:surrogate]
    # --8<-- [start:objective]
    error = tf.square(value - samples.value_target)
    if config.value_clip is not None:
      change = tf.clip_by_value(value - samples.value, -config.value_clip, config.value_clip)
      error = tf.maximum(error, tf.square(samples.value + change - samples.value_target))
    policy_loss, value_loss = -mean(surrogate), mean(error)
    entropy = mean(self._distribution.entropy(parameters))
    losses = {"policy_loss": policy_loss, "value_loss": value_loss, "entropy": entropy}
    # Equation 9.
    loss = policy_loss + config.value_coef * value_loss - config.entropy_coef * entropy
    # --8<-- [end:objective]
    if config.clip_ratio is not None:
      outside = tf.abs(ratio - 1) > config.clip_ratio
      losses["clip_fraction"] = mean(tf.cast(outside, tf.float32))
    if config.kl_penalty or kl_gradient is not None:
      loss = self._add_kl_terms(loss, parameters, samples, weight, kl_gradient)
    return loss, losses

  def _add_kl_terms(
    self,
    loss: tf.Tensor,
    parameters: tf.Tensor,
    samples: Samples,
    weight: tf.Tensor,
    kl_gradient: tf.Tensor | None,
  ) -> tf.Tensor:
    """Adds KL penalty and KL cutoff to the loss, see `__call__`."""
    # --8<-- [start:kl_penalty]
    kl = self._distribution.kl(samples.policy, parameters)
    if self._config.kl_penalty:
      loss += self.penalty.weight * masked.mean(kl, weight)  # Equation 8.
    # --8<-- [end:kl_penalty]
    # --8<-- [start:kl_cutoff]
    if kl_gradient is not None:
      slope = tf.gather(kl_gradient, samples.sequence)
      loss += tf.reduce_sum(tf.where(weight > 0, slope * kl, 0.0))
    # --8<-- [end:kl_cutoff]
    return loss

  def _cutoff(
    self, minibatch: minibatches.AnyMinibatch, num_sequences: int
  ) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the KL cutoff and its derivative, see `kl_penalty.cutoff`."""

    def sums(samples: Samples, weight: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
      parameters, _ = self._model.policy_and_value(samples.observ, samples.context)
      kl = self._distribution.kl(samples.policy, parameters)
      return kl_penalty.sum_by_sequence(kl, samples.sequence, weight > 0, num_sequences)

    kl_sum, length = minibatch.sum(sums)
    threshold = self._config.kl_cutoff_factor * self._config.kl_target
    return kl_penalty.cutoff(kl_sum, length, threshold, self._config.kl_cutoff_coef)
