"""Proximal policy optimization (Schulman et al. 2017)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import keras
import tensorflow as tf

from agents import config as config_lib
from agents import types
from agents.algorithms import (
  actor_critic,
  feed_forward_model,
  lr_schedule,
  minibatches,
  reward_scale,
)
from agents.algorithms import loss as loss_lib
from agents.ops import gae, masked, random

_GRAD_NORMS = "grad_norm", "policy_grad_norm", "value_grad_norm"
_COUNTS = "gradient_steps", "finite_steps"


class EpochState(NamedTuple):
  """State of an update between two epochs."""

  advantage: tf.Tensor  # [N], advantages in the latest epoch.
  value: tf.Tensor  # [N], values that determined these advantages.
  sums: dict[str, tf.Tensor]  # Losses and counts, summed over gradient steps.


class BatchPPO(actor_critic.ActorCritic):
  """Learns from segments or whole episodes of all B environments.

  Args:
    config: Hyper-parameters.
    observation_space: Observation space, of a type that `agents.spaces` lists.
    networks: Policy and value networks. The constructor creates their
      variables.
    seed: Seed of all random numbers.
    frame_stack: Number of recent observations that the policy receives at each
      step.
  """

  def __init__(
    self,
    config: config_lib.Algorithm,
    observation_space: gymnasium.Space,
    networks: feed_forward_model.Networks,
    seed: int,
    frame_stack: int = 1,
  ) -> None:
    super().__init__(config, observation_space, networks, seed, frame_stack)
    self._loss = loss_lib.PPOLoss(config, self.distribution, self.model)
    self._reward_scale = reward_scale.RewardScale(config.reward_scale, config.reward_clip)
    self._lr_schedule = lr_schedule.LearningRateSchedule(
      config.lr_schedule, config.learning_rate, config.kl_target
    )
    self._shuffle_seed = random.stream(seed, "shuffle")
    self._optimizer = keras.optimizers.Adam(epsilon=config.adam_epsilon, name="adam")
    self._optimizer.build(self.weights)
    self._network_indices = networks.weight_indices()
    self.extra_variables = [
      *self._optimizer.variables,
      *self._reward_scale.variables,
      *self._lr_schedule.variables,
      *self._loss.penalty.variables,
    ]

  @tf.function(jit_compile=True, autograph=False)
  def learn(
    self, batch: types.Experience, step_counter: tf.Tensor, progress: tf.Tensor
  ) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
    """Trains policy and value for several epochs on one batch.

    Args:
      batch: Tensors of shape [N, ...].
      step_counter: Number of batched steps so far, int64; seeds the random
        numbers.
      progress: Completed share of the step budget, in [0, 1].

    Returns:
      Scalars to log, by name, and the advantages in the last epoch, of shape
      [N], in units of scaled reward.
    """
    samples, metrics, state = self.prepare(batch, progress)
    _, state = tf.while_loop(
      lambda epoch, _: epoch < self.config.update_epochs,
      lambda epoch, state: (epoch + 1, self.epoch(batch, samples, step_counter, epoch, state)),
      (tf.constant(0), state),
      maximum_iterations=self.config.update_epochs,
    )
    return self.finish(batch, samples, metrics, state, progress)

  def prepare(
    self, batch: types.Experience, progress: tf.Tensor
  ) -> tuple[loss_lib.Samples, dict[str, tf.Tensor], EpochState]:
    """Computes the inputs of the loss.

    Args:
      batch: Tensors of shape [N, ...].
      progress: Completed share of the step budget, in [0, 1].

    Returns:
      Inputs of the loss, of shape [N, ...]; metrics from before the update; and
      the state before the first epoch.
    """
    learning_rate = self._lr_schedule.rate(progress)
    self._optimizer.learning_rate.assign(learning_rate)
    self._reward_scale.update("reward", batch.reward, batch.valid)
    # Weights and observation moments are unchanged since the rollout, so these
    # are the parameters of the policy that acted.
    policy, (value, final_value) = self.model.policy_and_values(batch)
    advantage = self._estimate_advantage(batch, value, final_value)
    log_prob = self.distribution.log_prob(policy, batch.action)
    target = value + advantage
    samples = loss_lib.Samples(
      batch.observ, batch.action, policy, log_prob, value, advantage, target, batch.sequence
    )
    weight = masked.weight(batch.valid)
    metrics = {
      "learning_rate": learning_rate,
      "action_std": masked.mean(self.distribution.std(policy), weight),
      "action_saturation": masked.mean(self.distribution.saturation(batch.action), weight),
      "value_mean": masked.mean(value, weight),
    }
    names = (*self._loss.names, *self._loss.minibatch_names, *_GRAD_NORMS, *_COUNTS)
    sums = dict.fromkeys(names, tf.constant(0.0))
    return samples, metrics, EpochState(advantage, value, sums)

  def epoch(
    self,
    batch: types.Experience,
    samples: loss_lib.Samples,
    step_counter: tf.Tensor,
    epoch: tf.Tensor,
    state: EpochState,
  ) -> EpochState:
    """Takes one gradient step on each minibatch of the samples.

    Args:
      batch: Tensors of shape [N, ...].
      samples: Inputs of the loss from `prepare`, of shape [N, ...].
      step_counter: Number of batched steps so far, int64; seeds the order of
        the samples.
      epoch: Index of the epoch, from 0.
      state: State after the previous epoch.

    Returns:
      State after this epoch.
    """
    advantage, value, split = self._shuffle_split(batch, samples, step_counter, epoch, state)
    _, sums = tf.while_loop(
      lambda index, _: index < split.num_minibatches,
      lambda index, sums: (
        index + 1,
        tf.nest.map_structure(tf.add, sums, self._gradient_step(batch, split.take(index))),
      ),
      (tf.constant(0), state.sums),
    )
    return EpochState(advantage, value, sums)

  def finish(
    self,
    batch: types.Experience,
    samples: loss_lib.Samples,
    metrics: dict[str, tf.Tensor],
    state: EpochState,
    progress: tf.Tensor,
  ) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
    """Adapts learning rate, KL penalty and moments after the last epoch.

    Args:
      batch: Tensors of shape [N, ...].
      samples: Inputs of the loss from `prepare`, of shape [N, ...].
      metrics: Metrics from before the update, by name.
      state: State after the last epoch.
      progress: Completed share of the step budget, in [0, 1].

    Returns:
      See `learn`.
    """
    num_steps = state.sums["gradient_steps"]
    # Without this dependency, XLA computes the moments below in a second thread
    # during the gradient steps, which can slow them down; docs/performance.md.
    batch = batch._replace(valid=batch.valid & (num_steps >= 0))
    means = {name: x if name in _COUNTS else x / num_steps for name, x in state.sums.items()}
    metrics = {**metrics, **means}
    metrics["kl"] = self.model.mean_kl(batch, samples.policy)
    self._lr_schedule.adapt(metrics["kl"], progress)
    if self.config.kl_penalty:
      metrics["kl_penalty"] = tf.identity(self._loss.penalty.weight)
      self._loss.penalty.adapt(metrics["kl"])
    returns = state.value + state.advantage
    metrics["explained_variance"] = self._explained_variance(batch, samples.value, returns)
    self._reward_scale.update("return", returns * self._reward_scale.std, batch.valid)
    metrics["reward_scale"] = self._reward_scale.std
    metrics.update(self.update_normalization(batch))
    return metrics, state.advantage

  def _estimate_advantage(
    self, batch: types.Experience, value: tf.Tensor, final_value: tf.Tensor
  ) -> tf.Tensor:
    """Returns advantages of shape [N], in units of scaled reward.

    Args:
      batch: Tensors of shape [N, ...].
      value: Values of all rows, [N].
      final_value: Values of the final observations, [S].
    """
    config = self.config
    next_value = self.next_value(batch, value, final_value)
    # --8<-- [start:advantage]
    terminated = batch.terminated
    if not config.bootstrap_truncation:
      terminated |= batch.truncated
    reward = self._reward_scale(batch.reward)
    advantage = gae.generalized_advantage(
      reward, value, next_value, terminated, batch.last, config.discount, config.gae_lambda
    )
    # --8<-- [end:advantage]
    return advantage

  def _explained_variance(
    self, batch: types.Experience, value: tf.Tensor, returns: tf.Tensor
  ) -> tf.Tensor:
    """Returns the share of the variance of returns that old values explain.

    The values of the network before this update would explain estimates that
    contain the same values too well. Values after learning give the estimates.

    Args:
      batch: Tensors of shape [N, ...].
      value: Values before the update, [N].
      returns: Latest estimates of the returns, [N].
    """
    if not self.config.recompute_advantages:
      new_value, final_value = self.model.values(batch)
      returns = new_value + self._estimate_advantage(batch, new_value, final_value)
    weight = masked.weight(batch.valid)
    error = masked.variance(returns - value, weight)
    return 1 - error / (masked.variance(returns, weight) + 1e-8)

  def _shuffle_split(
    self,
    batch: types.Experience,
    samples: loss_lib.Samples,
    step_counter: tf.Tensor,
    epoch: tf.Tensor,
    state: EpochState,
  ) -> tuple[tf.Tensor, tf.Tensor, Any]:
    """Returns advantages, values, and minibatches of one epoch."""
    config = self.config
    advantage, value, _ = state
    # --8<-- [start:minibatches]
    if config.recompute_advantages:
      value, final_value = self.model.values(batch)
      advantage = self._estimate_advantage(batch, value, final_value)
    count = step_counter * config.update_epochs + tf.cast(epoch, tf.int64)
    key = random.key(self._shuffle_seed, count)
    samples = samples._replace(advantage=advantage, value_target=value + advantage)
    split = self.model.shuffle_split(samples, batch, config.minibatch_size, key)
    # --8<-- [end:minibatches]
    return advantage, value, split

  def _gradient_step(
    self, batch: types.Experience, minibatch: minibatches.AnyMinibatch
  ) -> dict[str, tf.Tensor]:
    """Takes one gradient step and returns its metrics."""
    minibatch, loss, losses = self._loss.bind(minibatch, batch.final_observ.shape[0])
    gradients, terms = self._gradients(loss, minibatch)
    return {**losses, **terms, **self._apply(gradients)}

  def _gradients(
    self, loss: Callable[..., Any], minibatch: minibatches.AnyMinibatch
  ) -> tuple[list[tf.Tensor], loss_lib.Losses]:
    """Returns the gradients, and the terms of the loss by name."""

    def gradients(samples: loss_lib.Samples, weight: tf.Tensor) -> tuple[Any, loss_lib.Losses]:
      with tf.GradientTape() as tape:
        total, terms = loss(samples, weight)
      return tape.gradient(total, self.weights), terms

    return minibatch.sum(gradients)

  def _apply(self, gradients: list[tf.Tensor]) -> dict[str, tf.Tensor]:
    """Updates the weights and returns metrics of the gradients."""
    # --8<-- [start:adam]
    norm = tf.linalg.global_norm(gradients)
    norms = {
      f"{name}_grad_norm": tf.linalg.global_norm([gradients[index] for index in indices])
      for name, indices in self._network_indices.items()
    }
    if self.config.max_grad_norm is not None:
      gradients, _ = tf.clip_by_global_norm(gradients, self.config.max_grad_norm, norm)
    self._optimizer.apply(gradients, self.weights)
    # --8<-- [end:adam]
    return {
      "grad_norm": norm,
      **norms,
      "gradient_steps": tf.constant(1.0),
      "finite_steps": tf.cast(tf.math.is_finite(norm), tf.float32),
    }
