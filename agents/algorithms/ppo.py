"""Proximal policy optimization on batches of environments (Schulman 2017)."""

from __future__ import annotations

from typing import Any
from typing import NamedTuple

import gymnasium
import keras
import tensorflow as tf

from agents import config as config_lib
from agents import structs
from agents.networks import heads
from agents.ops import random
from agents.ops import returns
from agents.parts import features
from agents.parts import minibatches
from agents.parts import normalize
from agents.parts import step_size


class Samples(NamedTuple):
  """What the loss is computed from. N: steps of a segment or minibatch."""

  features: tf.Tensor  # [N, D] float32
  action: tf.Tensor  # [N, ...], as sampled.
  log_prob: tf.Tensor  # [N] float32, under the policy that acted.
  advantage: tf.Tensor  # [N] float32
  value_target: tf.Tensor  # [N] float32, in units of normalized return.


class BatchPPO:
  """Learns from fixed segments, T steps of all B environments.

  Args:
    config: Hyper-parameters.
    observation_space: Box or Discrete.
    action_space: Box or Discrete.
    policy: Network from features to parameters of the action distribution.
    value: Network from features to normalized returns.
    seed: Seed of everything random.
  """

  def __init__(self, config: config_lib.Algorithm,
               observation_space: gymnasium.Space,
               action_space: gymnasium.Space, policy: keras.Model,
               value: keras.Model, seed: int):
    self._config = config
    self._head = heads.make(action_space)
    self._policy = policy
    self._value = value
    self._features = features.Features(
        observation_space, config.normalize_observ, config.observ_clip)
    self._return_moments = normalize.RunningMoments((), "return")
    self._step_size = step_size.StepSize(
        config.lr_schedule, config.learning_rate, config.kl_target)
    self._act_seed = random.stream(seed, "act")
    self._shuffle_seed = random.stream(seed, "shuffle")
    for network in (policy, value):
      network(tf.zeros([1, self._features.size]))  # Builds its variables.
    self._weights = policy.trainable_variables + value.trainable_variables
    self._optimizer = keras.optimizers.Adam(epsilon=1e-5, name="adam")
    self._optimizer.build(self._weights)

  def act(self, observ: tf.Tensor, clock: tf.Tensor, explore: bool
          ) -> tf.Tensor:
    """Choose actions.

    Args:
      observ: Observations of shape [B, ...].
      clock: Counter of the random numbers, int64.
      explore: Sample, or take the distribution's mode.
    Returns:
      Actions of shape [B, ...], not clipped to the space.
    """
    parameters = self._policy(self._features(observ))
    if not explore:
      return self._head.mode(parameters)
    return self._head.sample(parameters, random.key(self._act_seed, clock))

  @tf.function(jit_compile=True)
  def learn(self, segment: structs.Transition, clock: tf.Tensor,
            progress: tf.Tensor) -> dict[str, tf.Tensor]:
    """Improve policy and value by all of a segment, for several epochs.

    Args:
      segment: Tensors of shape [T, B, ...].
      clock: Counter of the random numbers, int64.
      progress: Share of the budget that is done, in [0, 1].
    Returns:
      Scalars to log, by name.
    """
    config = self._config
    flat = tf.nest.map_structure(
        lambda tensor: tf.reshape(tensor, [-1, *tensor.shape[2:]]), segment)
    inputs = self._features(flat.observ)
    next_inputs = self._features(flat.next_observ)
    before = self._policy(inputs)
    log_prob = self._head.log_prob(before, flat.action)
    rate = self._step_size.rate(progress)
    self._optimizer.learning_rate.assign(rate)

    value, advantage = self._estimate(segment, inputs, next_inputs)
    metrics = {
        "explained_variance": 1 - tf.math.reduce_variance(advantage)
        / (tf.math.reduce_variance(value + advantage) + 1e-8),
        "value_mean": tf.reduce_mean(value)}
    sums = {name: 0.0 for name in (
        "policy_loss", "value_loss", "entropy", "clip_fraction", "grad_norm")}
    for epoch in tf.range(config.update_epochs):
      if config.recompute_advantages:
        value, advantage = self._estimate(segment, inputs, next_inputs)
      samples = Samples(
          inputs, flat.action, log_prob, advantage, value + advantage)
      key = random.key(self._shuffle_seed, clock * config.update_epochs
                       + tf.cast(epoch, tf.int64))
      batches = minibatches.shuffle(samples, config.minibatch_size, key)
      for index in tf.range(batches.advantage.shape[0]):
        batch = minibatches.take(batches, index)
        sums = tf.nest.map_structure(tf.add, sums, self._update(batch))

    count = config.update_epochs * flat.reward.shape[0] / config.minibatch_size
    metrics.update({name: total / count for name, total in sums.items()})
    after = self._policy(inputs)
    kl = tf.reduce_mean(self._head.distribution(before).kl_divergence(
        self._head.distribution(after)))
    self._step_size.adapt(kl)
    self._features.update(flat.observ)
    self._return_moments.update(
        tf.reshape(value + advantage, [-1]) * self._return_scale())
    metrics.update(
        kl=kl, learning_rate=rate, action_std=self._head.std(before),
        return_std=self._return_moments.std)
    if self._features.moments:
      metrics.update(
          observ_mean=tf.reduce_mean(self._features.moments.mean),
          observ_std=tf.reduce_mean(self._features.moments.std))
    return metrics

  def _estimate(self, segment, inputs, next_inputs):
    """Return values and advantages of shape [N], of normalized rewards."""
    shape = segment.reward.shape
    value = tf.reshape(self._value(inputs), shape)
    next_value = tf.reshape(self._value(next_inputs), shape)
    advantage = returns.generalized_advantage(
        segment.reward / self._return_scale(), value, next_value,
        segment.terminated, segment.truncated, self._config.discount,
        self._config.gae_lambda)
    return tf.reshape(value, [-1]), tf.reshape(advantage, [-1])

  def _return_scale(self) -> tf.Tensor:
    if not self._config.normalize_return:
      return tf.constant(1.0)
    return tf.cast(self._return_moments.std, tf.float32) + 1e-8

  def _update(self, samples: Samples) -> dict[str, tf.Tensor]:
    """Take one gradient step on a minibatch."""
    with tf.GradientTape() as tape:
      loss, metrics = self._loss(samples)
    gradients = tape.gradient(loss, self._weights)
    gradients, norm = tf.clip_by_global_norm(
        gradients, self._config.max_grad_norm)
    self._optimizer.apply(gradients, self._weights)
    return {**metrics, "grad_norm": norm}

  def _loss(self, samples: Samples) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
    """Return equation 9 of the paper, to be minimized, and its parts."""
    config = self._config
    parameters = self._policy(samples.features)
    log_prob = self._head.log_prob(parameters, samples.action)
    entropy = tf.reduce_mean(self._head.distribution(parameters).entropy())
    value = self._value(samples.features)[:, 0]

    advantage = samples.advantage
    if config.normalize_advantage:
      advantage = (advantage - tf.reduce_mean(advantage)) / (
          tf.math.reduce_std(advantage) + 1e-8)
    ratio = tf.exp(log_prob - samples.log_prob)
    clipped = tf.clip_by_value(
        ratio, 1 - config.clip_ratio, 1 + config.clip_ratio)
    policy_loss = -tf.reduce_mean(
        tf.minimum(ratio * advantage, clipped * advantage))  # Equation 7.
    value_loss = tf.reduce_mean(tf.square(value - samples.value_target))
    loss = (policy_loss + config.value_coef * value_loss
            - config.entropy_coef * entropy)
    outside = tf.abs(ratio - 1) > config.clip_ratio
    return loss, {
        "policy_loss": policy_loss, "value_loss": value_loss,
        "entropy": entropy,
        "clip_fraction": tf.reduce_mean(tf.cast(outside, tf.float32))}

  def variables(self) -> dict[str, Any]:
    """Return all that a checkpoint must hold, by name."""
    moments = self._features.moments
    variables = [
        *self._weights, *self._optimizer.variables,
        *self._return_moments.variables, *self._step_size.variables,
        *(moments.variables if moments else [])]
    named = {getattr(v, "path", v.name): v for v in variables}
    assert len(named) == len(variables), "Two variables share a name."
    return named
