"""Collective operations between the machines of a run.

All machines call the same operations in the same order.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from agents import errors
from agents.distributed import message
from agents.ops import tensor_bytes

_GROUP_KEY = 1  # Identifies the group of all machines.
# Minimum number of spare bytes in the first message of `all_gather`.
_MIN_ROOM = 16 * 1024
# The number of bytes of each message is a multiple of this number, because
# TensorFlow keeps state for every message size.
_ROUND_TO = 4096
_TIMEOUT = 900.0  # Seconds to wait for a machine that is alive.
_LOST_ERRORS = (
  tf.errors.UnavailableError,
  tf.errors.DeadlineExceededError,
  tf.errors.AbortedError,
  tf.errors.CancelledError,
)


class Communicator:
  """The group of machines that train together.

  Args:
    rank: Index of this machine.
    world_size: Number of machines.
  """

  def __init__(self, rank: int, world_size: int) -> None:
    self.rank = rank
    self.world_size = world_size
    self._gather_vector = tf.function(
      self.all_gather, [tf.TensorSpec([None], tf.uint8)], autograph=False
    )

  def local_rows(self, num_rows: int) -> slice:
    """Returns the rows, such as environments, that belong to this machine.

    Args:
      num_rows: Total number of rows on all machines.
    """
    return slice(
      num_rows * self.rank // self.world_size, num_rows * (self.rank + 1) // self.world_size
    )

  def all_gather(self, structure: Any) -> tuple[list[Any], tf.Tensor]:
    """Gathers a structure of tensors from every machine.

    Args:
      structure: Structure of tensors of shape [N, ...]. N may differ between
        tensors and between machines.

    Returns:
      The structure of each machine, and the duration of the operation in
      seconds, float64. N is unknown in the static shapes.
    """
    tensors = tf.nest.flatten(structure)
    with tf.control_dependencies(tensors):
      start = tf.timestamp()
    lengths = tf.stack([tf.shape(tensor)[0] for tensor in tensors])
    header = 4 * len(tensors)
    with tf.control_dependencies([start]):
      rows = [tensor_bytes.as_bytes(tensor) for tensor in (lengths, *tensors)]
      sent = tf.concat([tf.reshape(each, [-1]) for each in rows], 0)
    row_bytes = [each.shape[1] for each in rows[1:]]
    # Sizes of tensors may be unknown when the graph is traced. The first
    # operation therefore sends `room` bytes, a number that must be equal on all
    # machines. If the message of any machine is longer, a second operation
    # sends the complete messages. In eager mode, the tensors show only the
    # sizes of this machine, so `room` does not depend on these sizes.
    static_bytes = (
      0
      if tf.executing_eagerly()
      else sum(
        (tensor.shape[0] or 0) * size for tensor, size in zip(tensors, row_bytes, strict=True)
      )
    )
    room = _round_up(header + static_bytes + max(static_bytes // 2, _MIN_ROOM))
    first = self._gather_bytes(sent[:room], room)
    lengths = tensor_bytes.restore(first[:, :header], np.dtype(np.int32), [len(tensors)])
    sizes = lengths * row_bytes
    longest = header + tf.reduce_max(tf.reduce_sum(sizes, 1))
    raw = tf.cond(
      longest <= room, lambda: first, lambda: self._gather_bytes(sent, _round_up(longest))
    )

    def read(rank: int) -> Any:
      _, *parts, _ = tf.split(
        raw[rank], tf.concat([[header], sizes[rank], [-1]], 0), num=len(tensors) + 2
      )
      return tf.nest.pack_sequence_as(
        structure,
        [
          tensor_bytes.restore(
            part, np.dtype(tensor.dtype.as_numpy_dtype), [length, *tensor.shape[1:]]
          )
          for part, tensor, length in zip(parts, tensors, tf.unstack(lengths[rank]), strict=True)
        ],
      )

    gathered = [read(rank) for rank in range(self.world_size)]
    with tf.control_dependencies(tf.nest.flatten(gathered)):
      seconds = tf.timestamp() - start
    return gathered, seconds

  def all_gather_object(self, value: Any) -> list[Any]:
    """Gathers a value from every machine.

    Args:
      value: JSON value, which may contain arrays; see `message`.

    Returns:
      The value of each machine, with lists in place of tuples.

    Raises:
      MachineLost: If another machine does not answer.
    """
    return [*map(message.decode, self.all_gather_bytes(message.encode(value)))]

  def all_gather_bytes(self, value: bytes) -> list[bytes]:
    """Gathers bytes of any length from every machine.

    Args:
      value: Bytes of this machine.

    Returns:
      The bytes of each machine.

    Raises:
      MachineLost: If another machine does not answer.
    """
    with self.lost_machines():
      gathered, _ = self._gather_vector(tf.constant(np.frombuffer(value, np.uint8)))
    return [each.numpy().tobytes() for each in gathered]

  def all_reduce(self, tensor: tf.Tensor) -> tf.Tensor:
    """Returns the sum of the tensors of all machines, bit-equal on each.

    Args:
      tensor: Tensor of the same shape on all machines.
    """
    return tf.raw_ops.CollectiveReduceV2(
      input=tensor, merge_op="Add", final_op="Id", **self._keys(tensor, 1)
    )

  @contextlib.contextmanager
  def lost_machines(self) -> Iterator[None]:
    """Context that converts errors of the connection into MachineLost.

    Yields:
      None.

    Raises:
      MachineLost: If a collective operation fails because of another machine.
    """
    try:
      yield
    except tf.errors.OpError as error:
      if isinstance(error, _LOST_ERRORS) or "ollective" in error.message:
        raise errors.MachineLost(error.message) from None
      raise

  def _gather_bytes(self, raw: tf.Tensor, size: tf.Tensor | int) -> tf.Tensor:
    """Gathers bytes, padded with zeros, as a tensor [machines, size]."""
    raw = tf.pad(raw, [[0, size - tf.shape(raw)[0]]])
    # Collective operations do not support uint8.
    words = tf.bitcast(tf.reshape(raw, [-1, 4]), tf.int32)
    gathered = tf.raw_ops.CollectiveGatherV2(input=words, **self._keys(words, 0))
    return tf.reshape(tf.bitcast(gathered, tf.uint8), [self.world_size, size])

  def _keys(self, tensor: tf.Tensor, kind: int) -> dict[str, Any]:
    # TensorFlow combines operations of different machines by their key. The
    # combined operations must have equal kinds and shapes. The key encodes the
    # kind (0: gather, 1: reduce) and the number of elements. Only one operation
    # runs at a time, so keys may repeat.
    return {
      "group_size": self.world_size,
      "group_key": _GROUP_KEY,
      "instance_key": 2 * tf.size(tensor) + kind,
      "ordering_token": [],
      "timeout_seconds": _TIMEOUT,
    }


def _round_up(size: Any) -> Any:
  """Returns the next multiple of `_ROUND_TO` for a number or a tensor."""
  return _ROUND_TO * ((size + _ROUND_TO - 1) // _ROUND_TO)
