"""What an update minimizes; numbers are those of Schulman et al. 2017."""

from __future__ import annotations

import functools
from typing import Any
from typing import NamedTuple

import tensorflow as tf

from agents import config as config_lib
from agents.algorithms import kl_penalty
from agents.algorithms import models
from agents.networks import composite
from agents.ops import masked


class Samples(NamedTuple):
  """What the loss is computed from. N: steps of a memory or of a part of it."""

  observ: tf.Tensor  # [N, ...]
  action: tf.Tensor  # [N, ...], as sampled.
  policy: tf.Tensor  # [N, P] float32, parameters of the policy that acted.
  log_prob: tf.Tensor  # [N] float32, of the action under that policy.
  value: tf.Tensor  # [N] float32, before the update.
  advantage: tf.Tensor  # [N] float32
  value_target: tf.Tensor  # [N] float32
  sequence: tf.Tensor  # [N] int32, number of the sequence it is from.
  context: Any = ()  # What the model has to know of these steps.


class PPOLoss:
  """Surrogate, KL penalty and cutoff, value error and entropy bonus.

  Args:
    config: Hyper-parameters.
    head: Distribution that the policy's outputs are parameters of.
    model: From observations to parameters of the head and to values.
  """

  def __init__(self, config: config_lib.Algorithm,
               head: composite.ActionDistribution,
               model: models.FeedForward | models.Recurrent):
    self._config = config
    self._head = head
    self._model = model
    self.penalty = kl_penalty.Penalty(
        config.kl_penalty, config.kl_penalty_factor, config.kl_target)

  @property
  def names(self) -> list[str]:
    """Names of the losses that `__call__` returns."""
    clipped = self._config.clip_ratio is not None
    return ["policy_loss", "value_loss", "entropy"] + (
        ["clip_fraction"] if clipped else [])

  def __call__(
      self, samples: Samples, weight: tf.Tensor, kl_slope: tf.Tensor | None
      ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
    """Return the loss of some steps, and what it is made of.

    Args:
      samples: Steps, [N].
      weight: Of each step in all means, [N]; they sum to one over all steps of
        the gradient step.
      kl_slope: Derivative of the cutoff by the KL divergence of one step of
        each sequence, [I]; None without a cutoff.
    """
    config = self._config
    parameters, value = self._model.policy_and_value(samples.observ, samples.context)
    mean = functools.partial(masked.mean, weights=weight)

    log_prob = self._head.log_prob(parameters, samples.action)
    ratio = tf.exp(log_prob - samples.log_prob)
    surrogate = ratio * samples.advantage  # Equation 6.
    if config.clip_ratio is not None:
      clipped = tf.clip_by_value(
          ratio, 1 - config.clip_ratio, 1 + config.clip_ratio)
      surrogate = tf.minimum(
          surrogate, clipped * samples.advantage)  # Equation 7.
    error = tf.square(value - samples.value_target)
    if config.value_clip is not None:
      near = samples.value + tf.clip_by_value(
          value - samples.value, -config.value_clip, config.value_clip)
      error = tf.maximum(error, tf.square(near - samples.value_target))

    policy_loss, value_loss = -mean(surrogate), mean(error)
    entropy = mean(self._head.entropy(parameters))
    loss = (policy_loss + config.value_coef * value_loss
            - config.entropy_coef * entropy)  # Equation 9.
    kl = self._head.kl(samples.policy, parameters)
    if config.kl_penalty:
      loss += self.penalty.weight * mean(kl)  # Equation 8.
    if kl_slope is not None:
      slope = tf.gather(kl_slope, samples.sequence)
      loss += tf.reduce_sum(tf.where(weight > 0, slope * kl, 0.0))
    losses = {"policy_loss": policy_loss, "value_loss": value_loss,
              "entropy": entropy}
    if config.clip_ratio is not None:
      outside = tf.abs(ratio - 1) > config.clip_ratio
      losses["clip_fraction"] = mean(tf.cast(outside, tf.float32))
    return loss, losses

  def kl(self, samples: Samples) -> tf.Tensor:
    """Return each step's KL divergence, [N], of the present policy."""
    parameters, _ = self._model.policy_and_value(samples.observ, samples.context)
    return self._head.kl(samples.policy, parameters)
