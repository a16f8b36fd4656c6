"""Collective operations between the machines of a run.

All machines call the same operations in the same order.
"""

import contextlib
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from agents import errors
from agents.ops import tensor_bytes

_GROUP_KEY = 1  # Identifies the group of all machines.
_MIN_ROOM = 16 * 1024  # Bytes.
_ROUND_TO = 4096  # Bytes; TensorFlow keeps state for every message size.
_TIMEOUT = 900.0  # Seconds to wait for another machine that is alive.
_LOST_ERRORS = (tf.errors.UnavailableError, tf.errors.DeadlineExceededError,
                tf.errors.AbortedError, tf.errors.CancelledError)


class Communicator:
  """The group of machines that train together.

  Args:
    rank: Index of this machine.
    world_size: Number of machines.
  """

  def __init__(self, rank: int, world_size: int):
    self.rank = rank
    self.world_size = world_size
    self._gather_vector = tf.function(
        self.all_gather, [tf.TensorSpec([None], tf.uint8)], autograph=False)

  def local_rows(self, num_rows: int) -> slice:
    """Returns the rows, such as environments, that belong to this machine.

    Args:
      num_rows: Total number of rows on all machines.
    """
    return slice(num_rows * self.rank // self.world_size,
                 num_rows * (self.rank + 1) // self.world_size)

  def all_gather(self, structure: Any) -> tuple[list[Any], tf.Tensor]:
    """Gathers a structure of tensors from every machine.

    Args:
      structure: Structure of tensors. Only the first axes may differ between
        machines.

    Returns:
      The structure of each machine, and the seconds of the operation, float64.
      The static sizes of the first axes are unknown.
    """
    tensors = tf.nest.flatten(structure)
    with tf.control_dependencies(tensors):
      start = tf.timestamp()
    lengths = tf.stack([tf.shape(tensor)[0] for tensor in tensors])
    header = 4 * len(tensors)
    with tf.control_dependencies([start]):
      rows = [tensor_bytes.as_bytes(tensor) for tensor in (lengths, *tensors)]
      message = tf.concat([tf.reshape(each, [-1]) for each in rows], 0)
    row_bytes = [each.shape[1] for each in rows[1:]]
    # The first operation has room for sizes that are unknown when the graph is
    # traced. A second operation follows if the room is too small for a machine.
    # The room must be equal on all machines. In eager mode, each machine knows
    # only its own sizes, so the room does not depend on them.
    known = 0 if tf.executing_eagerly() else sum(
        (tensor.shape[0] or 0) * size
        for tensor, size in zip(tensors, row_bytes, strict=True))
    room = _rounded(header + known + max(known // 2, _MIN_ROOM))
    first = self._gather_bytes(message[:room], room)
    lengths = tensor_bytes.restore(
        first[:, :header], np.dtype(np.int32), [len(tensors)])
    sizes = lengths * row_bytes
    longest = header + tf.reduce_max(tf.reduce_sum(sizes, 1))
    raw = tf.cond(longest <= room, lambda: first,
                  lambda: self._gather_bytes(message, _rounded(longest)))
    def read(rank):
      _, *parts, _ = tf.split(
          raw[rank], tf.concat([[header], sizes[rank], [-1]], 0),
          num=len(tensors) + 2)
      return tf.nest.pack_sequence_as(structure, [
          tensor_bytes.restore(part, np.dtype(tensor.dtype.as_numpy_dtype),
                          [length, *tensor.shape[1:]])
          for part, tensor, length in zip(
              parts, tensors, tf.unstack(lengths[rank]), strict=True)])
    gathered = [read(rank) for rank in range(self.world_size)]
    with tf.control_dependencies(tf.nest.flatten(gathered)):
      seconds = tf.timestamp() - start
    return gathered, seconds

  def all_gather_object(self, value: Any) -> list[Any]:
    """Gathers a Python object from every machine.

    Args:
      value: Picklable object.

    Returns:
      The object of each machine.

    Raises:
      MachineLost: If another machine does not answer.
    """
    message = tf.constant(np.frombuffer(pickle.dumps(value), np.uint8))
    with self.lost_machines():
      gathered, _ = self._gather_vector(message)
    return [pickle.loads(each.numpy()) for each in gathered]

  def all_reduce(self, tensor: tf.Tensor) -> tf.Tensor:
    """Returns the sum of the machines' tensors, with the same bits on each.

    Args:
      tensor: Tensor of the same shape on all machines.
    """
    return tf.raw_ops.CollectiveReduceV2(
        input=tensor, merge_op="Add", final_op="Id", **self._keys(tensor, 1))

  @contextlib.contextmanager
  def lost_machines(self) -> Iterator[None]:
    """Context that raises MachineLost if an operation fails on other machines.
    """
    try:
      yield
    except tf.errors.OpError as error:
      if isinstance(error, _LOST_ERRORS) or "ollective" in error.message:
        raise errors.MachineLost(error.message) from None
      raise

  def _gather_bytes(self, raw: tf.Tensor, size: tf.Tensor | int) -> tf.Tensor:
    """Returns the bytes of each machine, padded with zeros, [machines, size].
    """
    raw = tf.pad(raw, [[0, size - tf.shape(raw)[0]]])
    # Collective operations do not support uint8.
    words = tf.bitcast(tf.reshape(raw, [-1, 4]), tf.int32)
    gathered = tf.raw_ops.CollectiveGatherV2(
        input=words, **self._keys(words, 0))
    return tf.reshape(tf.bitcast(gathered, tf.uint8), [self.world_size, size])

  def _keys(self, tensor: tf.Tensor, kind: int) -> dict[str, Any]:
    # TensorFlow combines the operations with equal keys, which must have equal
    # kinds and shapes. Kind and size suffice as the key, because only one
    # operation runs at a time.
    return {"group_size": self.world_size, "group_key": _GROUP_KEY,
            "instance_key": 2 * tf.size(tensor) + kind, "ordering_token": [],
            "timeout_seconds": _TIMEOUT}


def _rounded(size: Any) -> Any:
  return _ROUND_TO * ((size + _ROUND_TO - 1) // _ROUND_TO)
