"""PPO that distributes the gradient computation over several machines."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from agents import types
from agents.algorithms import minibatches
from agents.algorithms import ppo
from agents.distributed import collectives
from agents.ops import loops


class SharedUpdatesPPO(ppo.BatchPPO):
  """Each machine computes the gradients of its share of every minibatch.

  All machines hold the complete batch. Each computes advantages, moments of
  observations and KL divergences of the complete batch. Only gradients are
  summed over the machines. The update therefore equals that of one machine,
  except for rounding errors of the sum. It is faster if a minibatch takes
  longer than the exchange.

  Collective operations cannot run inside of an XLA program. An update is
  therefore one graph with several compiled parts.

  Args:
    args: See `BatchPPO`.
    communicator: Group of the machines.
    kwargs: See `BatchPPO`.
  """

  def __init__(self, *args, communicator: collectives.Communicator, **kwargs):
    super().__init__(*args, **kwargs)
    self._communicator = communicator
    def compiled(part):
      return tf.function(part, jit_compile=True, autograph=False)
    self._dealing = compiled(self._batches)
    self._learning = compiled(self._own_gradients)
    self._applying = compiled(self._apply_all)

  @tf.function(autograph=False)
  def learn(self, memory: types.Experience, clock: tf.Tensor,
            progress: tf.Tensor) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
    """See `BatchPPO.learn`."""
    begin, _, end = self._parts
    begun = begin(memory, progress)
    passed = loops.repeat(
        self.config.update_epochs, lambda epoch, passed: self._pass(
            memory, begun.samples, clock, epoch, passed), begun.passed)
    return end(memory, begun, passed)

  def _pass(self, memory: types.Experience, samples: Any, clock: tf.Tensor,
            epoch: tf.Tensor, passed: Any) -> Any:
    """See `BatchPPO._pass`; runs several compiled parts."""
    advantage, value, batches, amount = self._dealing(
        memory, samples, clock, epoch, passed)
    def learn_batch(index, sums):
      own, losses = self._learning(memory, batches, index)
      total = self._communicator.all_reduce(own)
      return self._applying(total, losses, sums)
    sums = loops.repeat(amount, learn_batch, passed.sums)
    return type(passed)(advantage, value, sums)

  def _batches(self, *args):
    """Returns the result of `_deal` as tensors."""
    advantage, value, dealt = self._deal(*args)
    return advantage, value, dealt.batches, tf.convert_to_tensor(dealt.amount)

  def _own_gradients(self, memory: types.Experience, batches: Any,
                     index: tf.Tensor
                     ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
    """Returns gradients and losses of this machine's share as one vector, and
    the losses that need the complete minibatch, by name."""
    batch = self.model.dealt(batches, memory).take(index)
    batch, losses, slope = self._prepare(memory, batch)
    gradients, parts = self._gradients(share(
        batch, self._communicator.rank, self._communicator.world_size), slope)
    return tf.concat([tf.reshape(tensor, [-1]) for tensor in (
        *gradients, *(parts[name] for name in self._objective.names))],
                     0), losses

  def _apply_all(self, total: tf.Tensor, losses: dict[str, tf.Tensor],
                 sums: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Takes a gradient step by the sum of all machines' vectors."""
    shapes = [tuple(weight.shape) for weight in self.weights]
    shapes += [()] * len(self._objective.names)
    sizes = [int(tf.TensorShape(shape).num_elements()) for shape in shapes]
    tensors = [tf.reshape(part, shape) for part, shape in zip(
        tf.split(total, sizes), shapes, strict=True)]
    gradients = tensors[:len(self.weights)]
    parts = dict(zip(
        self._objective.names, tensors[len(gradients):], strict=True))
    return ppo.added(sums, {**losses, **parts, **self._apply(gradients)})


def share(batch: minibatches.Batch, rank: int, world_size: int
          ) -> minibatches.Batch:
  """Returns one machine's share of a minibatch, with the original weights.

  The shares of all machines have equal shapes. Padding has weight 0.

  Args:
    batch: K chunks of C steps, or of S consecutive segments each.
    rank: Index of the machine.
    world_size: Number of machines.

  Returns:
    Minibatch with a second dimension of C / `world_size`, rounded up.
  """
  segments = getattr(batch.data, "context", ())
  units = segments.first.shape[1] if isinstance(
      segments, types.Segments) else batch.weight.shape[1]
  indices = tf.range(-(-units // world_size)) * world_size + rank
  def take(tensor):
    chunks, rows = tensor.shape[:2]
    split = tf.reshape(tensor, [chunks, units, rows // units,
                                *tensor.shape[2:]])
    taken = tf.gather(split, tf.minimum(indices, units - 1), axis=1)
    return tf.reshape(taken, [chunks, -1, *tensor.shape[2:]])
  data, weight = tf.nest.map_structure(take, (batch.data, batch.weight))
  is_row = tf.repeat(indices < units, batch.weight.shape[1] // units)
  return batch._replace(data=data, weight=tf.where(is_row, weight, 0.0))
