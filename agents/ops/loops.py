"""Loops in the graph.

AutoGraph could convert Python loops, but converting all functions that a loop
body calls takes longer than tracing them.
"""

from collections.abc import Callable
from typing import Any

import tensorflow as tf


def repeat(num_iterations: tf.Tensor | int,
           body: Callable[[tf.Tensor, Any], Any], state: Any) -> Any:
  """Computes `state = body(index, state)` for every index from 0.

  Args:
    num_iterations: Number of iterations; a Python number if gradients flow
      through the loop.
    body: Function of the index, int32, and a structure of tensors that returns
      a structure like it.
    state: Initial structure of tensors or TensorArrays.

  Returns:
    The structure after the last iteration.
  """
  # XLA compiles a loop over `tf.range` once for each length.
  _, state = tf.while_loop(
      lambda index, _: index < num_iterations,
      lambda index, state: (index + 1, body(index, state)),
      (tf.constant(0), state),
      maximum_iterations=(
          num_iterations if isinstance(num_iterations, int) else None))
  return state
