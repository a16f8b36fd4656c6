"""Loops in the graph.

AutoGraph could convert Python loops. However, AutoGraph would also convert all
functions that a loop body calls, which takes longer than tracing them.
"""

from collections.abc import Callable
from typing import Any

import tensorflow as tf


def repeat(
  num_iterations: tf.Tensor | int, body: Callable[[tf.Tensor, Any], Any], state: Any
) -> Any:
  """Repeats `state = body(index, state)` for index 0, 1, 2, ...

  Args:
    num_iterations: Number of iterations. Must be a Python integer if gradients
      flow through the loop.
    body: Maps the index, int32, and the state to the next state. Structure,
      types and shapes of the state must not change.
    state: Initial state, a structure of tensors or TensorArrays.

  Returns:
    State after the last iteration.
  """
  # XLA would compile a loop over `tf.range` again for each length.
  _, state = tf.while_loop(
    lambda index, _: index < num_iterations,
    lambda index, state: (index + 1, body(index, state)),
    (tf.constant(0), state),
    maximum_iterations=(num_iterations if isinstance(num_iterations, int) else None),
  )
  return state
