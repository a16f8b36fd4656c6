"""What stands between observations and the layers of policy or value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from agents.ops import loops


class Torso:
  """Convolutions for images, and a cell that remembers; either may be absent.

  What the cell remembers is zero where an episode begins.

  Args:
    encoders: From images [N, H, W, C] to [N, U]; one for each image.
    cell: Recurrent, from [N, D] and its states; None remembers nothing.
  """

  def __init__(self, encoders: Sequence[keras.Model] = (),
               cell: keras.layers.Layer | None = None):
    self._encoders = encoders
    self._cell = cell
    # Of the cell's states, which lie one after the other in one tensor.
    self._sizes = tf.nest.flatten(cell.state_size) if cell else []
    self.size = sum(self._sizes)

  @property
  def trainable_variables(self) -> list[Any]:
    """Of encoders and cell, once they are built."""
    layers = [*self._encoders, *([self._cell] if self._cell else [])]
    return [variable for layer in layers
            for variable in layer.trainable_variables]

  def encode(self, inputs: tuple[tf.Tensor, ...]) -> tf.Tensor:
    """Make one vector of a vector and images, for each of N rows: [N, D]."""
    vector, *images = inputs
    if not images:
      return vector
    codes = [encoder(image) for encoder, image in zip(
        self._encoders, images, strict=True)]
    return tf.concat([vector, *codes], -1)

  def step(self, codes: tf.Tensor, state: tf.Tensor
           ) -> tuple[tf.Tensor, tf.Tensor]:
    """Remember one step.

    Args:
      codes: From `encode`, [N, D].
      state: After the step before, [N, size].
    Returns:
      Outputs of shape [N, U], and the state after the step.
    """
    if not self._cell:
      return codes, state
    output, states = self._cell(codes, tf.split(state, self._sizes, -1))
    return output, tf.concat(tf.nest.flatten(states), -1)

  def unroll(self, codes: tf.Tensor, first: tf.Tensor, state: tf.Tensor
             ) -> tuple[tf.Tensor, tf.Tensor]:
    """Remember T steps of S sequences, each of which goes on with a state.

    Args:
      codes: From `encode`, [S, T, D].
      first: Where an episode begins, so that nothing is remembered, [S, T].
      state: At the beginning of each sequence, [S, size].
    Returns:
      Outputs of shape [S, T, U], and the states after each step.
    """
    codes = tf.transpose(codes, [1, 0, 2])
    goes_on = tf.cast(~tf.transpose(first), tf.float32)[..., None]
    steps, amount = codes.shape[:2]
    def step(index, carry):
      state, outputs, states = carry
      output, state = self.step(codes[index], state * goes_on[index])
      return state, outputs.write(index, output), states.write(index, state)
    def array(size):
      return tf.TensorArray(tf.float32, steps, element_shape=[amount, size])
    _, outputs, states = loops.repeat(
        steps, step, (state, array(self._sizes[0]), array(self.size)))
    return (tf.transpose(outputs.stack(), [1, 0, 2]),
            tf.transpose(states.stack(), [1, 0, 2]))


def cell(kind: str, units: int, seed: int, name: str) -> keras.layers.Layer:
  """Return a recurrent cell.

  Args:
    kind: "gru" (Cho et al. 2014) or "lstm" (Hochreiter and Schmidhuber 1997).
    units: Size of its output.
    seed: Of the initial weights.
    name: Prefix of the variables' names.
  """
  layer = {"gru": keras.layers.GRUCell, "lstm": keras.layers.LSTMCell}[kind]
  return layer(
      units, name=name,
      kernel_initializer=keras.initializers.GlorotUniform(seed),
      recurrent_initializer=keras.initializers.Orthogonal(seed=seed + 1))
