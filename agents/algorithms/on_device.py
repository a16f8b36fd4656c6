"""Learning on one device while acting on another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from agents import types


class OnDevice:
  """Keeps two copies of an algorithm: one learns, the other one acts.

  The CPU steps the environments. Transferring single batches of observations
  to a GPU would take longer than computing their actions on the CPU.

  Args:
    make: Builds the algorithm; both copies have the same initial weights.
    device: Device to learn on, such as "GPU:0".
  """

  def __init__(self, make: Callable[[], Any], device: str):
    self._device = device
    with tf.device(device):
      self._learner = make()
    with tf.device("CPU:0"):
      self._actor = make()
    # Initial weights of two devices can differ in their last bits.
    self._copy_variables()

  @property
  def weights(self) -> list[Any]:
    """See `trainer.Algorithm.weights`."""
    return self._learner.weights

  def noise(self, step_counter: tf.Tensor, num_envs: int) -> tf.Tensor:
    """See `trainer.Algorithm.noise`."""
    return self._actor.noise(step_counter, num_envs)

  def initial_state(self, num_envs: int) -> Any:
    """See `trainer.Algorithm.initial_state`."""
    return self._actor.initial_state(num_envs)

  def act(self, observ: tf.Tensor, state: Any, noise: tf.Tensor | None
          ) -> tuple[tf.Tensor, Any]:
    """See `trainer.Algorithm.act`."""
    return self._actor.act(observ, state, noise)

  def learn(self, batch: types.Experience, step_counter: tf.Tensor,
            progress: tf.Tensor) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
    """See `trainer.Algorithm.learn`."""
    with tf.device(self._device):
      metrics, advantage = self._learner.learn(batch, step_counter, progress)
    with tf.control_dependencies(list(metrics.values())):
      self._copy_variables()
    return metrics, advantage

  def encode(self, observ: tf.Tensor) -> tf.Tensor:
    """See `trainer.Algorithm.encode`."""
    return self._actor.encode(observ)

  features = encode  # The earlier name, for one release.

  def variables(self) -> dict[str, Any]:
    """Returns all variables of a checkpoint, by name."""
    return self._learner.variables()

  def assign(self, values: dict[str, np.ndarray]):
    """Sets all variables.

    Args:
      values: Arrays by the names of `variables`.
    """
    self._learner.assign(values)
    self._actor.assign(values)

  def _copy_variables(self):
    """Copies the learner's variables to the actor."""
    learned = self._learner.variables()
    for name, variable in self._actor.variables().items():
      variable.assign(tf.convert_to_tensor(learned[name]))
