"""Plays whole episodes, for evaluation and for videos."""

from collections.abc import Callable

import tensorflow as tf

from agents import types
from agents.environments.data import episode_data
from agents.simulation import in_graph_batch_env, rollout_to_batch, simulate

CHUNK = 50  # Batched steps between two calls of `stop`.


class Evaluator:
  """Plays episodes that have the same seeds at every call.

  Args:
    env: Environments of the episodes.
    actor: Chooses the actions.
    explore: True samples actions; false takes the mode of their distribution.

  Attributes:
    env: Environments of the episodes.
  """

  def __init__(
    self, env: in_graph_batch_env.InGraphBatchEnv, actor: simulate.Actor, explore: bool
  ) -> None:
    self.env = env
    self._actor = actor
    self._explore = explore

  def play(
    self, num_episodes: int, stop: Callable[[], bool] = lambda: False
  ) -> list[episode_data.Episode] | None:
    """Plays episodes; each environment plays a fixed share of the episodes.

    Without fixed shares, short episodes would be overrepresented.

    Args:
      num_episodes: Number of episodes.
      stop: Called before every 50 batched steps; returns whether to abort.

    Returns:
      The episodes in order of their ends, or None if aborted.
    """
    carry, episodes_left = self.begin(rollout_to_batch.shares(num_episodes, len(self.env)))
    while episodes_left.numpy().any():
      if stop():
        return None
      carry, episodes_left = self.advance(carry, episodes_left)
    return self.env.batch_env.take_finished()

  def close(self) -> None:
    """Closes the environments. Repeated calls have no effect."""
    self.env.batch_env.close()

  def begin(self, episodes_left: tuple[int, ...]) -> tuple[types.Carry, tf.Tensor]:
    """Resets all environments.

    Args:
      episodes_left: Number of episodes that each environment plays.

    Returns:
      Carry and `episodes_left`, [B] int32, for `advance`.
    """
    batch_env = self.env.batch_env
    batch_env.take_finished()
    carry = simulate.initial_carry(
      batch_env.reset(), state=self._actor.initial_state(len(batch_env))
    )
    return carry, tf.constant(episodes_left)

  def advance(self, carry: types.Carry, episodes_left: tf.Tensor) -> tuple[types.Carry, tf.Tensor]:
    """Steps the environments at most 50 times.

    Args:
      carry: Carry of the previous steps.
      episodes_left: Number of episodes that each environment still plays, [B]
        int32.

    Returns:
      Carry and `episodes_left` for the next call.
    """
    with self.env.original_errors():
      return self._chunk(carry, episodes_left)

  @tf.function(autograph=False)
  def _chunk(self, carry: types.Carry, episodes_left: tf.Tensor) -> tuple[types.Carry, tf.Tensor]:
    with tf.device("CPU:0"):  # Environments run on the CPU.
      simulation, episodes_left = simulate.simulate_episodes(
        self.env, self._actor, carry, CHUNK, self._explore, episodes_left
      )
    return simulation.carry, episodes_left
