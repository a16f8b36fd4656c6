"""A batch environment as operations of a TensorFlow graph.

This is the only file that wraps Python code in `tf.py_function`.
"""

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from agents import spaces
from agents.environments import batch_env as batch_env_lib
from agents.ops import tensor_bytes

_ALIGNMENT = 64  # Alignment of memory that TensorFlow requires, in bytes.


class StepFields(NamedTuple):
  """Fields of one step of B environments, or of T steps: [T, B, ...].

  `successors` returns `next_observ`, which these fields do not contain.
  """

  observ: tf.Tensor  # [B, ...], to act on; after a reset if an episode ended.
  reward: tf.Tensor  # [B] float32
  terminated: tf.Tensor  # [B] bool
  truncated: tf.Tensor  # [B] bool
  valid: tf.Tensor  # [B] bool, false where the environment waited or failed.

  @property
  def ended(self) -> tf.Tensor:
    """Whether the episode ended, bool."""
    return self.terminated | self.truncated


class StepResult(NamedTuple):
  """One step of B environments; see `batch_env.StepResult`."""

  observ: tf.Tensor  # [B, ...], to act on; after a reset if an episode ended.
  next_observ: tf.Tensor  # [B, ...], true successor, never from a reset.
  reward: tf.Tensor  # [B] float32
  terminated: tf.Tensor  # [B] bool, no future reward exists.
  truncated: tf.Tensor  # [B] bool, cut off, such as by a time limit.
  valid: tf.Tensor  # [B] bool, false where learning must ignore the row.


class InGraphBatchEnv:
  """Steps a batch environment inside of a graph.

  `reset` and `step` work in any `tf.function`. The trainer uses `step_packed`:
  all results leave Python as one array of bytes, because the cost of a Python
  call grows with the number of tensors, but hardly with their sizes.

  Args:
    batch_env: The environments.

  Attributes:
    batch_env: The environments.
    action_spec: Type and shape of actions, [B, ...].
    packed_spec: Type and shape of the packed results of a step, [num_bytes].
  """

  def __init__(self, batch_env: batch_env_lib.BatchEnv) -> None:
    self.batch_env = batch_env
    self._error: BaseException | None = None
    action = batch_env.action_layout.fields[0]
    self.action_spec = tf.TensorSpec(action.graph_shape, action.graph_dtype)
    self.packed_spec = tf.TensorSpec([batch_env.step_layout.num_bytes], tf.uint8)

  def __len__(self) -> int:
    return len(self.batch_env)

  def reset(self, indices: tf.Tensor | None = None) -> tf.Tensor:
    """Begins episode 0 of all environments, or the next episodes of some.

    Args:
      indices: Indices of the environments that begin the next episode, [K]
        integers. By default, all environments begin episode 0.

    Returns:
      Latest observations of all environments, of shape [B, ...].
    """
    observ = self.batch_env.step_layout.fields[0]
    result = self._call(self._reset, [] if indices is None else [indices], observ.graph_dtype)
    return tf.ensure_shape(result, observ.graph_shape)

  def step(self, action: tf.Tensor) -> StepResult:
    """Steps all environments; resets them where an episode ended.

    Args:
      action: Tensor of shape [B, ...].

    Returns:
      Results of static shapes.
    """
    observ, *others = self.batch_env.step_layout.fields
    fields = observ, observ, *others
    results = self._call(self._step, [action], [field.graph_dtype for field in fields])
    return StepResult(
      *(tf.ensure_shape(result, field.graph_shape) for result, field in zip(results, fields))
    )

  def step_packed(
    self, action: tf.Tensor, active: tf.Tensor | None = None
  ) -> tuple[tf.Tensor, tf.Tensor]:
    """Steps the active environments; resets them where an episode ended.

    Args:
      action: Tensor of shape [B, ...].
      active: Bool tensor of shape [B], by default all true; inactive
        environments wait.

    Returns:
      Packed results for `unpack`, and the duration of the step in seconds,
      float64.
    """
    inputs = [action] if active is None else [action, active]
    with tf.control_dependencies(inputs):
      start = tf.timestamp()
    with tf.control_dependencies([start]):
      packed = self._call(self._step_packed, inputs, tf.uint8)
    with tf.control_dependencies([packed]):
      seconds = tf.timestamp() - start
    # py_function forgets static shapes; without them Dense cannot build its
    # kernel.
    return tf.ensure_shape(packed, self.packed_spec.shape), seconds

  def unpack(self, packed: tf.Tensor) -> StepFields:
    """Splits packed results into their fields.

    Args:
      packed: Tensor of shape [..., num_bytes], uint8.

    Returns:
      Fields of shape [..., B, ...].
    """
    values = {}
    for field in self.batch_env.step_layout.fields:
      raw = packed[..., field.byte_slice]
      values[field.name] = tensor_bytes.restore(raw, field.graph_dtype, field.graph_shape)
    return StepFields(**values)

  def final_observ(self, results: StepFields) -> tf.Tensor:
    """Returns the last observations of the episodes that have ended.

    Args:
      results: All results since the previous call, of shape [..., B, ...].

    Returns:
      Observations in order of time, of shape [E, ...].
    """
    observ = results.observ
    sizes = observ.shape[results.reward.shape.rank :]
    with tf.control_dependencies([observ]):
      final = tf.py_function(self._take_final_observ, [], observ.dtype)
    if not math.prod(sizes):
      return tf.reshape(observ, [-1, *sizes])[:0]  # Observations are empty.
    return tf.reshape(final, [-1, *sizes])

  @contextlib.contextmanager
  def original_errors(self) -> Iterator[None]:
    """Returns a context that raises an environment's errors unchanged."""
    try:
      yield
    # Graphs raise OpError, eager execution raises RuntimeError.
    except (tf.errors.OpError, RuntimeError):
      error, self._error = self._error, None
      if error is None:
        raise
      raise error from error.__cause__  # The cause names the environment.

  def _reset(self, indices: tf.Tensor | None = None) -> np.ndarray:
    selected = None if indices is None else indices.numpy().tolist()
    return spaces.as_bytes(self.batch_env.reset(indices=selected))

  def _step(self, action: tf.Tensor) -> list[np.ndarray]:
    result = self.batch_env.step(action.numpy())
    self.batch_env.take_final_observ()  # `result` contains the observations.
    return [spaces.as_bytes(array) for array in result]

  def _step_packed(self, action: tf.Tensor, active: tf.Tensor | None = None) -> tf.Tensor:
    mask = None if active is None else active.numpy()
    return _to_tensor(self.batch_env.step_packed(action.numpy(), mask))

  def _call(self, method: Callable[..., Any], inputs: list[tf.Tensor], dtypes: Any) -> Any:
    """Calls a method in Python; stores its errors for `original_errors`."""

    def call(*inputs: tf.Tensor) -> Any:
      try:
        return method(*inputs)
      except BaseException as error:
        self._error = error
        raise RuntimeError("A call of the environments failed.") from None

    return tf.py_function(call, inputs, dtypes)

  def _take_final_observ(self) -> np.ndarray:
    dtype = self.batch_env.step_layout.fields[0].dtype
    return spaces.as_bytes(np.array(self.batch_env.take_final_observ(), dtype))


def _to_tensor(data: np.ndarray) -> tf.Tensor:
  """Copies bytes to a tensor; `tf.constant` takes ten times as long."""
  buffer = np.empty(len(data) + _ALIGNMENT, np.uint8)
  start = -buffer.ctypes.data % _ALIGNMENT
  buffer[start : start + len(data)] = data
  return tf.experimental.dlpack.from_dlpack(buffer[start : start + len(data)].__dlpack__())


def successors(results: StepFields, final_observ: tf.Tensor) -> tf.Tensor:
  """Returns the true successors of steps, never observations after a reset.

  If a step did not end its episode, the true successor is the next observation
  to act on. Therefore only last observations of episodes are transferred
  separately.

  Args:
    results: Results of shape [..., B, ...].
    final_observ: Last observations of episodes, in order of time, [E, ...].

  Returns:
    Observations of shape [..., B, ...].
  """
  ended = results.ended
  if 0 in results.observ.shape[ended.shape.rank :]:
    return results.observ  # Observations are empty.
  return tf.tensor_scatter_nd_update(results.observ, tf.where(ended), final_observ)
