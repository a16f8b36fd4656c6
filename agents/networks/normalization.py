"""Running mean and standard deviation as TensorFlow variables."""

import tensorflow as tf


class RunningMoments:
  """Mean and standard deviation of all samples so far (Chan et al. 1979).

  The variables are float64, because float32 cannot count beyond 2^24. The
  moments do not change during a rollout, so the policy is constant.

  Args:
    shape: Shape of one sample.
    name: Prefix of the variables' names.

  Attributes:
    count: Number of samples, float64.
    mean: Mean, of shape `shape`.
    squares: Sum of squared deviations from the mean, of shape `shape`.
    variables: All attributes above, for checkpoints.
  """

  def __init__(self, shape: tuple[int, ...], name: str) -> None:
    self.variables = [
      tf.Variable(tf.zeros(size, tf.float64), False, name=f"{name}/{suffix}")
      for suffix, size in (("count", ()), ("mean", shape), ("squares", shape))
    ]
    self.count, self.mean, self.squares = self.variables

  @property
  def std(self) -> tf.Tensor:
    """Standard deviation, float64; 1 before the first update."""
    updated = self.count > 0
    variance = self.squares / tf.where(updated, self.count, 1.0)
    return tf.where(updated, tf.sqrt(variance), 1.0)

  def update(self, samples: tf.Tensor, valid: tf.Tensor) -> None:
    """Adds samples.

    Args:
      samples: Tensor of shape [N, *shape].
      valid: Bool tensor of shape [N]. Rows with false are ignored.
    """
    samples = tf.cast(samples, tf.float64)
    mask = tf.reshape(tf.cast(valid, tf.float64), [-1] + [1] * (samples.shape.rank - 1))
    added = tf.reduce_sum(mask)
    mean = tf.reduce_sum(mask * samples, 0) / tf.maximum(added, 1.0)
    squares = tf.reduce_sum(mask * tf.square(samples - mean), 0)
    count = self.count + added
    divisor = tf.maximum(count, 1.0)
    delta = mean - self.mean
    # --8<-- [start:update]
    self.squares.assign_add(squares + tf.square(delta) * self.count * added / divisor)
    self.mean.assign_add(delta * added / divisor)
    # --8<-- [end:update]
    self.count.assign(count)

  def normalize(self, samples: tf.Tensor, clip: float) -> tf.Tensor:
    """Shifts and scales samples to mean 0 and std 1, then clips them.

    Args:
      samples: Float32 tensor of shape [N, *shape].
      clip: Bound of the absolute value of the result.
    """
    # --8<-- [start:normalize]
    mean = tf.cast(self.mean, tf.float32)
    scale = tf.cast(1 / (self.std + 1e-8), tf.float32)
    return tf.clip_by_value((samples - mean) * scale, -clip, clip)
    # --8<-- [end:normalize]
