"""What every distribution over actions has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf


class ActionDistribution:
  """From a network's last layer to a distribution over actions.

  A head reads `size` numbers for each state, the distribution's parameters. A
  policy makes them by `parameters` of its outputs and of free variables, which
  are the same for all states; both begin as the head says.

  Args:
    shape: Of an action.
    initial_outputs: What a new network should give, nearly, for any state.
    initial_free: Initial values of the free variables.
    noise_size: Random numbers to sample one action by.
  """

  noise_kind = "normal"

  def __init__(self, shape: Sequence[int], initial_outputs: np.ndarray,
               initial_free: np.ndarray, noise_size: int):
    self.shape = tuple(shape)
    self.initial_outputs = initial_outputs.astype(np.float32)
    self.initial_free = initial_free.astype(np.float32)
    self.noise_size = noise_size
    self.size = initial_outputs.size + initial_free.size

  @property
  def noise_kinds(self) -> tuple[tuple[str, int], ...]:
    """What noise is made of, one after the other: distributions and sizes.

    They are called "normal" (of mean 0 and std 1), "uniform" (from 0 to 1),
    "gumbel" and "exponential" (of scale 1).
    """
    return ((self.noise_kind, self.noise_size),)

  def parameters(self, outputs: tf.Tensor, free: tf.Tensor) -> tf.Tensor:
    """Parameters of shape [N, size].

    Args:
      outputs: Of the network, of shape [N, len(initial_outputs)].
      free: Of shape [len(initial_free)].
    """
    return outputs

  def distribution(self, parameters: tf.Tensor) -> Any:
    """Distribution over flat actions for parameters of shape [..., size]."""
    raise NotImplementedError

  def mode(self, parameters: tf.Tensor) -> tf.Tensor:
    """Best known actions, of shape [N, *shape]."""
    raise NotImplementedError

  def noise(self, amount: int, key: tf.Tensor) -> tf.Tensor:
    """Random numbers for so many samples, of shape [amount, noise_size]."""
    raise NotImplementedError

  def sample(self, parameters: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
    """Actions of shape [N, *shape] by noise of shape [N, noise_size]."""
    raise NotImplementedError

  def log_prob(self, parameters: tf.Tensor, action: tf.Tensor) -> tf.Tensor:
    """Log density or probability of actions [N, *shape], of shape [N]."""
    distribution = self.distribution(parameters)
    flat = tf.reshape(action, [-1, *distribution.event_shape])
    return distribution.log_prob(flat)

  def entropy(self, parameters: tf.Tensor) -> tf.Tensor:
    """Entropy in nats, of shape [...]; differential if actions are."""
    return self.distribution(parameters).entropy()

  def kl(self, parameters: tf.Tensor, other: tf.Tensor) -> tf.Tensor:
    """KL divergence from one distribution to another, of shape [...]."""
    return self.distribution(parameters).kl_divergence(
        self.distribution(other))

  def std(self, parameters: tf.Tensor) -> tf.Tensor:
    """Mean over the dimensions, of shape [...].

    Numbers span [-1, 1] where they are bounded; choices are one-hot vectors.
    """
    raise NotImplementedError

  def saturation(self, action: tf.Tensor) -> tf.Tensor:
    """Share of the dimensions that the environment clips, of shape [N]."""
    return tf.zeros(tf.shape(action)[:1])
