"""One machine leads, the others follow: all train, in the same way.

Only the first machine has a run folder, reports, and decides what comes next.
It says so before it does it, and the others do the same with their share of the
environments. So each of them holds all there is to know of the run; if the
first machine is lost, any other can write the checkpoint.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import Any
from typing import NamedTuple

import numpy as np

from agents import errors
from agents.distributed import collectives
from agents.distributed import rollout_status
from agents.training import epoch_result
from agents.training import trainer
from agents.training.monitoring import episode_recorder

_SLOW = 1.5  # Times as long as the fastest machine.
_SLOW_EPOCHS = 10


class Command(NamedTuple):
  """What all machines do next."""

  method: str  # Of `trainer.Trainer`; "" to part.
  arguments: tuple = ()
  facts: dict[str, Any] | None = None  # Of a checkpoint of now; of an epoch.
  fingerprint: bytes = b""  # Of the last update.
  stop: bool = False  # Whether this machine was asked to end the run.


class Coordinator(trainer.Trainer):
  """The trainer of the first machine."""

  facts: Callable[[], dict[str, Any]]  # Asked at every epoch, see `loop`.
  _slowest = 0  # Machine, in the last epoch.
  _slow_epochs = 0  # In a row.
  _told_of_slow_ones = False

  def start(self):
    """See `Trainer`, as for all below."""
    self._order("start")
    super().start()

  def epoch(self, progress: float, stop: Callable[[], bool] = lambda: False
            ) -> epoch_result.Epoch | None:
    self._order("epoch", progress, facts=self.facts())
    if self.stop_elsewhere:  # Nobody begins it.
      return None
    epoch = super().epoch(progress, stop)
    self._look_for_slow_ones()
    return epoch

  def _look_for_slow_ones(self):
    """Say once which machine all others wait for, if that lasts."""
    seconds = self.collecting_seconds
    slowest = seconds.index(max(seconds))
    ratio = seconds[slowest] / min(seconds)
    again = ratio > _SLOW and slowest == self._slowest
    self._slowest = slowest
    self._slow_epochs = self._slow_epochs + 1 if again else 0
    if self._slow_epochs == _SLOW_EPOCHS and not self._told_of_slow_ones:
      self._told_of_slow_ones = True
      print(f"Warning: all wait for machine {slowest}, which takes {ratio:.1f} "
            "times as long as the fastest for as many environments.",
            file=sys.stderr, flush=True)

  def evaluate(self, amount: int, stop: Callable[[], bool]
               ) -> tuple[list[float], list[int]] | None:
    self._order("evaluate", amount)
    return super().evaluate(amount, stop)

  def change_random_numbers(self, number: int):
    self._order("change_random_numbers", number)
    super().change_random_numbers(number)

  def load(self, arrays: dict[str, np.ndarray]):
    self._order("load", arrays)
    super().load(arrays)

  def end(self, finished: bool):
    with contextlib.suppress(errors.MachineLost):  # No more is asked of it.
      self._order("", finished)

  def _order(self, method: str, *arguments, facts=None):
    told = self._machines.hear(
        Command(method, arguments, facts, self.fingerprint))
    rollout_status.check_equal([order.fingerprint for order in told])
    self.stop_elsewhere |= any(order.stop for order in told)


class Participant:
  """What another machine than the first does.

  Args:
    trainer: With this machine's share of the environments.
    machines: That take part.
    stop: Whether this machine was asked to end the run.
  """

  def __init__(self, trainer: trainer.Trainer, machines: collectives.Communicator,
               stop: Callable[[], bool]):
    self._trainer = trainer
    self._machines = machines
    self._stop = stop
    self._recorder = episode_recorder.EpisodeRecorder()
    self._kept: tuple[dict[str, Any], Callable[[], dict[str, np.ndarray]],
                      dict[str, np.ndarray]] | None = None

  def follow(self) -> bool:
    """Do what the first machine says, until it is over.

    Returns:
      Whether the budget is used up, and what came of it evaluated.
    Raises:
      MachineLost: If another machine does not take part any more.
    """
    while True:
      told = self._machines.hear(
          Command("", fingerprint=self._trainer.fingerprint, stop=self._stop()))
      rollout_status.check_equal([order.fingerprint for order in told])
      order: Command = told[0]
      if not order.method:
        return order.arguments[0]
      if order.method != "epoch" or not any(each.stop for each in told):
        self._do(order)

  def _do(self, order: Command):
    trainer, arguments = self._trainer, order.arguments
    if order.method == "epoch":
      assert order.facts
      self._kept = (order.facts, trainer.remember(), self._recorder.arrays())
      progress, = order.arguments
      epoch = trainer.epoch(progress, self._stop)
      assert epoch  # Nobody gives up where others go on.
      self._recorder.add(epoch.episodes, order.facts["step"] + epoch.steps)
      return
    if order.method == "evaluate":
      arguments = (*arguments, self._stop)
    if order.method == "load":
      self._recorder.load(episode_recorder.recorded_arrays(*arguments))
    getattr(trainer, order.method)(*arguments)

  @property
  def step(self) -> int:
    """Of the last moment that all machines agreed on."""
    return self._kept[0]["step"] if self._kept else 0

  def checkpoint(self) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
    """Return arrays and facts of the last moment that all machines agreed on,
    if there is one."""
    if not self._kept:
      return None
    facts, state, kept = self._kept
    return {**state(), **{
        f"recorded/{name}": array for name, array in kept.items()}}, facts

