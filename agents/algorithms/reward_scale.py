"""Rewards of a size that networks learn from."""

from __future__ import annotations

import tensorflow as tf

from agents.networks import normalization

_LEAST = {"return": 1e-8, "reward": 1e-2}  # Rewards may all be the same.


class RewardScale:
  """Divides rewards by a running standard deviation, without centering.

  Args:
    by: "return" for the standard deviation of the value targets, so that the
      critic predicts normalized returns; "reward" for that of the rewards;
      "none".
    clip: Scaled rewards stay within +- this; None for no bound.
  """

  def __init__(self, by: str, clip: float | None):
    self._by = by
    self._clip = clip
    self._moments = (normalization.RunningMoments((), by) if by != "none" else None)

  @property
  def variables(self) -> list[tf.Variable]:
    return self._moments.variables if self._moments else []

  @property
  def std(self) -> tf.Tensor:
    """What rewards are divided by, float32."""
    if not self._moments:
      return tf.constant(1.0)
    return tf.maximum(
        tf.cast(self._moments.std, tf.float32), _LEAST[self._by])

  def __call__(self, reward: tf.Tensor) -> tf.Tensor:
    """Scale and clip rewards of any shape."""
    scaled = reward / self.std
    if self._clip is None:
      return scaled
    return tf.clip_by_value(scaled, -self._clip, self._clip)

  def before_learning(self, reward: tf.Tensor, valid: tf.Tensor):
    """Take notice of rewards of shape [N], where `valid`."""
    if self._moments and self._by == "reward":
      self._moments.update(reward, valid)

  def after_learning(self, scaled_return: tf.Tensor, valid: tf.Tensor):
    """Take notice of returns of scaled rewards, of shape [N], where `valid`."""
    if self._moments and self._by == "return":
      self._moments.update(scaled_return * self.std, valid)
