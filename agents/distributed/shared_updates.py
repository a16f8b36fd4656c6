"""PPO whose gradient steps are the work of several machines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from agents import types
from agents.algorithms import minibatches
from agents.algorithms import ppo
from agents.distributed import collectives
from agents.ops import loops


class SharedUpdatesPPO(ppo.BatchPPO):
  """Each machine computes the gradients of its share of every minibatch.

  All hold the whole memory, so advantages, the moments of observations and the
  KL divergence are those of the whole batch; what is added up over the machines
  are the gradients alone. That is the update of one machine but for the order
  of the sum. It pays where a minibatch takes longer than the exchange.

  XLA knows no machines, so an update is many compiled parts instead of one.

  Args:
    args: See `BatchPPO`.
    communicator: The machines.
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
    """See `BatchPPO`."""
    begin, _, end = self._parts
    begun = begin(memory, progress)
    passed = loops.repeat(
        self.config.update_epochs, lambda epoch, passed: self._pass(
            memory, begun.samples, clock, epoch, passed), begun.passed)
    return end(memory, begun, passed)

  def learn_in_parts(self, memory: types.Experience, clock: tf.Tensor,
                     progress: tf.Tensor) -> Iterator[
                         tuple[dict[str, tf.Tensor], tf.Tensor] | None]:
    """In one, as machines can't give up an update but together."""
    yield self.learn(memory, clock, progress)

  def _pass(self, memory: types.Experience, samples: Any, clock: tf.Tensor,
            epoch: tf.Tensor, passed: Any) -> Any:
    advantage, value, batches, amount = self._dealing(
        memory, samples, clock, epoch, passed)
    def learn_batch(index, sums):
      own, losses = self._learning(memory, batches, index)
      total = self._communicator.all_reduce(own)
      return self._applying(total, losses, sums)
    sums = loops.repeat(amount, learn_batch, passed.sums)
    return type(passed)(advantage, value, sums)

  def _batches(self, *args):
    advantage, value, dealt = self._deal(*args)
    return advantage, value, dealt.batches, tf.convert_to_tensor(dealt.amount)

  def _own_gradients(self, memory: types.Experience, batches: Any,
                     index: tf.Tensor
                     ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
    """Return gradients and losses of this machine's share in one vector, and
    what is known of the whole minibatch."""
    batch = self.model.dealt(batches, memory).take(index)
    batch, losses, slope = self._prepare(memory, batch)
    gradients, parts = self._gradients(share(
        batch, self._communicator.rank, self._communicator.world_size), slope)
    return tf.concat([tf.reshape(tensor, [-1]) for tensor in (
        *gradients, *(parts[name] for name in self._objective.names))],
                     0), losses

  def _apply_all(self, total: tf.Tensor, losses: dict[str, tf.Tensor],
                 sums: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    shapes = [tuple(weight.shape) for weight in self.weights]
    shapes += [()] * len(self._objective.names)
    sizes = [int(tf.TensorShape(shape).num_elements()) for shape in shapes]
    tensors = [tf.reshape(part, shape) for part, shape in zip(
        tf.split(total, sizes), shapes, strict=True)]
    gradients = tensors[:len(self.weights)]
    parts = dict(zip(
        self._objective.names, tensors[len(gradients):], strict=True))
    return ppo.added(sums, {**losses, **parts, **self._apply(gradients)})


def share(batch: minibatches.Batch, index: int, amount: int
          ) -> minibatches.Batch:
  """Return one machine's share of a minibatch, with the weights of the whole.

  Args:
    batch: Of K chunks, each of C steps, or of S segments one after the other.
    index: Of the machine.
    amount: Of machines.
  """
  segments = getattr(batch.data, "context", ())
  units = segments.first.shape[1] if isinstance(
      segments, types.Segments) else batch.weight.shape[1]
  places = tf.range(-(-units // amount)) * amount + index
  def take(tensor):
    chunks, rows = tensor.shape[:2]
    split = tf.reshape(tensor, [chunks, units, rows // units,
                                *tensor.shape[2:]])
    taken = tf.gather(split, tf.minimum(places, units - 1), axis=1)
    return tf.reshape(taken, [chunks, -1, *tensor.shape[2:]])
  data, weight = tf.nest.map_structure(take, (batch.data, batch.weight))
  there = tf.repeat(places < units, batch.weight.shape[1] // units)
  return batch._replace(data=data, weight=tf.where(there, weight, 0.0))
