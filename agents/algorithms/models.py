"""Policy and value, as an algorithm looks at them: by steps or by sequences.

`FeedForward` takes every step for itself. `Recurrent` remembers, so it looks at
the segment of each environment from its first step on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from typing import NamedTuple

import keras
import tensorflow as tf

from agents import types
from agents.algorithms import chunks
from agents.algorithms import minibatches
from agents.networks import feed_forward
from agents.networks import observation_encoder
from agents.networks import torso
from agents.ops import masked

Batches = minibatches.Minibatches | minibatches.FullBatch


class Networks(NamedTuple):
  """What a policy and a value are made of."""

  policy: feed_forward.Policy  # From a core's outputs to parameters.
  value: keras.Model  # From a core's outputs to values, [N, 1].
  policy_core: torso.Torso = torso.Torso()
  value_core: torso.Torso = policy_core  # The same one, if they share it.

  @property
  def weights(self) -> list[Any]:
    """Trainable variables, once they are built."""
    layers = [self.policy, self.value, *dict.fromkeys(
        (self.policy_core, self.value_core))]
    return [weight for layer in layers for weight in layer.trainable_variables]


class FeedForward:
  """Takes every step for itself.

  Args:
    features: From observations to inputs of the networks.
    networks: Without cells.
  """

  size = 0  # Of what is remembered.

  def __init__(self, features: observation_encoder.ObservationEncoder, networks: Networks):
    self.features = features
    self._networks = networks
    self.policy_and_value(_example(features), ())  # Builds the variables.

  def act(self, observ: tf.Tensor, state: Any) -> tuple[tf.Tensor, Any]:
    """Return parameters of the policy, [N, P], and the next state."""
    return self._policy(observ), state

  def policy_and_value(self, observ: tf.Tensor, context: Any
           ) -> tuple[tf.Tensor, tf.Tensor]:
    """Return parameters of the policy, [N, P], and values, [N].

    Args:
      observ: Observations of N steps.
      context: Of a batch's samples, see `deal`.
    """
    inputs = self.features.inputs(observ)
    policy_core, value_core = self._networks[2:]
    codes = policy_core.encode(inputs)
    parameters = self._networks.policy(codes)
    if value_core is not policy_core:
      codes = value_core.encode(inputs)
    return parameters, self._networks.value(codes)[:, 0]

  def policy(self, memory: types.Experience, width: int) -> tf.Tensor:
    """Return the policy's parameters for all rows, [N, width]."""
    see = look(memory)
    return _rows(lambda rows: self._policy(see(rows)), memory.observ, width,
                 masked.extent(memory.valid))

  def values(self, memory: types.Experience) -> tuple[tf.Tensor, tf.Tensor]:
    """Return values of all rows, [N], and of what came after the last step of
    each sequence, [S]."""
    see = look(memory)
    def value(rows):
      return self._value(see(rows))
    return (_rows(value, memory.observ, 1, masked.extent(memory.valid))[:, 0],
            _rows(value, memory.final_observ, 1,
                  tf.reduce_max(memory.sequence) + 1)[:, 0])

  def deal(self, samples: Any, memory: types.Experience, size: int | None,
           key: tf.Tensor) -> _Dealt:
    """Deal samples of all rows into minibatches of `size` steps."""
    return self.dealt(
        minibatches.deal(samples, memory.valid, size, key), memory)

  def dealt(self, batches: Batches, memory: types.Experience) -> _Dealt:
    """Return what `deal` has returned, of its `batches`."""
    return _Dealt(batches, look(memory))

  def _policy(self, observ: tf.Tensor) -> tf.Tensor:
    return self._networks.policy(self._networks.policy_core.encode(
        self.features.inputs(observ)))

  def _value(self, observ: tf.Tensor) -> tf.Tensor:
    return self._networks.value(self._networks.value_core.encode(
        self.features.inputs(observ)))


class Recurrent:
  """Remembers, from the first step of an episode on.

  Learning goes through the segment of each environment from what was remembered
  when it began. Memories must keep each step in its place, see
  `memory.segments`.

  Args:
    features: From observations to inputs of the networks.
    networks: Of which at least the policy's core has a cell.
  """

  def __init__(self, features: observation_encoder.ObservationEncoder, networks: Networks):
    self.features = features
    self._networks = networks
    cores = dict.fromkeys((networks.policy_core, networks.value_core))
    self._parts = {}  # Of what is remembered, for each core.
    self.size = 0
    for core in cores:
      self._parts[core] = slice(self.size, self.size + core.size)
      self.size += core.size
    state = tf.zeros([1, self.size])
    self.act(_example(features), state)
    self.policy_and_value(_example(features), types.Segments(
        tf.constant([[False]]), state))

  def act(self, observ: tf.Tensor, state: tf.Tensor
          ) -> tuple[tf.Tensor, tf.Tensor]:
    """Return parameters of the policy, [N, P], and the next state, [N, size].
    """
    inputs = self.features.inputs(observ)
    steps = {core: core.step(core.encode(inputs), state[:, part])
             for core, part in self._parts.items()}
    outputs, _ = steps[self._networks.policy_core]
    return self._networks.policy(outputs), tf.concat(
        [state for _, state in steps.values()], -1)

  def policy_and_value(self, observ: tf.Tensor, context: types.Segments
           ) -> tuple[tf.Tensor, tf.Tensor]:
    """Return parameters of the policy, [N, P], and values, [N].

    Args:
      observ: Observations of N steps, one sequence after the other.
      context: Of these sequences.
    """
    inputs = self.features.inputs(observ)
    outputs = {core: self._unroll(core, core.encode(inputs), context)[0]
               for core in self._parts}
    return (self._networks.policy(outputs[self._networks.policy_core]),
            self._networks.value(outputs[self._networks.value_core])[:, 0])

  def policy(self, memory: types.Experience, width: int) -> tf.Tensor:
    """Return the policy's parameters for all rows, [N, width]."""
    outputs, _ = self._remember(self._networks.policy_core, memory)
    parameters = self._networks.policy(outputs)
    return tf.pad(parameters, [
        [0, memory.valid.shape[0] - parameters.shape[0]], [0, 0]])

  def values(self, memory: types.Experience) -> tuple[tf.Tensor, tf.Tensor]:
    """Return values of all rows, [N], and of what came after the last step of
    each sequence, [S]."""
    core, value = self._networks.value_core, self._networks.value
    outputs, states = self._remember(core, memory)
    rows, ends = memory.valid.shape[0], memory.final_observ.shape[0]
    steps = outputs.shape[0]
    last = tf.math.unsorted_segment_max(
        tf.where(memory.last & memory.valid, tf.range(rows), 0),
        memory.sequence, ends)
    codes = self._codes(core, memory, memory.final_observ,
                        tf.reduce_max(memory.sequence) + 1)
    after, _ = core.step(codes, tf.gather(
        states, tf.clip_by_value(last, 0, steps - 1)))
    return (tf.pad(value(outputs)[:, 0], [[0, rows - steps]]),
            value(after)[:, 0])

  def deal(self, samples: Any, memory: types.Experience, size: int | None,
           key: tf.Tensor) -> _DealtSegments:
    """Deal whole segments into minibatches of about `size` steps."""
    amount, steps = memory.segments.first.shape
    split = tf.nest.map_structure(
        lambda tensor: tf.reshape(
            tensor[:amount * steps], [amount, steps, *tensor.shape[1:]]),
        (samples._replace(context=()), memory.valid))
    return self.dealt(minibatches.deal(
        (*split, memory.segments), tf.ones([amount], tf.bool),
        amount if size is None else size // steps, key), memory)

  def dealt(self, batches: Batches, memory: types.Experience
            ) -> _DealtSegments:
    """Return what `deal` has returned, of its `batches`."""
    return _DealtSegments(batches, look(memory))

  def _remember(self, core: torso.Torso, memory: types.Experience
                ) -> tuple[tf.Tensor, tf.Tensor]:
    """Return a core's outputs and states for all steps, one after the other."""
    amount, steps = memory.segments.first.shape
    codes = self._codes(
        core, memory, memory.observ, masked.extent(memory.valid))
    return self._unroll(core, codes[:amount * steps], memory.segments)

  def _codes(self, core: torso.Torso, memory: types.Experience,
             observ: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
    def encode(observ):
      return core.encode(self.features.inputs(observ))
    see, width = look(memory), encode(_example(self.features)).shape[-1]
    return _rows(lambda rows: encode(see(rows)), observ, width, count)

  def _unroll(self, core: torso.Torso, codes: tf.Tensor,
              context: types.Segments) -> tuple[tf.Tensor, tf.Tensor]:
    outputs, states = core.unroll(
        tf.reshape(codes, [*context.first.shape, codes.shape[-1]]),
        context.first, context.state[:, self._parts[core]])
    return _joined(outputs), _joined(states)


class _Dealt(NamedTuple):
  """Minibatches of single steps."""

  batches: Batches
  see: Callable[[tf.Tensor], tf.Tensor]  # From rows to observations.

  @property
  def amount(self) -> tf.Tensor | int:
    return self.batches.amount

  def take(self, index: tf.Tensor) -> minibatches.Batch:
    """Return one batch."""
    batch = self.batches.take(index)
    return batch._replace(data=batch.data._replace(
        observ=self.see(batch.data.observ)))


class _DealtSegments(_Dealt):
  """Minibatches of whole segments."""

  def take(self, index: tf.Tensor) -> minibatches.Batch:
    """Return one batch as one chunk of steps."""
    batch = self.batches.take(index)
    (samples, valid, context), weight = tf.nest.map_structure(
        _joined, (batch.data, batch.weight))
    valid &= (weight > 0)[:, None]
    samples, valid = tf.nest.map_structure(_joined, (samples, valid))
    samples = samples._replace(
        observ=self.see(samples.observ), context=context)
    data, weight = tf.nest.map_structure(
        lambda tensor: tensor[None], (samples, masked.weight(valid)))
    return minibatches.Batch(data, weight, tf.constant(1))


def make(features: observation_encoder.ObservationEncoder, networks: Networks
         ) -> FeedForward | Recurrent:
  """Return the model that networks need."""
  recurrent = networks.policy_core.size + networks.value_core.size
  return (Recurrent if recurrent else FeedForward)(features, networks)


def look(memory: types.Experience) -> Callable[[tf.Tensor], tf.Tensor]:
  """Return the function from rows of a memory to what they observe."""
  if isinstance(memory.frames, tuple):
    return lambda rows: rows
  return lambda rows: tf.gather(memory.frames, rows)


def _example(features: observation_encoder.ObservationEncoder) -> tf.Tensor:
  """Return an observation as networks see it, [1, ...]."""
  if not features.stack:
    return features.example
  return tf.stack([features.example] * features.stack, 1)


def _rows(function: Any, observ: tf.Tensor, width: int, count: tf.Tensor
          ) -> tf.Tensor:
  """Apply a function to the first `count` of N rows; [N, width]."""
  rows = observ.shape[0]
  outputs = chunks.apply(
      function, chunks.split(observ), chunks.filled(count, rows), (width,))
  return tf.reshape(outputs, [rows, width])


def _joined(tensor: tf.Tensor) -> tf.Tensor:
  """Make one axis of the first two."""
  return tf.reshape(tensor, [-1, *tensor.shape[2:]])
