"""The one place where the graph crosses into Python."""

from __future__ import annotations

import contextlib
import math
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from agents.environments import batch_env as batch_env_lib


class Answers(NamedTuple):
  """What the environments answer to one step, or to T of them: [T, B, ...]."""

  observ: tf.Tensor  # [B, ...], to act on; a reset one where an episode ended.
  reward: tf.Tensor  # [B] float32
  terminated: tf.Tensor  # [B] bool
  truncated: tf.Tensor  # [B] bool
  valid: tf.Tensor  # [B] bool, false where the environment waited.


class InGraphBatchEnv:
  """Steps a batch environment as an operation of the graph.

  All answers to a step cross as one array of bytes: a crossing costs about the
  same for one small tensor as for one large one, but again for each.
  """

  def __init__(self, batch_env: batch_env_lib.BatchEnv):
    self.batch_env = batch_env
    self._error: BaseException | None = None

  def __len__(self) -> int:
    return len(self.batch_env)

  @property
  def action_spec(self) -> tf.TensorSpec:
    """Type and shape of the actions, [B, ...]."""
    field = self.batch_env.action_layout.fields[0]
    return tf.TensorSpec(field.shape, field.dtype)

  @property
  def packed_spec(self) -> tf.TensorSpec:
    """Type and shape of packed answers."""
    return tf.TensorSpec([self.batch_env.step_layout.num_bytes], tf.uint8)

  def step(self, action: tf.Tensor, active: tf.Tensor | None = None
           ) -> tuple[tf.Tensor, tf.Tensor]:
    """Step all environments, or the active ones.

    Args:
      action: Tensor of shape [B, ...].
      active: Bool tensor of shape [B]; the others wait.
    Returns:
      Packed answers, and the seconds it took including the crossing.
    """
    with tf.control_dependencies([action]):
      start = tf.timestamp()
    with tf.control_dependencies([start]):
      inputs = [action] if active is None else [action, active]
      packed = tf.py_function(self._step, inputs, tf.uint8)
    with tf.control_dependencies([packed]):
      seconds = tf.timestamp() - start
    # py_function forgets static shapes, without which Dense has no kernel.
    return tf.ensure_shape(packed, self.packed_spec.shape), seconds

  def unpack(self, packed: tf.Tensor) -> Answers:
    """Return the fields of packed answers, of shape [..., bytes]."""
    layout = self.batch_env.step_layout
    steps = [tf.shape(packed)[axis] if size is None else size
             for axis, size in enumerate(packed.shape[:-1])]
    tensors = {}
    for field, offset in zip(layout.fields, layout.offsets, strict=True):
      shape = [*steps, *field.shape]
      raw = packed[..., offset:offset + field.num_bytes]
      if field.dtype == np.bool_:
        tensor = tf.cast(tf.reshape(raw, shape), tf.bool)
      elif field.dtype == np.uint8:
        tensor = tf.reshape(raw, shape)
      else:
        raw = tf.reshape(raw, [*shape, field.dtype.itemsize])
        tensor = tf.bitcast(raw, tf.as_dtype(field.dtype))
      tensors[field.name] = tensor
    return Answers(**tensors)

  def successors(self, answers: Answers) -> tf.Tensor:
    """Return the true successors of all steps since the last call.

    Only where an episode ended is that not the observation to act on next, so
    only those observations are stored, and cross, a second time.

    Args:
      answers: All answers since the last call, of shape [T, B, ...].
    Returns:
      Observations of shape [T, B, ...], none of them a reset.
    """
    observ = answers.observ
    with tf.control_dependencies([observ]):
      final = tf.py_function(self._take_final_observ, [], observ.dtype)
    if not math.prod(observ.shape[2:]):
      return observ  # Nothing is observed.
    final = tf.reshape(final, [-1, *observ.shape[2:]])
    ended = answers.terminated | answers.truncated
    return tf.tensor_scatter_nd_update(observ, tf.where(ended), final)

  @contextlib.contextmanager
  def original_errors(self):
    """Raise what the environments raised, not TensorFlow's account of it."""
    try:
      yield
    except tf.errors.OpError:
      error, self._error = self._error, None
      if error is None:
        raise
      raise error from error.__cause__  # Which environment failed, and where.

  def _step(self, *inputs: tf.Tensor) -> np.ndarray:
    try:
      return self.batch_env.step_packed(*[x.numpy() for x in inputs])
    except BaseException as error:
      self._error = error
      raise RuntimeError("A batched step failed.") from None

  def _take_final_observ(self) -> np.ndarray:
    final, self.batch_env.final_observ = self.batch_env.final_observ, []
    dtype = self.batch_env.step_layout.fields[0].dtype
    return np.array(final, dtype)
