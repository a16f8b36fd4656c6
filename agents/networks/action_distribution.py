"""Base class of distributions over actions."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from agents.ops import random

# Samplers of noise; each one takes a shape and a random key.
_SAMPLERS = {
  "normal": random.normal,
  "uniform": random.uniform,
  "gumbel": lambda *args: -tf.math.log(-tf.math.log(random.uniform(*args))),
  "exponential": lambda *args: -tf.math.log(1 - random.uniform(*args)),
}


class ActionDistribution:
  """Maps outputs of a policy network to distributions over actions.

  The distribution for one state has `size` parameters. The method `parameters`
  computes these numbers from the network's outputs for the state and from free
  variables, which do not depend on the state.

  Args:
    shape: Shape of an action.
    initial_outputs: 1-D array; a new network has these outputs for every
      state, up to small random values.
    initial_free: 1-D array of the initial values of the free variables.
    noise_kinds: Pairs of a kind and a size. The noise vector of an action
      concatenates `size` random numbers of each kind: "normal" (mean 0, std 1),
      "uniform" (0 to 1), "gumbel" or "exponential" (scale 1).

  Attributes:
    noise_size: Length of the noise vector of an action.
    size: Number of parameters of the distribution for one state.
  """

  def __init__(
    self,
    shape: Sequence[int],
    initial_outputs: np.ndarray,
    initial_free: np.ndarray,
    *noise_kinds: tuple[str, int],
  ) -> None:
    self.shape = tuple(shape)
    self.initial_outputs = initial_outputs.astype(np.float32)
    self.initial_free = initial_free.astype(np.float32)
    self.noise_kinds = noise_kinds
    self.noise_size = sum(size for _, size in noise_kinds)
    self.size = initial_outputs.size + initial_free.size

  def parameters(self, outputs: tf.Tensor, free: tf.Tensor) -> tf.Tensor:
    """Returns parameters of shape [N, size].

    Args:
      outputs: Outputs of the network, of shape [N, len(initial_outputs)].
      free: Free variables, of shape [len(initial_free)].
    """
    return outputs

  def distribution(self, parameters: tf.Tensor) -> Any:
    """Returns a TensorFlow Probability distribution over flattened actions.

    Args:
      parameters: Tensor of shape [..., size].
    """
    raise NotImplementedError

  def mode(self, parameters: tf.Tensor) -> tf.Tensor:
    """Returns the most probable actions, of shape [N, *shape].

    Args:
      parameters: Tensor of shape [N, size].
    """
    raise NotImplementedError

  def noise(self, num_actions: int, key: tf.Tensor) -> tf.Tensor:
    """Returns the noise of actions, of shape [num_actions, noise_size].

    Args:
      num_actions: Number of actions to sample.
      key: Random key of shape [2].
    """
    kinds = self.noise_kinds
    keys = [key] if len(kinds) == 1 else tf.unstack(random.split(key, len(kinds)))
    noise = [_SAMPLERS[kind]([num_actions, size], key) for (kind, size), key in zip(kinds, keys)]
    return tf.concat(noise, -1)

  def sample(self, parameters: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
    """Returns random actions of shape [N, *shape].

    Args:
      parameters: Tensor of shape [N, size].
      noise: Result of `noise`, of shape [N, noise_size].
    """
    raise NotImplementedError

  def log_prob(self, parameters: tf.Tensor, action: tf.Tensor) -> tf.Tensor:
    """Returns log densities or log probabilities, of shape [N].

    Args:
      parameters: Tensor of shape [N, size].
      action: Actions of shape [N, *shape].
    """
    distribution = self.distribution(parameters)
    flat = tf.reshape(action, [-1, *distribution.event_shape])
    return distribution.log_prob(flat)

  def entropy(self, parameters: tf.Tensor) -> tf.Tensor:
    """Returns the entropy in nats, of shape [...].

    For continuous actions, this is the differential entropy.

    Args:
      parameters: Tensor of shape [..., size].
    """
    return self.distribution(parameters).entropy()

  def kl(self, parameters: tf.Tensor, other: tf.Tensor) -> tf.Tensor:
    """Returns the KL divergence KL(p || q) in nats, of shape [...].

    Args:
      parameters: Parameters of p, of shape [..., size].
      other: Parameters of q, of shape [..., size].
    """
    # --8<-- [start:kl]
    return self.distribution(parameters).kl_divergence(self.distribution(other))
    # --8<-- [end:kl]

  def std(self, parameters: tf.Tensor) -> tf.Tensor:
    """Returns the std of actions, averaged over their dimensions, [...].

    Bounded dimensions span [-1, 1]; choices count as one-hot vectors.

    Args:
      parameters: Tensor of shape [..., size].
    """
    raise NotImplementedError

  def saturation(self, action: tf.Tensor) -> tf.Tensor:
    """Returns the share of action dimensions that the environment clips, [N].

    Args:
      action: Actions of shape [N, *shape].
    """
    return tf.zeros(tf.shape(action)[:1])

  def _to_action(self, flat: tf.Tensor) -> tf.Tensor:
    """Converts values of shape [N, ...] to actions of shape [N, *shape]."""
    return tf.reshape(flat, [-1, *self.shape])
