"""PPO that distributes the gradient computation over several machines."""

import functools
import math
from typing import Any

import tensorflow as tf

from agents import types
from agents.algorithms import ppo
from agents.distributed import collectives
from agents.ops import loops

_compiled = functools.partial(tf.function, jit_compile=True, autograph=False)


class SharedUpdatesPPO(ppo.BatchPPO):
  """Each machine computes the gradients of its share of every minibatch.

  All machines have the complete batch. Each machine computes advantages,
  moments of observations and KL divergences of the complete batch. Only the
  gradients and the terms of the loss are summed over the machines. The update
  therefore equals the update on one machine, up to rounding errors of the sum.
  The update is faster than on one machine if a machine needs more time to
  compute the gradients of a minibatch than to exchange them.

  Collective operations cannot run inside of an XLA program. An update is
  therefore one graph with several compiled parts.

  Args:
    args: See `BatchPPO`.
    communicator: Connects the machines.
    kwargs: See `BatchPPO`.
  """

  def __init__(self, *args: Any, communicator: collectives.Communicator, **kwargs: Any) -> None:
    super().__init__(*args, **kwargs)
    self._communicator = communicator

  prepare = _compiled(ppo.BatchPPO.prepare)
  finish = _compiled(ppo.BatchPPO.finish)
  _shuffle_split = _compiled(ppo.BatchPPO._shuffle_split)

  @tf.function(autograph=False)
  def learn(
    self, batch: types.Experience, step_counter: tf.Tensor, progress: tf.Tensor
  ) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
    """See `BatchPPO.learn`."""
    return ppo.BatchPPO.learn.python_function(self, batch, step_counter, progress)

  def epoch(
    self,
    batch: types.Experience,
    samples: Any,
    step_counter: tf.Tensor,
    epoch: tf.Tensor,
    state: ppo.EpochState,
  ) -> ppo.EpochState:
    """See `BatchPPO.epoch`."""
    advantage, value, split = self._shuffle_split(batch, samples, step_counter, epoch, state)

    def update(index: tf.Tensor, sums: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
      vector, losses = self._local_gradients(batch, split, index)
      return self._apply_total(self._communicator.all_reduce(vector), losses, sums)

    sums = loops.repeat(split.num_minibatches, update, state.sums)
    return ppo.EpochState(advantage, value, sums)

  @_compiled
  def _local_gradients(
    self, batch: types.Experience, split: Any, index: tf.Tensor
  ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
    """Computes the gradients of this machine's share of a minibatch.

    Returns:
      A vector of the gradients and the terms of the loss of the share, and the
      losses of the complete minibatch by name.
    """
    minibatch, loss, losses = self._loss.bind(split.take(index), batch.final_observ.shape[0])
    gradients, terms = self._gradients(
      loss, share(minibatch, self._communicator.rank, self._communicator.world_size)
    )
    vectors = [
      tf.reshape(tensor, [-1])
      for tensor in (*gradients, *(terms[name] for name in self._loss.names))
    ]
    return tf.concat(vectors, 0), losses

  @_compiled
  def _apply_total(
    self, total: tf.Tensor, losses: dict[str, tf.Tensor], sums: dict[str, tf.Tensor]
  ) -> dict[str, tf.Tensor]:
    """Takes a gradient step; returns `sums` plus the metrics of this step.

    `total` is the sum of the results of `_local_gradients` on all machines.
    """
    *gradients, terms = tf.split(
      total, [*(math.prod(weight.shape) for weight in self.weights), len(self._loss.names)]
    )
    metrics = self._apply(
      [
        tf.reshape(gradient, weight.shape)
        for gradient, weight in zip(gradients, self.weights, strict=True)
      ]
    )
    return tf.nest.map_structure(
      tf.add,
      sums,
      {**losses, **metrics, **dict(zip(self._loss.names, tf.unstack(terms), strict=True))},
    )


def share(minibatch: Any, rank: int, world_size: int) -> Any:
  """Returns one machine's share of a minibatch.

  The rows keep their weights in the minibatch, so the gradients of all shares
  add up to the gradients of the minibatch. The shares of all machines have
  equal shapes; padding has weight 0.

  Args:
    minibatch: Tensors of shape [M, ...], or [K, C, ...] if the minibatch
      consists of K chunks. Each row is one step. For recurrent policies, the
      rows form S consecutive segments.
    rank: Index of the machine.
    world_size: Number of machines.

  Returns:
    Minibatch with M / `world_size` rows, or C / `world_size` rows per chunk,
    rounded up. For recurrent policies, the share consists of whole segments.
  """
  *chunks, num_rows = minibatch.weight.shape
  axis = len(chunks)
  segments = getattr(minibatch.samples, "context", ())
  units = segments.first.shape[0] if isinstance(segments, types.Segments) else num_rows
  indices = tf.range(-(-units // world_size)) * world_size + rank

  def take(tensor: tf.Tensor) -> tf.Tensor:
    rows, *sizes = tensor.shape[axis:]
    split = tf.reshape(tensor, [*chunks, units, rows // units, *sizes])
    taken = tf.gather(split, tf.minimum(indices, units - 1), axis=axis)
    return tf.reshape(taken, [*chunks, -1, *sizes])

  samples, weight = types.map_tensors(take, (minibatch.samples, minibatch.weight))
  is_not_padding = tf.repeat(indices < units, num_rows // units)
  return minibatch._replace(samples=samples, weight=tf.where(is_not_padding, weight, 0.0))
