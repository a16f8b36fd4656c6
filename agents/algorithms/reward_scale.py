"""Reward scaling."""

import tensorflow as tf

from agents.networks import normalization

# Lower bounds of the divisor, for constant rewards.
_MIN_STD = {"return": 1e-8, "reward": 1e-2}


class RewardScale:
  """Divides rewards by a running standard deviation, without centering.

  Args:
    kind: "return" divides by the standard deviation of the value targets, so
      that the critic predicts normalized returns. "reward" divides by the
      standard deviation of the rewards. "none" does not scale.
    clip: Bound of the absolute value of scaled rewards; None disables clipping.

  Attributes:
    variables: Variables for checkpoints.
  """

  def __init__(self, kind: str, clip: float | None) -> None:
    self._kind = kind
    self._clip = clip
    self._moments = normalization.RunningMoments((), kind) if kind != "none" else None
    self.variables = self._moments.variables if self._moments else []

  @property
  def std(self) -> tf.Tensor:
    """Divisor of the rewards, float32."""
    if not self._moments:
      return tf.constant(1.0)
    return tf.maximum(tf.cast(self._moments.std, tf.float32), _MIN_STD[self._kind])

  def __call__(self, reward: tf.Tensor) -> tf.Tensor:
    """Scales and clips rewards.

    Args:
      reward: Float tensor of any shape.
    """
    # --8<-- [start:scale]
    scaled = reward / self.std
    if self._clip is None:
      return scaled
    return tf.clip_by_value(scaled, -self._clip, self._clip)
    # --8<-- [end:scale]

  def update(self, kind: str, values: tf.Tensor, valid: tf.Tensor) -> None:
    """Adds values to the running moments if they determine the scale.

    Args:
      kind: Kind of the values, "reward" or "return".
      values: Unscaled rewards or returns of shape [N].
      valid: Bool tensor of shape [N]; invalid rows are ignored.
    """
    if self._moments and self._kind == kind:
      self._moments.update(values, valid)
