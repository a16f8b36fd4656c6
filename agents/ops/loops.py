"""Loops of the graph, written out.

AutoGraph would make them of Python's own, but rewriting all that is called
inside takes longer than tracing it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf


def repeat(amount: tf.Tensor | int, body: Callable[[tf.Tensor, Any], Any],
           state: Any) -> Any:
  """Compute `state = body(index, state)` for every index below `amount`.

  Args:
    amount: How often; a Python number where gradients are to flow back.
    body: From the index, int32, and a structure of tensors to one like it.
    state: Structure of tensors or TensorArrays, to begin with.
  """
  # Not over tf.range, which would want to know its length when compiled.
  _, state = tf.while_loop(
      lambda index, _: index < amount,
      lambda index, state: (index + 1, body(index, state)),
      (tf.constant(0), state),
      maximum_iterations=amount if isinstance(amount, int) else None)
  return state
