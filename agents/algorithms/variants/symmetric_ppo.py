"""PPO that also learns from mirror images (Mittal et al. 2024)."""

from typing import Any

import tensorflow as tf

from agents.algorithms import loss as loss_lib
from agents.algorithms import ppo


class SymmetricPPO(ppo.BatchPPO):
  """Learns from the mirror images of all steps in every second epoch.

  Advantages and probabilities of mirror images are those of the steps, as in a
  symmetric policy. The number of gradient steps stays the same.

  Args:
    args: See `BatchPPO`.
    observ: Mirror of the observation, as a vector of its float32 numbers.
    action: Mirror of the action.
    kwargs: See `BatchPPO`.
  """

  def __init__(self, *args: Any, observ: Any, action: Any, **kwargs: Any) -> None:
    super().__init__(*args, **kwargs)
    self._observ_mirror, self._action_mirror = observ, action

  def epoch(
    self,
    batch: Any,
    samples: loss_lib.Samples,
    step_counter: tf.Tensor,
    epoch: tf.Tensor,
    state: ppo.EpochState,
  ) -> ppo.EpochState:
    """See `BatchPPO.epoch`."""
    images = self._images(samples)
    chosen = tf.nest.map_structure(
      lambda image, sample: tf.where(epoch % 2 == 1, image, sample), images, samples
    )
    return super().epoch(batch, chosen, step_counter, epoch, state)

  def _images(self, samples: loss_lib.Samples) -> loss_lib.Samples:
    """Returns the mirror images of samples."""
    observ = samples.observ
    if observ.dtype == tf.uint8:  # Bytes of all parts.
      numbers = tf.bitcast(tf.reshape(observ, [tf.shape(observ)[0], -1, 4]), tf.float32)
      observ = tf.reshape(
        tf.bitcast(_mirrored(self._observ_mirror, numbers), tf.uint8), tf.shape(observ)
      )
    else:
      observ = _mirrored(self._observ_mirror, observ)
    mean, log_std = tf.split(samples.policy, 2, -1)
    order, _ = self._action_mirror
    policy = tf.concat(
      [_mirrored(self._action_mirror, mean), tf.gather(log_std, order, axis=-1)], -1
    )
    action = _mirrored(self._action_mirror, samples.action)
    return samples._replace(observ=observ, action=action, policy=policy)


def _mirrored(mirror: Any, values: tf.Tensor) -> tf.Tensor:
  """Returns mirror images of vectors, [N, size]."""
  order, sign = mirror
  return tf.gather(values, order, axis=-1) * tf.cast(sign, values.dtype)
