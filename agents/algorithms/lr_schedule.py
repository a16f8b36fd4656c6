"""Learning rate schedules."""

import tensorflow as tf

_FACTOR = 1.5
_SMALLEST, _LARGEST = 1e-6, 1e-2


class LearningRateSchedule:
  """Computes the learning rate from the progress or the KL divergence.

  Args:
    schedule: "constant", "linear" (falls to zero over the step budget),
      "kl_adaptive" (keeps the KL divergence of updates near `kl_target`), or
      "kl_adaptive_linear" (the same, and this target falls to zero over the
      step budget).
    initial: Learning rate of the first update.
    kl_target: Desired KL divergence of the first update, in nats.

  Attributes:
    variables: Variables for checkpoints.
  """

  def __init__(self, schedule: str, initial: float, kl_target: float) -> None:
    self._schedule = schedule
    self._kl_target = kl_target
    self._bounds = min(initial, _SMALLEST), max(initial, _LARGEST)
    self._rate = tf.Variable(initial, trainable=False, name="step_size/rate")
    self.variables = [self._rate]

  def rate(self, progress: tf.Tensor) -> tf.Tensor:
    """Returns the learning rate.

    Args:
      progress: Completed share of the step budget, in [0, 1].
    """
    # --8<-- [start:linear]
    if self._schedule == "linear":
      return self._rate * tf.maximum(0.0, 1.0 - progress)
    # --8<-- [end:linear]
    return tf.identity(self._rate)

  def adapt(self, kl: tf.Tensor, progress: tf.Tensor) -> None:
    """Adapts the rate if the schedule depends on the KL divergence.

        rate <- rate / 1.5   if KL > 2 * target
        rate <- rate * 1.5   if KL < target / 2

    Args:
      kl: Mean KL divergence from the old to the updated policy, in nats.
      progress: Completed share of the step budget, in [0, 1].
    """
    # --8<-- [start:kl_adaptive]
    if self._schedule in ("kl_adaptive", "kl_adaptive_linear"):
      target = tf.constant(self._kl_target)
      if self._schedule == "kl_adaptive_linear":
        target *= tf.maximum(0.0, 1.0 - progress)
      factor = tf.where(kl > 2 * target, 1 / _FACTOR, tf.where(kl < target / 2, _FACTOR, 1.0))
      self._rate.assign(tf.clip_by_value(self._rate * factor, *self._bounds))
    # --8<-- [end:kl_adaptive]
