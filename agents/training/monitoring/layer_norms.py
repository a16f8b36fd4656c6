"""Norms of the weights and gradients of each layer, for TensorBoard.

Learning computes nothing for these norms. Adam keeps a running mean of the
squared gradients of each weight array:

    v[t] = decay * v[t - 1] + (1 - decay) * g[t] ** 2

The sum of v / (1 - decay ** t) over an array is thus a weighted mean of the
squared gradient norm, over about the last 1 / (1 - decay) gradient steps.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

_DECAY = 0.999  # Default of Keras, which PPO uses.


def layer_norms(weights: list[Any], variables: Mapping[str, Any]) -> dict[str, float]:
  """Returns the norms of all weights, and of their gradients.

  Args:
    weights: Trainable variables of an algorithm.
    variables: All variables that a checkpoint stores, by name. Gradient norms
      need those of Keras's Adam with the name "adam", after its first step.

  Returns:
    Root of the sum of squares of each variable, and the root mean square norm
    of its gradient after gradient clipping, by TensorBoard tag.
  """
  norms = {
    f"weight_norms/{_path(weight)}": _root(np.square(np.asarray(weight))) for weight in weights
  }
  num_steps = int(np.asarray(variables.get("adam/iteration", 0)))
  for weight in weights if num_steps else ():
    name = f"adam/{_path(weight).replace('/', '_')}_velocity"
    if name in variables:
      mean_square = np.asarray(variables[name]) / (1 - _DECAY**num_steps)
      norms[f"gradient_norms/{_path(weight)}"] = _root(mean_square)
  return norms


def _path(variable: Any) -> str:
  """Returns the name of a variable in checkpoints."""
  return getattr(variable, "path", variable.name)


def _root(squares: np.ndarray) -> float:
  return float(np.sqrt(np.sum(squares)))
