"""The one place where the graph crosses into Python."""

from __future__ import annotations

import contextlib

import numpy as np
import tensorflow as tf

from agents import structs
from agents.environments import batch_env as batch_env_lib


class InGraphBatchEnv:
  """Steps a batch environment as an operation of the graph.

  All results of a step cross as one array of bytes: a crossing costs about
  the same for one small tensor as for one large one, but again for each.
  """

  def __init__(self, batch_env: batch_env_lib.BatchEnv):
    self.batch_env = batch_env
    self._error: BaseException | None = None

  def __len__(self) -> int:
    return len(self.batch_env)

  @property
  def spec(self) -> structs.Transition:
    """Type and shape of every field of a transition."""
    layouts = self.batch_env.action_layout, self.batch_env.step_layout
    fields = {field.name: tf.TensorSpec(field.shape, field.dtype)
              for layout in layouts for field in layout.fields}
    return structs.Transition(
        *[fields[name] for name in structs.Transition._fields])

  def step(self, action: tf.Tensor, active: tf.Tensor | None = None
           ) -> tuple[batch_env_lib.Step, tf.Tensor]:
    """Step all environments, or the active ones.

    Args:
      action: Tensor of shape [B, ...].
      active: Bool tensor of shape [B]; the others wait.
    Returns:
      The step as tensors, and the seconds it took including the crossing.
    """
    with tf.control_dependencies([action]):
      start = tf.timestamp()
    with tf.control_dependencies([start]):
      inputs = [action] if active is None else [action, active]
      answers = tf.py_function(self._step, inputs, tf.uint8)
    with tf.control_dependencies([answers]):
      seconds = tf.timestamp() - start
    return batch_env_lib.Step(**self._unpack(answers)), seconds

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

  def _unpack(self, answers: tf.Tensor) -> dict[str, tf.Tensor]:
    # py_function forgets static shapes, without which Dense has no kernel;
    # reshaping brings them back.
    layout = self.batch_env.step_layout
    tensors = {}
    for field, offset in zip(layout.fields, layout.offsets, strict=True):
      raw = answers[offset:offset + field.num_bytes]
      if field.dtype == np.bool_:
        tensor = tf.cast(tf.reshape(raw, field.shape), tf.bool)
      elif field.dtype == np.uint8:
        tensor = tf.reshape(raw, field.shape)
      else:
        raw = tf.reshape(raw, [*field.shape, field.dtype.itemsize])
        tensor = tf.bitcast(raw, tf.as_dtype(field.dtype))
      tensors[field.name] = tensor
    return tensors
