"""Proximal policy optimization on batches of environments (Schulman 2017)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import gymnasium
import keras
import tensorflow as tf

from agents import config as config_lib
from agents import types
from agents.algorithms import actor_critic
from agents.algorithms import chunks
from agents.algorithms import kl_penalty
from agents.algorithms import loss as loss_lib
from agents.algorithms import lr_schedule
from agents.algorithms import minibatches
from agents.algorithms import models
from agents.algorithms import reward_scale
from agents.ops import gae
from agents.ops import loops
from agents.ops import masked
from agents.ops import random

_COUNTS = "gradient_steps", "finite_steps"


class _Passed(NamedTuple):
  """What one pass over the samples hands to the next."""

  advantage: tf.Tensor  # [N], that it has learned from.
  value: tf.Tensor  # [N], that these belong to.
  sums: dict[str, tf.Tensor]  # Of what gradient steps report, and _COUNTS.


class _Begun(NamedTuple):
  """An update before its first pass."""

  samples: loss_lib.Samples
  metrics: dict[str, tf.Tensor]
  passed: _Passed


class BatchPPO(actor_critic.ActorCritic):
  """Learns from segments or whole episodes of all B environments.

  Its arguments are those of `ActorCritic`.
  """

  def __init__(self, config: config_lib.Algorithm,
               observation_space: gymnasium.Space, networks: models.Networks,
               seed: int, frame_stack: int = 1):
    super().__init__(config, observation_space, networks, seed, frame_stack)
    self._objective = loss_lib.PPOLoss(config, self.head, self.model)
    self._reward_scale = reward_scale.RewardScale(
        config.reward_scale, config.reward_clip)
    self._step_size = lr_schedule.LearningRateSchedule(
        config.lr_schedule, config.learning_rate, config.kl_target)
    self._shuffle_seed = random.stream(seed, "shuffle")
    self._optimizer = keras.optimizers.Adam(
        epsilon=config.adam_epsilon, name="adam")
    self._optimizer.build(self.weights)
    self.others = [
        *self._optimizer.variables, *self._reward_scale.variables,
        *self._step_size.variables, *self._objective.penalty.variables]
    self._parts = [
        tf.function(part, jit_compile=True, autograph=False)
        for part in (self._begin, self._pass, self._end)]

  @tf.function(jit_compile=True, autograph=False)
  def learn(self, memory: types.Experience, clock: tf.Tensor,
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
    begun = self._begin(memory, progress)
    passed = loops.repeat(
        self.config.update_epochs, lambda epoch, passed: self._pass(
            memory, begun.samples, clock, epoch, passed), begun.passed)
    return self._end(memory, begun, passed)

  def learn_in_parts(self, memory: types.Experience, clock: tf.Tensor,
                     progress: tf.Tensor) -> Iterator[
                         tuple[dict[str, tf.Tensor], tf.Tensor] | None]:
    """The same in one graph call for each epoch, where an update takes long.

    Args:
      memory, clock, progress: See `learn`.
    Yields:
      None between the calls, and at last what `learn` returns.
    """
    begin, pass_, end = self._parts
    begun = begin(memory, progress)
    passed = begun.passed
    for epoch in range(self.config.update_epochs):
      yield None
      passed = pass_(memory, begun.samples, clock, tf.constant(epoch), passed)
    yield None
    yield end(memory, begun, passed)

  def _begin(self, memory: types.Experience, progress: tf.Tensor) -> _Begun:
    rate = self._step_size.rate(progress)
    self._optimizer.learning_rate.assign(rate)
    self._reward_scale.before_learning(memory.reward, memory.valid)
    # Neither weights nor moments have changed since the actions were taken.
    policy = self.model.policy(memory, self.head.size)
    value, advantage = self._estimate(memory)
    samples = loss_lib.Samples(
        memory.observ, memory.action, policy,
        self.head.log_prob(policy, memory.action), value, advantage,
        value + advantage, memory.sequence)
    weight = masked.weight(memory.valid)
    metrics = {
        "learning_rate": rate,
        "action_std": masked.mean(self.head.std(policy), weight),
        "action_saturation": masked.mean(
            self.head.saturation(memory.action), weight),
        "value_mean": masked.mean(value, weight),
        "explained_variance": 1 - masked.variance(advantage, weight) / (
            masked.variance(value + advantage, weight) + 1e-8)}
    sums = {name: tf.constant(0.0) for name in [*self._loss_names, *_COUNTS]}
    return _Begun(samples, metrics, _Passed(advantage, value, sums))

  def _pass(self, memory: types.Experience, samples: loss_lib.Samples,
            clock: tf.Tensor, epoch: tf.Tensor, passed: _Passed) -> _Passed:
    """Learn from all samples once."""
    advantage, value, batches = self._deal(
        memory, samples, clock, epoch, passed)
    def learn_batch(index, sums):
      return added(sums, self._update(memory, batches.take(index)))
    sums = loops.repeat(batches.amount, learn_batch, passed.sums)
    return _Passed(advantage, value, sums)

  def _deal(self, memory: types.Experience, samples: loss_lib.Samples,
            clock: tf.Tensor, epoch: tf.Tensor, passed: _Passed):
    """Return advantages and values to learn from, and minibatches."""
    config = self.config
    advantage, value, _ = passed
    if config.recompute_advantages:
      value, advantage = self._estimate(memory)
    key = random.key(self._shuffle_seed, clock * config.update_epochs
                     + tf.cast(epoch, tf.int64))
    return advantage, value, self.model.deal(
        samples._replace(advantage=advantage, value_target=value + advantage),
        memory, config.minibatch_size, key)

  def _end(self, memory: types.Experience, begun: _Begun, passed: _Passed
           ) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
    """Adapt all that depends on the whole update, and return as `learn`."""
    advantage, value, sums = passed
    sums = dict(sums)
    metrics = {**begun.metrics, **{name: sums.pop(name) for name in _COUNTS}}
    metrics.update({name: total / metrics["gradient_steps"]
                    for name, total in sums.items()})
    change = self.head.kl(
        begun.samples.policy, self.model.policy(memory, self.head.size))
    metrics["kl"] = masked.mean(change, masked.weight(memory.valid))
    self._step_size.adapt(metrics["kl"])
    if self.config.kl_penalty:
      metrics["kl_penalty"] = tf.identity(self._objective.penalty.weight)
      self._objective.penalty.adapt(metrics["kl"])
    self._reward_scale.after_learning(value + advantage, memory.valid)
    metrics["reward_scale"] = self._reward_scale.std
    return {**metrics, **self.update_features(memory)}, advantage

  def _estimate(self, memory: types.Experience
                ) -> tuple[tf.Tensor, tf.Tensor]:
    """Return values and advantages of shape [N], in units of scaled reward."""
    config = self.config
    value, next_value = self.values(memory)
    terminated = memory.terminated
    if not config.bootstrap_truncation:
      terminated |= memory.truncated
    advantage = gae.generalized_advantage(
        self._reward_scale(memory.reward), value, next_value, terminated,
        memory.last, config.discount, config.gae_lambda)
    return value, advantage

  @property
  def _loss_names(self) -> list[str]:
    cutoff = ["kl_cutoff"] if self.config.kl_cutoff_coef else []
    return [*self._objective.names, "grad_norm", *cutoff]

  def _update(self, memory: types.Experience, batch: minibatches.Batch
              ) -> dict[str, tf.Tensor]:
    """Take one gradient step."""
    batch, losses, slope = self._prepare(memory, batch)
    gradients, parts = self._gradients(batch, slope)
    return {**losses, **parts, **self._apply(gradients)}

  def _prepare(self, memory: types.Experience, batch: minibatches.Batch):
    """Return what takes all of a minibatch to know: its normalized advantages,
    and the slope of the KL cutoff."""
    config = self.config
    samples, losses = batch.data, {}
    slope = None
    if config.normalize_advantage:
      samples = samples._replace(
          advantage=masked.normalize(samples.advantage, batch.weight))
    if config.kl_cutoff_coef:
      sequences = memory.final_observ.shape[0]
      def divergence(chunk):
        samples, weight = chunk
        return kl_penalty.sums(self._objective.kl(samples), samples.sequence,
                               weight > 0, sequences)
      kl_sum, length = chunks.total(
          divergence, (samples, batch.weight), batch.amount)
      losses["kl_cutoff"], slope = kl_penalty.cutoff(
          kl_sum, length, config.kl_cutoff_factor * config.kl_target,
          config.kl_cutoff_coef)
    return batch._replace(data=samples), losses, slope

  def _gradients(self, batch: minibatches.Batch, slope: tf.Tensor | None
                 ) -> tuple[list[tf.Tensor], dict[str, tf.Tensor]]:
    """Return the gradients of a minibatch, or part of one, and its losses."""
    def gradients(chunk):
      samples, weight = chunk
      with tf.GradientTape() as tape:
        loss, parts = self._objective(samples, weight, slope)
      return tape.gradient(loss, self.weights), parts
    return chunks.total(gradients, (batch.data, batch.weight), batch.amount)

  def _apply(self, gradients: list[tf.Tensor]) -> dict[str, tf.Tensor]:
    """Take a gradient step; return what there is to say of it."""
    norm = tf.linalg.global_norm(gradients)
    if self.config.max_grad_norm is not None:
      gradients, _ = tf.clip_by_global_norm(
          gradients, self.config.max_grad_norm, norm)
    self._optimizer.apply(gradients, self.weights)
    finite = tf.math.is_finite(norm)
    return {"grad_norm": norm, "gradient_steps": tf.constant(1.0),
            "finite_steps": tf.cast(finite, tf.float32)}


def added(sums: dict[str, tf.Tensor], more: dict[str, tf.Tensor]
         ) -> dict[str, tf.Tensor]:
  return tf.nest.map_structure(tf.add, sums, more)
