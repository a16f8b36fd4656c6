"""The one place where the graph crosses into Python."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from agents import spaces
from agents.distributed import collectives
from agents.environments import batch_env as batch_env_lib
from agents.ops import packing


class Answers(NamedTuple):
  """What N environments answer to one step, or to many: [..., N, ...]."""

  observ: tf.Tensor  # [N, ...], to act on; a reset one where an episode ended.
  reward: tf.Tensor  # [N] float32
  terminated: tf.Tensor  # [N] bool
  truncated: tf.Tensor  # [N] bool
  valid: tf.Tensor  # [N] bool, false where the environment waited or failed.


class InGraphBatchEnv:
  """Steps a batch environment as an operation of the graph, group by group.

  All answers to a step cross as one array of bytes: a crossing costs about the
  same for one small tensor as for one large one, but again for each. It is
  `tf.py_function` without its eager tensors, which take longer than the step of
  a simple environment.

  Args:
    batch_env: The environments.
    machines: That step some of the same batch each, and tell each other.
  """

  # What else these are told after every simulation; set by who wants to.
  news: Callable[[], bytes] = bytes

  def __init__(self, batch_env: batch_env_lib.BatchEnv,
               machines: collectives.Communicator = collectives.LOCAL):
    self.batch_env = batch_env
    self.machines = machines
    self.whole = len(batch_env)  # Environments of which simulations tell.
    self.rows = slice(0, self.whole)  # Those among them that are stepped here.
    if machines.amount > 1:
      self.whole, self.rows = batch_env.whole, batch_env.rows
    self._error: BaseException | None = None

  def __len__(self) -> int:
    return len(self.batch_env)

  @property
  def groups(self) -> int:
    """Number of groups that take turns, of N environments each."""
    return self.batch_env.groups

  @property
  def action_spec(self) -> tf.TensorSpec:
    """Type and shape of a group's actions, [N, ...]."""
    kind, shape = self.batch_env.action_layout.fields[0].in_graph
    return tf.TensorSpec(shape, kind)

  @property
  def packed_spec(self) -> tf.TensorSpec:
    """Type and shape of a group's packed answers."""
    return tf.TensorSpec([self.batch_env.step_layout.num_bytes], tf.uint8)

  def exchange(self, action: tf.Tensor, active: tf.Tensor | None = None
               ) -> tuple[tf.Tensor, tf.Tensor]:
    """Begin a step of one group and end that of the next; see `BatchEnv`.

    Args:
      action: Tensor of shape [N, ...].
      active: Bool tensor of shape [N]; the others wait.
    Returns:
      Packed answers, and the seconds it took including the crossing.
    """
    inputs = [action] if active is None else [action, active]
    return self._cross(
        self.batch_env.exchange, inputs, self.packed_spec.shape)

  def drain(self) -> tuple[tf.Tensor, tf.Tensor]:
    """End the steps of the groups that are still stepping, all but one.

    Returns:
      Packed answers of shape [groups - 1, bytes], and the seconds it took.
    """
    shape = [self.groups - 1, *self.packed_spec.shape]
    if self.groups == 1:
      return tf.zeros(shape, tf.uint8), tf.zeros([], tf.float64)
    return self._cross(lambda: np.array(self.batch_env.drain()), [], shape)

  def unpack(self, packed: tf.Tensor) -> Answers:
    """Return the fields of packed answers, of shape [..., bytes]."""
    layout = self.batch_env.step_layout
    tensors = {}
    for field, offset in zip(layout.fields, layout.offsets, strict=True):
      raw = packed[..., offset:offset + field.num_bytes]
      tensors[field.name] = packing.restore(raw, *field.in_graph)
    return Answers(**tensors)

  def final_observ(self, answers: Answers) -> tf.Tensor:
    """Return the last observations of all episodes that ended since the last
    call, in order of time, [E, ...].

    Args:
      answers: All answers since the last call, of shape [..., N, ...].
    """
    observ = answers.observ
    sizes = observ.shape[answers.reward.shape.rank:]
    with tf.control_dependencies([observ]):
      final = tf.numpy_function(self._take_final_observ, [], observ.dtype)
    if not math.prod(sizes):
      return tf.reshape(observ, [-1, *sizes])[:0]  # Nothing is observed.
    return tf.reshape(final, [-1, *sizes])

  def latest_news(self, answers: Answers) -> tf.Tensor:
    """Return what is to be told other machines as bytes, [n].

    Args:
      answers: To the last steps that it is about.
    """
    if self.machines.amount == 1:
      return tf.zeros([0], tf.uint8)
    with tf.control_dependencies([answers.observ]):
      news = tf.numpy_function(
          lambda: np.frombuffer(self.news(), np.uint8), [], tf.uint8)
    return tf.reshape(news, [-1])

  @contextlib.contextmanager
  def original_errors(self):
    """Raise what the environments raised, not TensorFlow's account of it."""
    try:
      yield
    except (tf.errors.OpError, RuntimeError):  # Of the graph, or without one.
      error, self._error = self._error, None
      if error is None:
        raise
      raise error from error.__cause__  # Which environment failed, and where.

  def _cross(self, function: Callable[..., np.ndarray],
             inputs: list[tf.Tensor], shape: list[int] | tf.TensorShape
             ) -> tuple[tf.Tensor, tf.Tensor]:
    """Call a function of arrays that returns bytes, and say how long it took.
    """
    def call(*inputs):
      try:
        return function(*inputs)
      except BaseException as error:
        self._error = error
        raise RuntimeError("A batched step failed.") from None
    with tf.control_dependencies(inputs):
      start = tf.timestamp()
    with tf.control_dependencies([start]):
      result = tf.numpy_function(call, inputs, tf.uint8)
    with tf.control_dependencies([result]):
      seconds = tf.timestamp() - start
    # Without a static shape, Dense would have no kernel.
    return tf.ensure_shape(result, shape), seconds

  def _take_final_observ(self) -> np.ndarray:
    dtype = self.batch_env.step_layout.fields[0].dtype
    final = np.array(self.batch_env.final_observ, dtype)
    self.batch_env.final_observ.clear()
    return spaces.as_bytes(final)


def successors(answers: Answers, final: tf.Tensor) -> tf.Tensor:
  """Return the true successors of steps, none of them a reset, [..., N, ...].

  Only where an episode ended is that not the observation to act on next, so
  only those observations are stored, and cross, a second time.

  Args:
    answers: To the steps, of shape [..., N, ...].
    final: Observations that ended episodes, in order of time, [E, ...].
  """
  ended = answers.terminated | answers.truncated
  if 0 in answers.observ.shape[ended.shape.rank:]:
    return answers.observ  # Nothing is observed.
  return tf.tensor_scatter_nd_update(answers.observ, tf.where(ended), final)
