"""Plays whole episodes, for evaluation and for films."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from agents import types
from agents.distributed import collectives
from agents.environments.data import episodes
from agents.simulation import in_graph_batch_env
from agents.simulation import rollout
from agents.simulation import simulate

_CHUNK = 50  # Steps between two looks at whether to give up.


class Evaluator:
  """Plays the same episodes every time.

  Args:
    env: Environments to play in; None if only other machines have any.
    actor: Chooses the actions.
    explore: Sample actions, or take the mean action.
    machines: That play at the same time, each in its environments.
  """

  def __init__(self, env: in_graph_batch_env.InGraphBatchEnv | None,
               actor: simulate.Actor, explore: bool,
               machines: collectives.Communicator = collectives.LOCAL):
    self._env = env
    self._machines = machines
    self._actor = actor
    self._explore = explore

  def play(self, amount: int, stop: Callable[[], bool] = lambda: False
           ) -> list[episodes.Episode] | None:
    """Play episodes; each environment plays its share of them.

    So short ones do not come to count more often than long ones.

    Args:
      amount: Number of episodes, of all machines together.
      stop: Asked now and then whether to give up, which all machines do if
        one does.
    Returns:
      The episodes that were played here, in order of their ends, or None after
      giving up.
    """
    if not self._env:
      return [] if self._play(bool, stop, False) else None
    env, batch_env = self._env, self._env.batch_env
    batch_env.finished.clear()
    quota = tf.constant(
        rollout.shares(amount, batch_env.whole)[batch_env.rows])
    carry = simulate.initial_carry(
        batch_env.reset(), state=self._actor.initial_state(len(self._env)))
    def steps():
      nonlocal carry, quota
      with env.original_errors():
        carry, quota = self._chunk(carry, quota)
      return bool(quota.numpy().any())
    more = bool(quota.numpy().any())
    return list(batch_env.finished) if self._play(steps, stop, more) else None

  def _play(self, steps: Callable[[], bool], stop: Callable[[], bool],
            more: bool) -> bool:
    """Play on all machines until there is no more on any.

    Args:
      steps: Plays a while, and returns whether there is more.
      stop: Whether this machine gives up.
      more: Whether there is anything to play here.
    Returns:
      Whether none of them gave up.
    """
    while True:
      told = self._machines.hear((more, stop()))
      if not any(unfinished for unfinished, _ in told):
        return True
      if any(stopped for _, stopped in told):
        return False
      if more:
        more = steps()

  @tf.function(autograph=False)
  def _chunk(self, carry: types.Carry, quota: tf.Tensor):
    assert self._env
    with tf.device("CPU:0"):  # Where the environments are.
      played = simulate.simulate(
          self._env, self._actor, carry, _CHUNK, self._explore, quota)
    return played.carry, played.left
