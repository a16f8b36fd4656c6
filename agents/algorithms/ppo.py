"""Proximal policy optimization on batches of environments (Schulman 2017)."""

from __future__ import annotations

from typing import Any

import gymnasium
import keras
import numpy as np
import tensorflow as tf

from agents import config as config_lib
from agents import structs
from agents.algorithms import objective
from agents.networks import heads
from agents.ops import loops
from agents.ops import masked
from agents.ops import random
from agents.ops import returns
from agents.parts import chunks
from agents.parts import features
from agents.parts import kl_penalty
from agents.parts import minibatches
from agents.parts import reward_scale
from agents.parts import step_size


class BatchPPO:
  """Learns from segments or whole episodes of all B environments.

  Args:
    config: Hyper-parameters.
    observation_space: Box or Discrete.
    action_space: Box or Discrete.
    policy: Network from features to parameters of the action distribution.
    value: Network from features to values, in units of scaled reward.
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
    self.features = features.Features(
        observation_space, config.normalize_observ, config.observ_clip)
    self._objective = objective.Objective(
        config, self._head, self.features, policy, value)
    self._reward_scale = reward_scale.RewardScale(
        config.reward_scale, config.reward_clip)
    self._step_size = step_size.StepSize(
        config.lr_schedule, config.learning_rate, config.kl_target)
    self._act_seed = random.stream(seed, "act")
    self._shuffle_seed = random.stream(seed, "shuffle")
    for network in (policy, value):
      network(tf.zeros([1, self.features.size]))  # Builds its variables.
    # Of both networks, as they are trained.
    self.weights = policy.trainable_variables + value.trainable_variables
    self._optimizer = keras.optimizers.Adam(
        epsilon=config.adam_epsilon, name="adam")
    self._optimizer.build(self.weights)

  def noise(self, clock: tf.Tensor, amount: int) -> tf.Tensor:
    """Random numbers to sample actions by.

    Args:
      clock: Counter of the random numbers, int64.
      amount: Number of environments.
    Returns:
      Noise of shape [amount, ...].
    """
    return self._head.noise(amount, random.key(self._act_seed, clock))

  def act(self, observ: tf.Tensor, noise: tf.Tensor | None) -> tf.Tensor:
    """Choose actions.

    Args:
      observ: Observations of shape [N, ...].
      noise: To sample by, of shape [N, ...]; None for the distribution's mode.
    Returns:
      Actions of shape [N, ...], not clipped to the space.
    """
    parameters = self._policy(self.features(observ))
    if noise is None:
      return self._head.mode(parameters)
    return self._head.sample(parameters, noise)

  @tf.function(jit_compile=True, autograph=False)
  def learn(self, memory: structs.Experience, clock: tf.Tensor,
            progress: tf.Tensor) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
    """Improve policy and value by all of a memory, for several epochs.

    Args:
      memory: Tensors of shape [N, ...].
      clock: Counter of the random numbers, int64.
      progress: Share of the budget that is done, in [0, 1].
    Returns:
      Scalars to log, by name, and the advantages of the last epoch, of shape
      [N] in units of scaled reward.
    """
    config = self._config
    rate = self._step_size.rate(progress)
    self._optimizer.learning_rate.assign(rate)
    self._reward_scale.before_learning(memory.reward, memory.valid)
    # Neither weights nor moments have changed since the actions were taken.
    policy = self._policy_parameters(memory)
    value, advantage = self._estimate(memory)
    samples = objective.Samples(
        memory.observ, memory.action, policy,
        self._head.log_prob(policy, memory.action), value, advantage,
        value + advantage, memory.sequence)
    weight = masked.weight(memory.valid)
    metrics = {
        "learning_rate": rate,
        "action_std": masked.mean(self._head.std(policy), weight),
        "action_saturation": masked.mean(
            self._head.saturation(memory.action), weight),
        "value_mean": masked.mean(value, weight),
        "explained_variance": 1 - masked.variance(advantage, weight) / (
            masked.variance(value + advantage, weight) + 1e-8)}

    def learn_once(epoch, state):
      advantage, sums, value = state
      if config.recompute_advantages:
        value, advantage = self._estimate(memory)
      key = random.key(self._shuffle_seed, clock * config.update_epochs
                       + tf.cast(epoch, tf.int64))
      batches = minibatches.deal(
          samples._replace(advantage=advantage, value_target=value + advantage),
          memory.valid, config.minibatch_size, key)
      def learn_batch(index, sums):
        losses = self._update(
            batches.take(index), memory.final_observ.shape[0])
        finite = tf.math.is_finite(losses["grad_norm"])
        return tf.nest.map_structure(tf.add, sums, {
            **losses, "gradient_steps": 1.0,
            "finite_steps": tf.cast(finite, tf.float32)})
      sums = loops.repeat(batches.amount, learn_batch, sums)
      return advantage, sums, value

    counts = "gradient_steps", "finite_steps"
    sums = {name: tf.constant(0.0) for name in [*self._loss_names, *counts]}
    advantage, sums, value = loops.repeat(
        config.update_epochs, learn_once, (advantage, sums, value))
    metrics.update({name: sums.pop(name) for name in counts})
    metrics.update({name: total / metrics["gradient_steps"]
                    for name, total in sums.items()})

    change = self._head.kl(policy, self._policy_parameters(memory))
    metrics["kl"] = masked.mean(change, weight)
    self._step_size.adapt(metrics["kl"])
    if config.kl_penalty:
      metrics["kl_penalty"] = tf.identity(self._objective.penalty.weight)
      self._objective.penalty.adapt(metrics["kl"])
    self._reward_scale.after_learning(value + advantage, memory.valid)
    metrics["reward_scale"] = self._reward_scale.std
    return {**metrics, **self._update_features(memory)}, advantage

  def _policy_parameters(self, memory: structs.Experience) -> tf.Tensor:
    """Return the policy's parameters for all rows, of shape [N, P]."""
    return self._outputs(self._policy, self._head.size, memory.observ,
                         masked.count(memory.valid))

  def _estimate(self, memory: structs.Experience
                ) -> tuple[tf.Tensor, tf.Tensor]:
    """Return values and advantages of shape [N], in units of scaled reward."""
    config = self._config
    value = self._outputs(
        self._value, 1, memory.observ, masked.count(memory.valid))[:, 0]
    final_value = self._outputs(
        self._value, 1, memory.final_observ,
        tf.reduce_max(memory.sequence) + 1)[:, 0]
    next_value = tf.where(
        memory.last, tf.gather(final_value, memory.sequence),
        tf.roll(value, -1, 0))
    terminated = memory.terminated
    if not config.bootstrap_truncation:
      terminated |= memory.truncated
    advantage = returns.generalized_advantage(
        self._reward_scale(memory.reward), value, next_value, terminated,
        memory.last, config.discount, config.gae_lambda)
    return value, advantage

  def _outputs(self, network: keras.Model, width: int, observ: tf.Tensor,
               count: tf.Tensor) -> tf.Tensor:
    """Apply a network to the first `count` of N rows; [N, width]."""
    outputs = chunks.apply(
        lambda chunk: network(self.features(chunk)), chunks.split(observ),
        chunks.filled(count, observ.shape[0]), (width,))
    return tf.reshape(outputs, [observ.shape[0], width])

  @property
  def _loss_names(self) -> list[str]:
    cutoff = ["kl_cutoff"] if self._config.kl_cutoff_coef else []
    return [*self._objective.names, "grad_norm", *cutoff]

  def _update(self, batch: minibatches.Batch, sequences: int
              ) -> dict[str, tf.Tensor]:
    """Take one gradient step, on steps of up to so many sequences."""
    config = self._config
    samples, losses = batch.data, {}
    slope = None
    if config.normalize_advantage:
      samples = samples._replace(
          advantage=masked.normalize(samples.advantage, batch.weight))
    if config.kl_cutoff_coef:
      def divergence(chunk):
        samples, weight = chunk
        return kl_penalty.sums(self._objective.kl(samples), samples.sequence,
                               weight > 0, sequences)
      kl_sum, length = chunks.total(
          divergence, (samples, batch.weight), batch.amount)
      losses["kl_cutoff"], slope = kl_penalty.cutoff(
          kl_sum, length, config.kl_cutoff_factor * config.kl_target,
          config.kl_cutoff_coef)

    def gradients(chunk):
      samples, weight = chunk
      with tf.GradientTape() as tape:
        loss, parts = self._objective(samples, weight, slope)
      return tape.gradient(loss, self.weights), parts
    gradients, parts = chunks.total(
        gradients, (samples, batch.weight), batch.amount)
    norm = tf.linalg.global_norm(gradients)
    if config.max_grad_norm is not None:
      gradients, _ = tf.clip_by_global_norm(
          gradients, config.max_grad_norm, norm)
    self._optimizer.apply(gradients, self.weights)
    return {**losses, **parts, "grad_norm": norm}

  def _update_features(self, memory: structs.Experience
                       ) -> dict[str, tf.Tensor]:
    """Add a memory's observations to the moments."""
    moments = self.features.moments
    if not moments:
      return {}
    batch = minibatches.everything(memory.observ, memory.valid)
    def clipped(chunk):
      observ, weight = chunk
      return masked.mean(self.features.clipped(observ), weight)
    metrics = {"observ_clipped": chunks.total(
        clipped, (batch.data, batch.weight), batch.amount)}
    def update(index, state):
      self.features.update(*chunks.take((batch.data, batch.weight > 0), index))
      return state
    loops.repeat(batch.amount, update, ())
    return {**metrics, "observ_mean": tf.reduce_mean(moments.mean),
            "observ_std": tf.reduce_mean(moments.std)}

  def variables(self) -> dict[str, Any]:
    """Return all that a checkpoint must hold, by name."""
    moments = self.features.moments
    variables = [
        *self.weights, *self._optimizer.variables,
        *self._reward_scale.variables, *self._step_size.variables,
        *self._objective.penalty.variables,
        *(moments.variables if moments else [])]
    named = {getattr(v, "path", v.name): v for v in variables}
    assert len(named) == len(variables), "Two variables share a name."
    return named

  def assign(self, values: dict[str, np.ndarray]):
    """Set all variables."""
    for name, variable in self.variables().items():
      variable.assign(values[name])
