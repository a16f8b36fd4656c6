"""Learning on a GPU while acting on the CPU."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from agents import types


class GPULearner:
  """Keeps two copies of an algorithm: one for learning and one for acting.

  Environments run on the CPU. Transferring the observations of every step to a
  GPU would take longer than computing the actions on the CPU. This class has
  the methods of `trainer.Algorithm`.

  Args:
    make: Function that builds the algorithm.
    device: Device for learning, such as "GPU:0".
  """

  def __init__(self, make: Callable[[], Any], device: str) -> None:
    self._device = device
    with tf.device(device):
      self._learner = make()
    with tf.device("CPU:0"):
      self._actor = make()
    # Two devices can compute initial weights with different last bits.
    self._copy_variables()
    self.weights = self._learner.weights
    self.variables = self._learner.variables
    self.initial_state = self._actor.initial_state
    self.noise = self._actor.noise
    self.act = self._actor.act
    self.encode = self._actor.encode

  def learn(
    self, batch: types.Experience, step_counter: tf.Tensor, progress: tf.Tensor
  ) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
    """Learns on the device, then copies all variables to the CPU.

    Args:
      batch: Tensors of shape [N, ...].
      step_counter: Number of batched steps so far, int64; seeds the random
        numbers.
      progress: Completed share of the step budget, in [0, 1].

    Returns:
      See `ppo.BatchPPO.learn`.
    """
    with tf.device(self._device):
      metrics, advantage = self._learner.learn(batch, step_counter, progress)
    with tf.control_dependencies(list(metrics.values())):
      self._copy_variables()
    return metrics, advantage

  def assign(self, values: dict[str, np.ndarray]) -> None:
    """Sets all variables of both copies.

    Args:
      values: Arrays by variable name, see `variables`.
    """
    self._learner.assign(values)
    self._actor.assign(values)

  def _copy_variables(self) -> None:
    """Copies the learner's variables to the actor."""
    learned = self._learner.variables()
    for name, variable in self._actor.variables().items():
      variable.assign(tf.convert_to_tensor(learned[name]))
