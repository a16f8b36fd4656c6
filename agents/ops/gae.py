"""Generalized advantage estimation."""

from typing import Any

import tensorflow as tf


def generalized_advantage(
  reward: tf.Tensor,
  value: tf.Tensor,
  next_value: tf.Tensor,
  terminated: tf.Tensor,
  last: tf.Tensor,
  discount: float,
  lambda_: float,
) -> tf.Tensor:
  """Estimates advantages by exponentially weighted TD errors (Schulman 2015).

      delta[t]     = reward[t] + discount * next_value[t] - value[t]
      advantage[t] = delta[t] + discount * lambda_ * advantage[t + 1]

  At termination, `next_value` and `advantage[t + 1]` count as zero. Where a
  sequence ends without termination, only `advantage[t + 1]` counts as zero, and
  `next_value` estimates all later rewards.

  Args:
    reward: Float tensor of shape [T, ...].
    value: Value of each state, of shape [T, ...], in units of reward.
    next_value: Value of each true successor, of shape [T, ...].
    terminated: Bool tensor of shape [T, ...], true if no future reward exists.
    last: Bool tensor of shape [T, ...], true at the last step of a sequence.
    discount: Reward weight per environment step, in [0, 1].
    lambda_: Weight of longer estimates, in [0, 1].

  Returns:
    Tensor of shape [T, ...] without gradient, in units of reward.

  Raises:
    ValueError: If `discount` or `lambda_` lies outside [0, 1].
  """
  for name, number in (("discount", discount), ("lambda_", lambda_)):
    if not 0 <= number <= 1:
      raise ValueError(f"`{name}` must lie in [0, 1]. Received: {number}.")
  # --8<-- [start:gae]
  has_future = tf.cast(~terminated, reward.dtype)
  delta = reward + discount * has_future * next_value - value
  decay = discount * lambda_ * tf.cast(~(terminated | last), reward.dtype)

  num_steps = reward.shape[0]
  advantages = tf.TensorArray(reward.dtype, num_steps)

  def body(step: tf.Tensor, advantage: tf.Tensor, advantages: tf.TensorArray) -> tuple[Any, ...]:
    advantage = delta[step] + decay[step] * advantage
    return step - 1, advantage, advantages.write(step, advantage)

  _, _, advantages = tf.while_loop(
    lambda step, *_: step >= 0,
    body,
    (num_steps - 1, tf.zeros_like(reward[0]), advantages),
    maximum_iterations=num_steps,
  )
  # --8<-- [end:gae]
  return tf.stop_gradient(tf.ensure_shape(advantages.stack(), reward.shape))
