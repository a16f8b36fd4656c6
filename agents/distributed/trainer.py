"""Trains on several machines, with the same results as on one machine."""

import dataclasses
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from agents import errors, spaces, types
from agents.distributed import collectives, gather_rollouts, padded_actor, rollout_status
from agents.environments.data import episode_data
from agents.simulation import rollout_to_batch, simulate
from agents.training import epoch_result, trainer


class DistributedTrainer(trainer.Trainer):
  """Steps this machine's environments and learns from all machines' rollouts.

  Args:
    communicator: Connects the machines, which must have equal numbers of
      training environments.
    num_eval_envs: Total number of evaluation environments on all machines.
    args: See `Trainer`. The environments and the evaluator belong to this
      machine. The evaluator is None if this machine has no evaluation
      environments. The rollout specification describes the joint rollout of
      all machines.

  The attribute `stop` is a function that returns the number of the signal that
  requests to stop this machine, or zero. The attribute `stopped_by` contains
  the index of the first machine with such a signal, and its signal. It is None
  until an exchange after the signal.
  """

  def __init__(
    self, communicator: collectives.Communicator, num_eval_envs: int, *args: Any
  ) -> None:
    super().__init__(*args)
    # Time that each machine waited for its environments in the latest epoch.
    self.collecting_seconds: list[float] = []
    self.stop: Callable[[], int] = int
    self.stopped_by: tuple[int, int] | None = None
    self._communicator = communicator
    self._num_eval_envs = num_eval_envs
    # Metrics of the latest epoch, or a checksum of the variables after an
    # evaluation. Must be equal on all machines.
    self._fingerprint: str | int = ""
    self._step_seconds_before = 0.0
    num_envs = len(self.train_env) * communicator.world_size
    self._rows = rows = communicator.local_rows(num_envs)
    self._actor = padded_actor.PaddedActor(self.algorithm, rows, num_envs)
    if self.rollout_spec.quota:
      self.rollout_spec = self.rollout_spec._replace(quota=self.rollout_spec.quota[rows])

  @property
  def stopped(self) -> bool:
    """Whether any machine has received a request to stop."""
    return self.stopped_by is not None

  def collect(self, carry: types.Carry) -> simulate.Simulation:
    """See `Trainer.collect`."""
    observ, state = tf.nest.map_structure(
      lambda tensor: tensor[self._rows], (carry.observ, carry.state)
    )
    simulation = super().collect(carry._replace(observ=observ, state=state))
    return gather_rollouts.gather_simulations(
      self._communicator,
      simulation,
      carry,
      None if self.rollout_spec.quota else self.rollout_spec.steps,
    )

  def epoch(self, progress: float) -> epoch_result.Epoch | None:
    """See `Trainer.epoch`.

    Raises:
      MachineLost: If another machine does not answer. The variables then have
        their values from before the epoch.
    """
    self._step_seconds_before = self.train_env.batch_env.step_seconds
    captured_state = self.capture()
    try:
      with self._communicator.lost_machines():
        epoch = super().epoch(progress)
    except errors.MachineLost:
      # The update may have changed some of the variables, or all of them.
      trainer.load_variables(self.algorithm, captured_state())
      raise
    assert epoch
    self._fingerprint = np.array([*epoch.metrics.values()]).tobytes().hex()
    return epoch

  def evaluate(
    self, num_episodes: int, stop: Callable[[], bool] = bool
  ) -> epoch_result.Statistics | None:
    """See `Trainer.evaluate`.

    Aborts if any machine received a request to stop.

    Args:
      num_episodes: Total number of episodes on all machines.
      stop: Ignored; the attribute `stop` replaces this argument.
    """
    finished = self._play(num_episodes)
    if finished is None:
      return None
    self._fingerprint = zlib.crc32(
      b"".join(np.asarray(variable).tobytes() for variable in self.algorithm.variables().values())
    )
    parts = self.exchange(dataclasses.asdict(epoch_result.statistics(finished)))
    return epoch_result.merged(epoch_result.Statistics(**part) for part in parts)

  def exchange(self, value: Any) -> list[Any]:
    """Gathers a value from every machine, and updates `stopped_by`.

    Args:
      value: See `Communicator.all_gather_object`.

    Returns:
      The value of each machine.

    Raises:
      MachineLost: If another machine does not answer.
      MachinesDiffer: If the latest metrics or the variables of a machine differ
        from those of machine 0.
    """
    values, fingerprints, signals = zip(
      *self._communicator.all_gather_object((value, self._fingerprint, self.stop())), strict=True
    )
    rollout_status.check_equal(fingerprints)
    if any(signals) and not self.stopped_by:
      self.stopped_by = next((task, signum) for task, signum in enumerate(signals) if signum)
    return [*values]

  def _play(self, num_episodes: int) -> list[episode_data.Episode] | None:
    """Plays this machine's share of episodes; None if a machine stops."""

    def stop() -> bool:
      self.exchange(True)  # This machine has not finished its episodes.
      return self.stopped

    finished: list[episode_data.Episode] | None = []
    if self.evaluator:
      rows = self._communicator.local_rows(self._num_eval_envs)
      shares = rollout_to_batch.shares(num_episodes, self._num_eval_envs)[rows]
      finished = self.evaluator.play(sum(shares), stop)
    while finished is not None and any(self.exchange(False)):
      if self.stopped:
        return None
    return finished

  def _collected(
    self, samples: epoch_result.Samples
  ) -> tuple[list[episode_data.Episode], episode_data.EpisodeState]:
    statuses = self._exchange_status()
    action = self.train_env.batch_env.action_layout.fields[0]
    return (
      rollout_status.merge_finished(statuses, samples),
      rollout_status.merge_episodes(
        statuses, self._episodes, spaces.from_bytes(samples.action.numpy(), action.dtype)
      ),
    )

  def _episode_state(self) -> episode_data.EpisodeState:
    return rollout_status.merge_episodes(self._exchange_status(), self._episodes, None)

  def _restore(self, episodes: episode_data.EpisodeState) -> None:
    self._episodes = episodes
    super()._restore(episodes.rows(self._rows))

  def _exchange_status(self) -> list[rollout_status.RolloutStatus]:
    """Returns the status of every machine; machine 0 collects all failures."""
    env, rank = self.train_env.batch_env, self._communicator.rank
    state = env.snapshot()
    status = rollout_status.RolloutStatus(
      state._replace(first_row=-state.length, actions=state.actions[:0, :0]),
      env.take_finished(),
      env.failure_budget.drain() if rank else [],
      env.step_seconds - self._step_seconds_before,
    )
    statuses = [*map(rollout_status.from_data, self.exchange(status.to_data()))]
    if not rank:
      for status in statuses:
        env.failure_budget.merge(status.failures)
    self.collecting_seconds = [status.seconds for status in statuses]
    return statuses
