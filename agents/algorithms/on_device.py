"""Learning on one device, acting on another."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from agents import types


class OnDevice:
  """The same algorithm twice: one copy learns, the other follows and acts.

  Environments are stepped by the CPU, and for a batch of actions a GPU is not
  worth the way there and back; for large updates it is.

  Args:
    make: Builds the algorithm; both copies begin alike.
    device: Where to learn, such as "GPU:0".
  """

  def __init__(self, make: Callable[[], Any], device: str):
    self._device = device
    with tf.device(device):
      self._learner = make()
    with tf.device("CPU:0"):
      self._actor = make()
    self._follow()  # Initial weights may differ in their last bits.

  @property
  def weights(self) -> list[Any]:
    """See `trainer.Algorithm.weights`."""
    return self._learner.weights

  def noise(self, clock: tf.Tensor, amount: int) -> tf.Tensor:
    """See `trainer.Algorithm.noise`."""
    return self._actor.noise(clock, amount)

  def initial_state(self, amount: int) -> Any:
    """See `trainer.Algorithm.initial_state`."""
    return self._actor.initial_state(amount)

  def act(self, observ: tf.Tensor, state: Any, noise: tf.Tensor | None
          ) -> tuple[tf.Tensor, Any]:
    """See `trainer.Algorithm.act`."""
    return self._actor.act(observ, state, noise)

  def learn(self, memory: types.Experience, clock: tf.Tensor,
            progress: tf.Tensor) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
    """See `trainer.Algorithm.learn`."""
    with tf.device(self._device):
      metrics, advantage = self._learner.learn(memory, clock, progress)
    with tf.control_dependencies(list(metrics.values())):
      self._follow()
    return metrics, advantage

  def learn_in_parts(self, memory: types.Experience, clock: tf.Tensor,
                     progress: tf.Tensor) -> Iterator[
                         tuple[dict[str, tf.Tensor], tf.Tensor] | None]:
    """See `trainer.Algorithm.learn_in_parts`."""
    parts = self._learner.learn_in_parts(memory, clock, progress)
    while True:
      with tf.device(self._device):  # But not while somebody else has a turn.
        try:
          part = next(parts)
        except StopIteration:
          return
      if part:
        self._follow()
      yield part

  def features(self, observ: tf.Tensor) -> tf.Tensor:
    """See `trainer.Algorithm.features`."""
    return self._actor.features(observ)

  def variables(self) -> dict[str, Any]:
    """Return all that a checkpoint must hold, by name."""
    return self._learner.variables()

  def assign(self, values: dict[str, np.ndarray]):
    """Set all variables."""
    self._learner.assign(values)
    self._actor.assign(values)

  def _follow(self):
    learned = self._learner.variables()
    for name, variable in self._actor.variables().items():
      variable.assign(tf.convert_to_tensor(learned[name]))
