"""Training on several machines with the results of one machine."""

import itertools
import zlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from agents import errors, spaces, types
from agents.distributed import (
  collectives,
  gather_rollouts,
  padded_actor,
  rollout_status,
)
from agents.distributed import evaluator as evaluator_lib
from agents.environments.data import episodes as episodes_lib
from agents.simulation import in_graph_batch_env, rollout_batch, simulate
from agents.training import epoch_result, trainer


class Share(NamedTuple):
  """The part of a run that one machine computes."""

  communicator: collectives.Communicator
  rows: slice  # Training environments that this machine steps.
  num_envs: int  # Training environments of all machines.
  shared_updates: bool  # Whether machines share the work of gradient steps.


class DistributedTrainer(trainer.Trainer):
  """Steps this machine's environments and learns from those of all machines.

  Args:
    algorithm: Acts and learns.
    train_env: Environments of this machine to learn from.
    evaluator: Plays this machine's share of the evaluations.
    rollout_spec: Size and layout of the batch of all machines.
    share: This machine's part of the run.

  The attribute `stop_elsewhere` is true if another machine was asked to stop.
  """

  def __init__(self, algorithm: trainer.Algorithm,
               train_env: in_graph_batch_env.InGraphBatchEnv,
               evaluator: evaluator_lib.DistributedEvaluator,
               rollout_spec: rollout_batch.RolloutSpec, share: Share):
    super().__init__(algorithm, train_env, evaluator, rollout_spec)
    self.fingerprint = b""  # Metrics of the latest epoch.
    self.collecting_seconds: list[float] = []  # One number per machine.
    self.stop_elsewhere = False
    self.stop: Callable[[], bool] = bool  # Whether this machine shall stop.
    self._share = share
    self._communicator = share.communicator
    self._actor = padded_actor.PaddedActor(
        algorithm, share.rows, share.num_envs)
    self._action_dtype = train_env.batch_env.action_layout.fields[0].dtype
    self._step_seconds_before = 0.0

  def collect(self, carry: types.Carry) -> simulate.Simulation:
    """See `Trainer.collect`."""
    rows, spec = self._share.rows, self.rollout_spec
    local = carry._replace(observ=carry.observ[rows], state=(
        tf.nest.map_structure(lambda tensor: tensor[rows], carry.state)))
    if spec.quota is None:
      simulation = simulate.simulate(
          self.train_env, self._actor, local, spec.steps, explore=True)
      return gather_rollouts.gather_simulations(
          self._communicator, simulation, carry, spec.steps)
    simulation, _ = simulate.simulate_episodes(
        self.train_env, self._actor, local, spec.steps, explore=True,
        episodes_left=tf.constant(spec.quota[rows]))
    return gather_rollouts.gather_simulations(
        self._communicator, simulation, carry, None)

  def epoch(self, progress: float) -> epoch_result.Epoch | None:
    """See `Trainer.epoch`.

    Raises:
      MachineLost: If another machine does not answer. The variables are then
        those before the epoch.
    """
    self._step_seconds_before = self.train_env.batch_env.step_seconds
    before = self._copy_variables() if self._share.shared_updates else []
    try:
      with self._communicator.lost_machines():
        epoch = super().epoch(progress)
    except errors.MachineLost:  # Possibly in the middle of an update.
      if before:
        self.algorithm.assign({
            name: value.numpy() for name, value in zip(
                self.algorithm.variables(), before, strict=True)})
      raise
    assert epoch
    self.fingerprint = np.array([*epoch.metrics.values()]).tobytes()
    return epoch

  def evaluate(self, num_episodes: int, stop: Callable[[], bool]
               ) -> tuple[list[float], list[int]] | None:
    """See `Trainer.evaluate`."""
    finished = self._evaluator.play(num_episodes, stop)
    if finished is None:
      self.stop_elsewhere |= not stop()
      return None
    gathered = self._communicator.all_gather_object((
        [(episode.score, episode.length) for episode in finished],
        self.checksum()))
    rollout_status.check_equal([checksum for _, checksum in gathered])
    results = sorted(itertools.chain(*(part for part, _ in gathered)))
    return [score for score, _ in results], [length for _, length in results]

  def checksum(self) -> int:
    """Returns a checksum of the bits of all variables."""
    value = 0
    for variable in self.algorithm.variables().values():
      value = zlib.crc32(np.asarray(variable).tobytes(), value)
    return value

  def _collected(self, samples: epoch_result.Samples) -> tuple[
      list[episodes_lib.Episode], episodes_lib.EpisodeState]:
    statuses = self._exchange_status()
    return (rollout_status.merge_finished(statuses, samples),
            rollout_status.merge_episodes(
                statuses, self._episodes, spaces.from_bytes(
                    samples.action.numpy(), self._action_dtype)))

  def _episode_state(self) -> episodes_lib.EpisodeState:
    return rollout_status.merge_episodes(
        self._exchange_status(), self._episodes, None)

  def _restore(self, episodes: episodes_lib.EpisodeState) -> bool:
    self._episodes = episodes
    return super()._restore(episodes.rows(self._share.rows))

  def _exchange_status(self) -> list[rollout_status.RolloutStatus]:
    """Returns the status of every machine."""
    env, rank = self.train_env.batch_env, self._communicator.rank
    state = env.snapshot()
    statuses = self._communicator.all_gather_object(
        rollout_status.RolloutStatus(
            state._replace(actions=state.actions[:0]), state.length,
            env.take_finished(), env.failure_budget.drain() if rank else [],
            self.stop(), env.step_seconds - self._step_seconds_before))
    for other, status in enumerate(statuses):
      if other != rank:
        self.stop_elsewhere |= status.stop
        if not rank:
          env.failure_budget.merge(status.failures)
    self.collecting_seconds = [status.seconds for status in statuses]
    return statuses
