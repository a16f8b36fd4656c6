"""Evaluation that distributes the episodes over several machines."""

from collections.abc import Callable

from agents.distributed import collectives, padded_actor
from agents.environments.data import episodes
from agents.simulation import (
  evaluator,
  in_graph_batch_env,
  rollout_batch,
  simulate,
)


class DistributedEvaluator:
  """Plays this machine's share of the episodes.

  Args:
    env: Environments of this machine; None if it has none.
    algorithm: Chooses the actions.
    communicator: The machines.
    num_envs: Number of environments of all machines.
  """

  def __init__(self, env: in_graph_batch_env.InGraphBatchEnv | None,
               algorithm: simulate.Actor,
               communicator: collectives.Communicator, num_envs: int):
    self._rows = communicator.local_rows(num_envs)
    self._num_envs = num_envs
    self._communicator = communicator
    self._local = evaluator.Evaluator(
        env, padded_actor.PaddedActor(algorithm, self._rows, num_envs),
        explore=False) if env else None

  def play(self, num_episodes: int, stop: Callable[[], bool] = lambda: False
           ) -> list[episodes.Episode] | None:
    """See `Evaluator.play`; aborts if any machine does.

    Args:
      num_episodes: Number of episodes of all machines.
      stop: Called now and then; returns whether to abort.

    Returns:
      The episodes of this machine, or None if aborted.
    """
    unfinished = False
    if self._local:
      shares = rollout_batch.shares(num_episodes, self._num_envs)
      carry, left = self._local.begin(shares[self._rows])
      unfinished = bool(left.numpy().any())
    while True:
      gathered = self._communicator.all_gather_object((unfinished, stop()))
      if not any(others_unfinished for others_unfinished, _ in gathered):
        return self._local.env.batch_env.take_finished() if self._local else []
      if any(stopped for _, stopped in gathered):
        return None
      if self._local and unfinished:
        carry, left = self._local.advance(carry, left)
        unfinished = bool(left.numpy().any())

  def close(self):
    """Closes the environments of this machine. Can be repeated."""
    if self._local:
      self._local.close()
