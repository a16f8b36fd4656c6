"""Policy and value networks for images and stacks of frames."""

from typing import Any

import tensorflow as tf

from agents.algorithms import feed_forward_model
from agents.networks import torso


class TorsoModel(feed_forward_model.FeedForward):
  """Inserts torsos between observations and the networks.

  Args:
    encoder: Maps observations to vectors and images.
    networks: Policy and value, with torsos.
  """

  def policy_and_value(self, observ: Any, context: Any = ()
                       ) -> tuple[tf.Tensor, tf.Tensor]:
    """See `FeedForward.policy_and_value`."""
    inputs = self._encoder.inputs(observ)
    policy_torso, value_torso = self._networks[2:]
    features = policy_torso.encode(inputs)
    parameters = self._networks.policy(features)
    if value_torso is not policy_torso:
      features = value_torso.encode(inputs)
    return parameters, self._networks.value(features)[:, 0]

  def _policy(self, observ: Any) -> tf.Tensor:
    return self._networks.policy(
        self._encode(self._networks.policy_torso, observ))

  def _value(self, observ: Any) -> tf.Tensor:
    return self._networks.value(
        self._encode(self._networks.value_torso, observ))

  def _encode(self, torso_: torso.Torso, observ: Any) -> tf.Tensor:
    return torso_.encode(self._encoder.inputs(observ))
