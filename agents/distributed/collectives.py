"""What machines tell each other, by TensorFlow's collective operations.

All of them do the same at the same time, so nobody asks: each tells what it
has, and hears what the others have.
"""

from __future__ import annotations

import contextlib
import math
import pickle
from typing import Any

import numpy as np
import tensorflow as tf

from agents import errors
from agents.ops import packing

_GROUP = 1  # All machines; any number that they agree on.
_ROOM = 16 * 1024  # Bytes, the least.
_ROUND = 4096  # Bytes; each length is remembered forever.
_LOST = (tf.errors.UnavailableError, tf.errors.DeadlineExceededError,
         tf.errors.AbortedError, tf.errors.CancelledError)


class Communicator:
  """Some machines, of which this is one.

  Args:
    index: Of this machine.
    amount: Of all.
    timeout: Seconds to wait for others, which may be busy.
  """

  def __init__(self, index: int = 0, amount: int = 1, timeout: float = 0.0):
    self.index = index
    self.amount = amount
    self.share_updates = False  # Or each makes all of them.
    self._timeout = timeout

  def rows(self, amount: int) -> slice:
    """Return which of some rows, such as environments, belong to this one."""
    return slice(amount * self.index // self.amount,
                 amount * (self.index + 1) // self.amount)

  def tell(self, structure: Any) -> tuple[list[Any], tf.Tensor]:
    """Return what all machines tell in this place, in their order.

    Args:
      structure: Of tensors, alike on all of them but for their first axes.
    Returns:
      Such a structure of each, and the seconds it took, float64.
    """
    if self.amount == 1:
      return [structure], tf.zeros([], tf.float64)
    tensors = tf.nest.flatten(structure)
    with tf.control_dependencies(tensors):
      start = tf.timestamp()
    sizes = tf.stack([tf.shape(tensor)[0] for tensor in tensors])
    # Bytes of one row of each.
    widths = [math.prod(tensor.shape[1:]) * tensor.dtype.size
              for tensor in tensors]
    head = 4 * len(tensors)
    with tf.control_dependencies([start]):
      flat = tf.concat([
          tf.reshape(packing.as_bytes(tensor), [-1])
          for tensor in (sizes, *tensors)], 0)
    # Once, with some room for what is not known when the graph is made; a
    # second time where that was not enough for one of them.
    shapes = [[None, *tensor.shape[1:]] if tf.executing_eagerly()
              else tensor.shape for tensor in tensors]
    known = sum(shape[0] * width for shape, width in zip(
        shapes, widths, strict=True) if shape[0] is not None)
    room = _rounded(head + known + max(known // 2, _ROOM))
    first = self._gather_bytes(flat[:room], room)
    sizes = packing.restore(
        first[:, :head], np.dtype(np.int32), [len(tensors)])
    ends = head + tf.cumsum(sizes * widths, axis=1)
    most = tf.reduce_max(ends)
    raw = tf.cond(most <= room, lambda: first,
                  lambda: self._gather_bytes(flat, _rounded(most)))
    def read(machine, index):
      size, end = sizes[machine, index], ends[machine, index]
      rows = tf.reshape(raw[machine, end - size * widths[index]:end],
                        [size, widths[index]])
      tensor = packing.restore(
          rows, np.dtype(tensors[index].dtype.as_numpy_dtype),
          shapes[index][1:])
      return tf.ensure_shape(tensor, shapes[index])
    told = [tf.nest.pack_sequence_as(
        structure, [read(machine, index) for index in range(len(tensors))])
            for machine in range(self.amount)]
    with tf.control_dependencies(tf.nest.flatten(told)):
      seconds = tf.timestamp() - start
    return told, seconds

  def hear(self, news: Any) -> list[Any]:
    """Return what all machines tell in this place, in their order.

    Args:
      news: Anything that pickle knows. (Who can reach these machines could
        have them run any graph; that this is unpickled adds nothing to it.)
    """
    if self.amount == 1:
      return [news]
    message = pickle.dumps(news)
    sized = np.int32(len(message)).tobytes() + message
    with self.lost_machines():
      told = self._gather_sized(sized, _ROOM)
      if (longest := max(map(_size, told))) > _ROOM:
        told = self._gather_sized(sized, _rounded(longest))
    return [pickle.loads(each[4:_size(each)]) for each in told]

  def _gather_sized(self, message: bytes, size: int) -> list[bytes]:
    """Return the first `size` bytes of each machine's message."""
    gathered = self._gather(np.frombuffer(
        message[:size].ljust(size, b"\0"), np.int32)).numpy()
    return [part.tobytes() for part in np.split(gathered, self.amount)]

  @contextlib.contextmanager
  def lost_machines(self):
    """Raise MachineLost where an operation fails because of other machines."""
    try:
      yield
    except tf.errors.OpError as error:
      if self.amount == 1 or not (
          isinstance(error, _LOST) or "ollective" in error.message):
        raise
      raise errors.MachineLost(error.message) from None

  def total(self, tensor: tf.Tensor) -> tf.Tensor:
    """Return the sum of what the machines have, the same bits on each."""
    if self.amount == 1:
      return tensor
    return tf.raw_ops.CollectiveReduceV2(
        input=tensor, merge_op="Add", final_op="Id", **self._place(tensor, 1))

  def _gather_bytes(self, raw: tf.Tensor, size: tf.Tensor | int) -> tf.Tensor:
    """Return [machines, size] of up to so many bytes, and zeros behind."""
    raw = tf.pad(raw, [[0, size - tf.shape(raw)[0]]])
    # Collectives know no bytes.
    words = self._gather(tf.bitcast(tf.reshape(raw, [-1, 4]), tf.int32))
    return tf.reshape(tf.bitcast(words, tf.uint8), [self.amount, size])

  @tf.function(autograph=False, reduce_retracing=True)
  def _gather(self, words: tf.Tensor) -> tf.Tensor:
    """Return [machines * N] of [N] on each."""
    return tf.raw_ops.CollectiveGatherV2(input=words, **self._place(words, 0))

  def _place(self, tensor: tf.Tensor, kind: int) -> dict[str, Any]:
    # What has one key belongs together, and must be of one kind and shape. That
    # is all it has to tell, as nobody tells two things at a time.
    return {"group_size": self.amount, "group_key": _GROUP,
            "instance_key": 2 * tf.size(tensor) + kind, "ordering_token": [],
            "timeout_seconds": self._timeout}


def _size(message: bytes) -> int:
  """Return the length of a message whose first four bytes tell it, with these.
  """
  return 4 + int(np.frombuffer(message[:4], np.int32)[0])


def _rounded(size: Any) -> Any:
  return _ROUND * ((size + _ROUND - 1) // _ROUND)


LOCAL = Communicator()
