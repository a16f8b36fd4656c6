"""Plays whole episodes, for evaluation and for videos."""

from collections.abc import Callable

import tensorflow as tf

from agents import types
from agents.environments.data import episode_data
from agents.simulation import in_graph_batch_env, rollout_to_batch, simulate

_CHUNK = 50  # Batched steps between two calls of `stop`.


class Evaluator:
  """Plays the same episodes every time.

  Args:
    env: Environments to play in.
    actor: Chooses the actions.
    explore: Whether to sample actions or to take the mode.

  The attribute `env` is the argument.
  """

  def __init__(self, env: in_graph_batch_env.InGraphBatchEnv,
               actor: simulate.Actor, explore: bool):
    self.env = env
    self._actor = actor
    self._explore = explore

  def play(self, num_episodes: int, stop: Callable[[], bool] = lambda: False
           ) -> list[episode_data.Episode] | None:
    """Plays episodes; each environment plays its share of them.

    Fixed shares prevent short episodes from counting more than long ones.

    Args:
      num_episodes: Number of episodes.
      stop: Called now and then; returns whether to abort.

    Returns:
      The episodes in order of their ends, or None if aborted.
    """
    carry, left = self.begin(
        rollout_to_batch.shares(num_episodes, len(self.env)))
    while left.numpy().any():
      if stop():
        return None
      carry, left = self.advance(carry, left)
    return self.env.batch_env.take_finished()

  def close(self):
    """Closes the environments. Repeated calls have no effect."""
    self.env.batch_env.close()

  def begin(self, episodes_left: tuple[int, ...]
            ) -> tuple[types.Carry, tf.Tensor]:
    """Resets all environments.

    Args:
      episodes_left: Number of episodes that each environment plays.

    Returns:
      Carry and episodes to pass to `advance`.
    """
    batch_env = self.env.batch_env
    batch_env.take_finished()
    carry = simulate.initial_carry(
        batch_env.reset(), state=self._actor.initial_state(len(batch_env)))
    return carry, tf.constant(episodes_left)

  def advance(self, carry: types.Carry, episodes_left: tf.Tensor
              ) -> tuple[types.Carry, tf.Tensor]:
    """Steps the environments for a while.

    Args:
      carry: Carry of the previous steps.
      episodes_left: Number of episodes that each environment still plays, [B].

    Returns:
      Carry and episodes to pass to the next call.
    """
    with self.env.original_errors():
      return self._chunk(carry, episodes_left)

  @tf.function(autograph=False)
  def _chunk(self, carry: types.Carry, episodes_left: tf.Tensor):
    with tf.device("CPU:0"):  # The device of the environments.
      simulation, episodes_left = simulate.simulate_episodes(
          self.env, self._actor, carry, _CHUNK, self._explore, episodes_left)
    return simulation.carry, episodes_left
