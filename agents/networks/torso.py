"""Torsos: convolutions and recurrent cells before policy and value networks."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

_Inputs = tuple[tf.Tensor, ...]


class Torso:
  """Concatenates a vector with the features of images.

  Args:
    convolutions: One network for each image; maps [N, H, W, C] to [N, U].
    select: Selects the inputs that the network receives; see
      `observation_parts.ObservationParts`. By default, it receives all.

  Attributes:
    convolutions: See Args.
  """

  def __init__(
    self,
    convolutions: Sequence[keras.Model] = (),
    select: Callable[[_Inputs], _Inputs] = lambda inputs: inputs,
  ) -> None:
    self.convolutions = convolutions
    self._select = select
    self._layers = list(convolutions)

  @property
  def trainable_variables(self) -> list[Any]:
    """Variables of all layers; empty before the layers are called."""
    return [variable for layer in self._layers for variable in layer.trainable_variables]

  def encode(self, inputs: _Inputs) -> tf.Tensor:
    """Returns features of shape [N, D].

    Args:
      inputs: Vectors of shape [N, D'] and images of shape [N, H, W, C], see
        `observation_encoder.ObservationEncoder.inputs`.
    """
    vector, *images = self._select(inputs)
    if not images:
      return vector
    features = [
      convolution(image) for convolution, image in zip(self.convolutions, images, strict=True)
    ]
    return tf.concat([vector, *features], -1)


class RecurrentTorso(Torso):
  """Adds a recurrent cell, with a zero state at the start of each episode.

  Args:
    cell: Maps features [N, D] and states to outputs [N, U] and states.
    args: Arguments of `Torso`.

  Attributes:
    size: Length of the state vector of one episode.
  """

  def __init__(self, cell: keras.layers.Layer, *args: Any) -> None:
    super().__init__(*args)
    self._cell = cell
    self._layers.append(cell)
    self._sizes = tf.nest.flatten(cell.state_size)
    self.size = sum(self._sizes)

  def step(self, features: tf.Tensor, state: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Applies the cell to one step of N episodes.

    Args:
      features: Result of `encode`, [N, D].
      state: State after the previous step, [N, size].

    Returns:
      Outputs of shape [N, U], and the state after the step, [N, size].
    """
    output, states = self._cell(features, tf.split(state, self._sizes, -1))
    return output, tf.concat(tf.nest.flatten(states), -1)

  def unroll(
    self, features: tf.Tensor, first: tf.Tensor, state: tf.Tensor
  ) -> tuple[tf.Tensor, tf.Tensor]:
    """Applies the cell to T steps of S sequences.

    Args:
      features: Result of `encode`, [S, T, D].
      first: Bool tensor of shape [S, T]; true where an episode begins, which
        sets the state to zeros.
      state: State before the first step of each sequence, [S, size].

    Returns:
      Outputs of shape [S, T, U], and the state after each step, [S, T, size].
    """
    features = tf.transpose(features, [1, 0, 2])
    continues = tf.cast(~tf.transpose(first), tf.float32)[..., None]
    # --8<-- [start:unroll]
    outputs, states = tf.scan(
      lambda carry, step: self.step(step[0], carry[1] * step[1]),
      (features, continues),
      (tf.zeros([features.shape[1], self._sizes[0]]), state),
    )
    # --8<-- [end:unroll]
    return tf.transpose(outputs, [1, 0, 2]), tf.transpose(states, [1, 0, 2])


def cell(kind: str, units: int, seed: int, name: str) -> keras.layers.Layer:
  """Returns a recurrent cell.

  Args:
    kind: "gru" (Cho et al. 2014) or "lstm" (Hochreiter and Schmidhuber 1997).
    units: Size of the output.
    seed: Seed of the initial weights.
    name: Prefix of the variables' names.
  """
  layer = {"gru": keras.layers.GRUCell, "lstm": keras.layers.LSTMCell}[kind]
  return layer(
    units,
    name=name,
    kernel_initializer=keras.initializers.GlorotUniform(seed),
    recurrent_initializer=keras.initializers.Orthogonal(seed=seed + 1),
  )
