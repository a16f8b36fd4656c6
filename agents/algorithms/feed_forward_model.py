"""Policy and value networks that treat every step independently."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from agents import types
from agents.algorithms import deprecated, minibatches
from agents.networks import feed_forward, observation_encoder
from agents.ops import masked


def _unmasked(parameters: tf.Tensor, observ: Any) -> tf.Tensor:
  return parameters


class Networks(NamedTuple):
  """The networks of an algorithm."""

  policy: feed_forward.Policy  # Maps features [N, D] to parameters [N, P].
  value: keras.Model  # Maps features [N, D] to values [N, 1].
  policy_torso: Any = None  # `torso.Torso`, or None for plain vectors.
  value_torso: Any = None  # Is `policy_torso` if both networks share a torso.
  # Maps parameters [N, P] and observations [N, ...] to parameters of a policy
  # without forbidden actions.
  mask: Callable[[tf.Tensor, Any], tf.Tensor] = _unmasked

  @property
  def have_convolutions(self) -> bool:
    """Whether the networks process images."""
    return any(torso and torso.convolutions for torso in (self.policy_torso, self.value_torso))

  @property
  def weights(self) -> list[Any]:
    """Trainable variables of all networks; empty before their first call."""
    torsos = dict.fromkeys((self.policy_torso, self.value_torso))
    return [
      weight
      for network in (self.policy, self.value, *torsos)
      if network is not None
      for weight in network.trainable_variables
    ]

  def weight_indices(self) -> dict[str, list[int]]:
    """Returns the indices in `weights` of the "policy" and of the "value".

    A torso that both networks share belongs to the policy.
    """
    value = [self.value]
    if self.value_torso is not None and self.value_torso is not self.policy_torso:
      value.append(self.value_torso)
    own = {id(weight) for network in value for weight in network.trainable_variables}
    indices: dict[str, list[int]] = {"policy": [], "value": []}
    for index, weight in enumerate(self.weights):
      indices["value" if id(weight) in own else "policy"].append(index)
    return indices


class Model(deprecated.EarlierNames):
  """Applies policy and value networks to batches; the base of all models.

  Args:
    encoder: Maps observations to inputs of the networks.
    networks: Policy and value networks, and their torsos if there are any.
  """

  def __init__(self, encoder: observation_encoder.ObservationEncoder, networks: Networks) -> None:
    self._encoder = encoder
    self._networks = networks

  def policy(self, batch: types.Experience) -> tf.Tensor:
    """Returns parameters of the policy for all rows, [N, P].

    Args:
      batch: Tensors of shape [N, ...].
    """
    raise NotImplementedError

  def values(self, batch: types.Experience) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns values of all rows, [N], and of final observations, [S].

    Args:
      batch: Tensors of shape [N, ...] and final observations, [S, ...].
    """
    raise NotImplementedError

  def policy_and_values(
    self, batch: types.Experience
  ) -> tuple[tf.Tensor, tuple[tf.Tensor, tf.Tensor]]:
    """Returns the results of `policy` and `values`.

    Args:
      batch: Tensors of shape [N, ...] and final observations, [S, ...].
    """
    return self.policy(batch), self.values(batch)

  def mean_kl(self, batch: types.Experience, before: tf.Tensor) -> tf.Tensor:
    """Returns the mean KL divergence from an earlier policy, in nats.

    Args:
      batch: Tensors of shape [N, ...].
      before: Parameters of the earlier policy, [N, P].
    """
    kl = self._networks.policy.distribution.kl(before, self.policy(batch))
    return masked.mean(kl, masked.weight(batch.valid))


class FeedForward(Model):
  """Applies torsos, policy and value to encoded observations.

  Args:
    encoder: Maps observations to vectors and images.
    networks: Policy and value networks, and their torsos if there are any.

  Attributes:
    size: Length of the recurrent state of one episode; always 0.
  """

  size = 0

  def __init__(self, encoder: observation_encoder.ObservationEncoder, networks: Networks) -> None:
    super().__init__(encoder, networks)
    self._value = functools.partial(self._apply, networks.value_torso, networks.value)
    self.policy_and_value(encoder.example)  # Builds the variables.

  def act(self, observ: tf.Tensor, state: Any) -> tuple[tf.Tensor, Any]:
    """Returns parameters of the policy, [N, P], and `state`.

    Args:
      observ: Observations of shape [N, ...].
      state: Returned unchanged; only recurrent models use a state.
    """
    return self._policy(observ), state

  def policy_and_value(self, observ: Any, context: Any = ()) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns parameters of the policy, [N, P], and values, [N].

    Args:
      observ: Observations of N steps.
      context: Ignored; only `recurrent_model.RecurrentModel` needs a context.
    """
    inputs = self._encoder.inputs(observ)
    policy, value, policy_torso, value_torso, mask = self._networks
    features = policy_torso.encode(inputs) if policy_torso else inputs[0]
    parameters = mask(policy(features), observ)
    if value_torso is not policy_torso:
      features = value_torso.encode(inputs) if value_torso else inputs[0]
    return parameters, value(features)[:, 0]

  def policy(self, batch: types.Experience) -> tf.Tensor:
    """Returns parameters of the policy for all rows, [N, P].

    Args:
      batch: Tensors of shape [N, ...].
    """
    return minibatches.map_rows(self._policy, batch.observ, masked.valid_length(batch.valid))

  def values(self, batch: types.Experience) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns values of all rows, [N], and of final observations, [S].

    Args:
      batch: Tensors of shape [N, ...] and final observations, [S, ...].
    """
    value = minibatches.map_rows(self._value, batch.observ, masked.valid_length(batch.valid))
    num_sequences = tf.reduce_max(batch.sequence) + 1
    final_value = minibatches.map_rows(self._value, batch.final_observ, num_sequences)
    return value[:, 0], final_value[:, 0]

  def shuffle_split(
    self, samples: Any, batch: types.Experience, size: int | None, key: tf.Tensor
  ) -> minibatches.Minibatches | minibatches.FullBatch:
    """Splits samples of all rows randomly into minibatches.

    Args:
      samples: Named tuple of tensors of shape [N, ...].
      batch: The batch that the samples belong to.
      size: Number of steps per minibatch; None puts all steps into one
        minibatch.
      key: Random key of shape [2].
    """
    return minibatches.shuffle_split(samples, batch.valid, size, key)

  def _policy(self, observ: Any) -> tf.Tensor:
    """Returns parameters of the policy, [N, P]."""
    networks = self._networks
    return networks.mask(self._apply(networks.policy_torso, networks.policy, observ), observ)

  def _apply(self, torso: Any, network: keras.Model, observ: Any) -> tf.Tensor:
    """Returns outputs of one network, [N, ...]."""
    inputs = self._encoder.inputs(observ)
    return network(torso.encode(inputs) if torso else inputs[0])
