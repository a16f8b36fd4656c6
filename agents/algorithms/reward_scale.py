"""Reward scaling."""

import tensorflow as tf

from agents.networks import normalization

_MIN_STD = {"return": 1e-8, "reward": 1e-2}  # For rewards without variance.


class RewardScale:
  """Divides rewards by a running standard deviation, without centering.

  Args:
    by: "return" for the standard deviation of the value targets, so that the
      critic predicts normalized returns; "reward" for that of the rewards;
      "none" for no scaling.
    clip: Bound of the absolute value of scaled rewards; None for no bound.

  Attributes:
    variables: Variables for checkpoints.
  """

  def __init__(self, by: str, clip: float | None):
    self._by = by
    self._clip = clip
    self._moments = (
        normalization.RunningMoments((), by) if by != "none" else None)
    self.variables = self._moments.variables if self._moments else []

  @property
  def std(self) -> tf.Tensor:
    """Divisor of the rewards, float32."""
    if not self._moments:
      return tf.constant(1.0)
    return tf.maximum(
        tf.cast(self._moments.std, tf.float32), _MIN_STD[self._by])

  def __call__(self, reward: tf.Tensor) -> tf.Tensor:
    """Scales and clips rewards.

    Args:
      reward: Float tensor of any shape.
    """
    scaled = reward / self.std
    if self._clip is None:
      return scaled
    return tf.clip_by_value(scaled, -self._clip, self._clip)

  def update(self, kind: str, values: tf.Tensor, valid: tf.Tensor):
    """Updates the moments if rewards are scaled by the std of these values.

    Args:
      kind: "reward" or "return".
      values: Unscaled rewards or returns of shape [N].
      valid: Bool tensor of shape [N]; other rows are ignored.
    """
    if self._moments and self._by == kind:
      self._moments.update(values, valid)
