"""What the machines of a run tell each other after every collection."""

from __future__ import annotations

from typing import Any
from typing import NamedTuple

import numpy as np

from agents import errors
from agents.distributed import collectives
from agents.environments import batch_env
from agents.environments.data import episodes
from agents.environments.data import failure_budget as failure_budget_lib
from agents.training import epoch_result


class RolloutStatus(NamedTuple):
  """What is known of the environments that one machine steps."""

  part: episodes.Part
  finished: list[episodes.Episode]  # In order of time.
  incidents: list[failure_budget_lib.Failure]  # That the first machine is to tell.
  stop: bool  # Whether this machine was asked to end the run.
  seconds: float  # That it took to collect.


class Heard(NamedTuple):
  """The same of all machines together."""

  running: episodes.EpisodeState
  finished: list[episodes.Episode]  # In order of time.
  stop: bool  # Whether another machine was asked to end the run.
  seconds: list[float]  # That each took to collect.


def latest(env: batch_env.BatchEnv, machines: collectives.Communicator, stop: bool,
           seconds: float) -> RolloutStatus:
  """Return what this machine has to tell.

  Args:
    env: The environments that are stepped here.
    machines: That take part.
    stop: Whether this machine was asked to end the run.
    seconds: That it took to collect.
  """
  return RolloutStatus(env.part(), env.finished,
              env.incidents.take() if machines.index else [], stop, seconds)


def heard(env: batch_env.BatchEnv, machines: collectives.Communicator,
          told: list[RolloutStatus], samples: epoch_result.Samples | None) -> Heard:
  """Return what all machines together know.

  Args:
    env: The environments that are stepped here.
    machines: That take part.
    told: By each of them.
    samples: Of what all have done since they told the last time.
  """
  if machines.amount == 1:
    return Heard(env.snapshot(), list(env.finished), False, [])
  others = [news for index, news in enumerate(told) if index != machines.index]
  if not machines.index:
    for news in others:
      env.incidents.hear(news.incidents)
  running = env.snapshot(
      [news.part for news in others],
      None if samples is None else samples.action.numpy())
  queues = [iter(news.finished) for news in told]
  finished = [] if samples is None else [
      next(queues[row * machines.amount // samples.ended.shape[1]])
      for _, row in np.argwhere(samples.ended.numpy())]
  return Heard(running, finished, any(news.stop for news in others),
               [news.seconds for news in told])


def check_equal(told: list[Any]):
  """Raise MachinesDiffer unless all machines tell the same of their variables.
  """
  for index, checksum in enumerate(told):
    if checksum != told[0]:
      raise errors.MachinesDiffer(
          f"Machine {index} has learned other numbers than machine 0 from the "
          "same steps, as other processors or libraries do. Let machines of "
          "one kind train together.")
