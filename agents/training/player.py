"""Plays whole episodes, for evaluation and for films."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from agents import structs
from agents.environments import episodes
from agents.parts import memory as memory_lib
from agents.simulation import in_graph_batch_env
from agents.simulation import simulate

_CHUNK = 50  # Steps between two looks at whether to give up.


class Player:
  """Plays the same episodes every time.

  Args:
    env: Environments to play in.
    actor: Chooses the actions.
    explore: Sample actions, or take the mean action.
  """

  def __init__(self, env: in_graph_batch_env.InGraphBatchEnv,
               actor: simulate.Actor, explore: bool):
    self._env = env
    self._actor = actor
    self._explore = explore

  def play(self, amount: int, stop: Callable[[], bool] = lambda: False
           ) -> list[episodes.Episode] | None:
    """Play episodes; each environment plays its share of them.

    So short ones do not come to count more often than long ones.

    Args:
      amount: Number of episodes.
      stop: Asked now and then whether to give up.
    Returns:
      The episodes in order of their ends, or None after giving up.
    """
    batch_env = self._env.batch_env
    batch_env.finished.clear()
    quota = tf.constant(memory_lib.shares(amount, len(self._env)))
    carry = simulate.initial_carry(
        batch_env.reset(), state=self._actor.initial_state(len(self._env)))
    while quota.numpy().any():
      if stop():
        return None
      with self._env.original_errors():
        carry, quota = self._chunk(carry, quota)
    return list(batch_env.finished)

  @tf.function(autograph=False)
  def _chunk(self, carry: structs.Carry, quota: tf.Tensor):
    with tf.device("CPU:0"):  # Where the environments are.
      played = simulate.simulate(
          self._env, self._actor, carry, _CHUNK, self._explore, quota)
    return played.carry, played.left
