"""Actor that selects the actions for one machine's share of environments."""

from typing import Any

import numpy as np
import tensorflow as tf

from agents.simulation import simulate


class PaddedActor:
  """Selects actions for this machine's rows of the batch of all machines.

  The actions are bit-equal to the actions that `actor` selects for the whole
  batch. For this, the observations are padded to the whole batch, because the
  number of rows and the position of a row change the last bits of matrix
  products and exponentials.

  Args:
    actor: Selects actions for the whole batch.
    rows: Indices of this machine's environments in the whole batch.
    num_envs: Number of environments on all machines, B.
  """

  def __init__(self, actor: simulate.Actor, rows: slice, num_envs: int) -> None:
    self._actor = actor
    self._rows = rows
    self._num_envs = num_envs
    # Index of the local row that fills each row of the padded batch.
    self._padding = np.clip(np.arange(num_envs) - rows.start, 0, rows.stop - rows.start - 1)

  def initial_state(self, num_envs: int) -> Any:
    """See `simulate.Actor`."""
    return self._actor.initial_state(num_envs)

  def noise(self, step_counter: tf.Tensor, num_envs: int) -> tf.Tensor:
    """See `simulate.Actor`; returns this machine's rows of the noise."""
    return self._actor.noise(step_counter, self._num_envs)[self._rows]

  def act(self, observ: tf.Tensor, state: Any, noise: tf.Tensor | None) -> tuple[tf.Tensor, Any]:
    """See `simulate.Actor`."""
    padded = tf.nest.map_structure(
      lambda tensor: None if tensor is None else (tf.gather(tensor, self._padding)),
      (observ, state, noise),
    )
    return tf.nest.map_structure(lambda tensor: tensor[self._rows], self._actor.act(*padded))
