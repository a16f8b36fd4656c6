"""A policy that worker processes compute with NumPy."""

from typing import Any, NamedTuple

import numpy as np

from agents import spaces
from agents.translation import numpy_player


class NumpyPolicy(NamedTuple):
  """Program of `graph_to_numpy.translate` that maps "observ" to "action"."""

  program: dict[str, Any]
  constants: dict[str, Any]
  num_envs: int  # Number of environments of the batch, B.
  first: int  # Index of the batch's first environment within the run.

  def act(self, observ: np.ndarray, first: int) -> np.ndarray:
    """Selects the actions of one block of environments.

    The program computes a batch of B rows, in which each environment has its
    own row. Otherwise, the split into blocks would change the last bits of
    matrix products.

    Args:
      observ: Observations of the block, of shape [N, ...].
      first: Index of the block's first environment within the run.

    Returns:
      Actions of shape [N, ...].
    """
    observ = spaces.as_bytes(observ)
    start = first - self.first
    rows = slice(start, start + len(observ))
    batch = np.repeat(observ[:1], self.num_envs, 0)  # Padding repeats a valid row.
    batch[rows] = observ
    with np.errstate(all="ignore"):  # Diverged policies return NaN.
      outputs = numpy_player.compute(self.program, {**self.constants, "observ": batch})
    return outputs["action"][rows]
