"""Collective operations between the machines of a run.

All machines call the same operations in the same order.
"""

import contextlib
import math
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from agents import errors
from agents.ops import packing

_GROUP_KEY = 1  # Identifies the group of all machines.
_MIN_ROOM = 16 * 1024  # Bytes.
_ROUND_TO = 4096  # Bytes; TensorFlow keeps state for every message size.
_LOST_ERRORS = (tf.errors.UnavailableError, tf.errors.DeadlineExceededError,
                tf.errors.AbortedError, tf.errors.CancelledError)


class Communicator:
  """The group of machines that train together.

  Args:
    rank: Index of this machine.
    world_size: Number of machines.
    timeout: Seconds to wait for another machine.
  """

  def __init__(self, rank: int, world_size: int, timeout: float):
    self.rank = rank
    self.world_size = world_size
    self._timeout = timeout

  def local_rows(self, num_rows: int) -> slice:
    """Returns the share of this machine, for example of the environments.

    Args:
      num_rows: Number of rows of all machines.
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
    """
    tensors = tf.nest.flatten(structure)
    with tf.control_dependencies(tensors):
      start = tf.timestamp()
    lengths = tf.stack([tf.shape(tensor)[0] for tensor in tensors])
    row_bytes = [math.prod(tensor.shape[1:]) * tensor.dtype.size
                 for tensor in tensors]
    header = 4 * len(tensors)
    with tf.control_dependencies([start]):
      message = tf.concat([
          tf.reshape(packing.as_bytes(tensor), [-1])
          for tensor in (lengths, *tensors)], 0)
    # One operation with some room for sizes that are unknown when the graph is
    # traced, and a second one if the room was too small for a machine.
    shapes = [[None, *tensor.shape[1:]] if tf.executing_eagerly()
              else tensor.shape for tensor in tensors]
    known = sum(shape[0] * size for shape, size in zip(
        shapes, row_bytes, strict=True) if shape[0] is not None)
    room = _rounded(header + known + max(known // 2, _MIN_ROOM))
    first = self._gather_bytes(message[:room], room)
    lengths = packing.restore(
        first[:, :header], np.dtype(np.int32), [len(tensors)])
    ends = header + tf.cumsum(lengths * row_bytes, axis=1)
    longest = tf.reduce_max(ends)
    raw = tf.cond(longest <= room, lambda: first,
                  lambda: self._gather_bytes(message, _rounded(longest)))
    def read(rank, index):
      length, end = lengths[rank, index], ends[rank, index]
      rows = tf.reshape(raw[rank, end - length * row_bytes[index]:end],
                        [length, row_bytes[index]])
      tensor = packing.restore(
          rows, np.dtype(tensors[index].dtype.as_numpy_dtype),
          shapes[index][1:])
      return tf.ensure_shape(tensor, shapes[index])
    gathered = [tf.nest.pack_sequence_as(
        structure, [read(rank, index) for index in range(len(tensors))])
                for rank in range(self.world_size)]
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
    data = pickle.dumps(value)
    message = np.int32(len(data)).tobytes() + data
    with self.lost_machines():
      gathered = self._gather_messages(message, _MIN_ROOM)
      longest = max(map(_message_size, gathered))
      if longest > _MIN_ROOM:
        gathered = self._gather_messages(message, _rounded(longest))
    return [pickle.loads(each[4:_message_size(each)]) for each in gathered]

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
      if not (isinstance(error, _LOST_ERRORS) or "ollective" in error.message):
        raise
      raise errors.MachineLost(error.message) from None

  def _gather_messages(self, message: bytes, size: int) -> list[bytes]:
    """Returns the first `size` bytes of each machine's message."""
    gathered = self._gather(np.frombuffer(
        message[:size].ljust(size, b"\0"), np.int32)).numpy()
    return [part.tobytes() for part in np.split(gathered, self.world_size)]

  def _gather_bytes(self, raw: tf.Tensor, size: tf.Tensor | int) -> tf.Tensor:
    """Returns the bytes of each machine, padded with zeros, [machines, size].
    """
    raw = tf.pad(raw, [[0, size - tf.shape(raw)[0]]])
    # Collective operations do not support uint8.
    words = self._gather(tf.bitcast(tf.reshape(raw, [-1, 4]), tf.int32))
    return tf.reshape(tf.bitcast(words, tf.uint8), [self.world_size, size])

  @tf.function(autograph=False, reduce_retracing=True)
  def _gather(self, words: tf.Tensor) -> tf.Tensor:
    """Returns [machines * N] for [N] on each machine."""
    return tf.raw_ops.CollectiveGatherV2(input=words, **self._keys(words, 0))

  def _keys(self, tensor: tf.Tensor, kind: int) -> dict[str, Any]:
    # Operations with equal keys belong together and must have equal kinds and
    # shapes. That suffices, because one operation runs at a time.
    return {"group_size": self.world_size, "group_key": _GROUP_KEY,
            "instance_key": 2 * tf.size(tensor) + kind, "ordering_token": [],
            "timeout_seconds": self._timeout}


def _message_size(message: bytes) -> int:
  """Returns the length of a message, of which the first 4 bytes are a header.
  """
  return 4 + int(np.frombuffer(message[:4], np.int32)[0])


def _rounded(size: Any) -> Any:
  return _ROUND_TO * ((size + _ROUND_TO - 1) // _ROUND_TO)
