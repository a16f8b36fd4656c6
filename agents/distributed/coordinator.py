"""Machine 0 coordinates a run; all other machines follow its commands.

Only machine 0 has a run folder, writes reports and makes decisions. Machine 0
sends each command to the other machines. Then all machines execute the command
with their own share of the environments. Every machine therefore has the whole
state of the run. If machine 0 is lost, any other machine can write the
checkpoint.
"""

import collections
import contextlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from agents import errors
from agents.distributed import trainer as trainer_lib
from agents.training import epoch_result
from agents.training.monitoring import recent_episodes

# Minimum stepping time of a slow machine, relative to the fastest machine.
_SLOW_RATIO = 1.5
_SLOW_EPOCHS = 10  # Consecutive slow epochs before the warning.
# Methods that all machines call when machine 0 calls them.
_COMMANDS = "start", "evaluate", "load", "change_random_numbers"


class Coordinator(trainer_lib.DistributedTrainer):
  """The trainer of machine 0.

  Args:
    args: See `DistributedTrainer`.

  The attribute `metadata` is a function that returns the metadata of a
  checkpoint of the current state.
  """

  metadata: Callable[[], dict[str, Any]]

  def __init__(self, *args: Any) -> None:
    super().__init__(*args)
    # Index of the slow machine in each of the latest epochs; -1 if no machine
    # was slow.
    self._slow_machines: collections.deque[int] = collections.deque(maxlen=_SLOW_EPOCHS)
    self._has_warned = False

  def start(self) -> None:
    """See `Trainer.start`."""
    self._command("start")
    super().start()

  def epoch(self, progress: float) -> epoch_result.Epoch | None:
    """See `DistributedTrainer.epoch`; returns None after a request to stop."""
    self._command("epoch", progress, self.metadata())
    if self.stopped:  # The other machines skip this epoch, too.
      return None
    epoch = super().epoch(progress)
    self._warn_of_slow_machine()
    return epoch

  def evaluate(
    self, num_episodes: int, stop: Callable[[], bool] = bool
  ) -> epoch_result.Statistics | None:
    """See `Trainer.evaluate`."""
    self._command("evaluate", num_episodes)
    return super().evaluate(num_episodes, stop)

  def change_random_numbers(self, number: int) -> None:
    """See `Trainer.change_random_numbers`."""
    self._command("change_random_numbers", number)
    super().change_random_numbers(number)

  def load(self, arrays: dict[str, np.ndarray]) -> None:
    """See `Trainer.load`."""
    self._command("load", arrays)
    super().load(arrays)

  def end(self, finished: bool) -> None:
    """See `Trainer.end`."""
    with contextlib.suppress(errors.MachineLost):
      self._command("end", finished)

  def _command(self, method: str, *arguments: Any) -> None:
    """Sends a command to all other machines."""
    self.exchange((method, *arguments))

  def _warn_of_slow_machine(self) -> None:
    """Warns once if the same machine was slow in all of the latest epochs."""
    seconds = self.collecting_seconds
    slowest, ratio = int(np.argmax(seconds)), max(seconds) / min(seconds)
    self._slow_machines.append(slowest if ratio > _SLOW_RATIO else -1)
    if self._slow_machines.count(slowest) == _SLOW_EPOCHS and not self._has_warned:
      self._has_warned = True
      print(
        f"Warning: all machines wait for machine {slowest}, which takes "
        f"{ratio:.1f} times as long as the fastest machine for the same "
        "number of environments.",
        file=sys.stderr,
        flush=True,
      )


class Participant(trainer_lib.DistributedTrainer):
  """The trainer of a machine that executes the commands of machine 0.

  Args:
    args: See `DistributedTrainer`.

  The attribute `step` is the number of environment steps before the latest
  epoch. The attribute `checkpoint` is a function that returns the arrays and
  the metadata of a checkpoint from before the latest epoch. Before the first
  epoch, `checkpoint` is None.
  """

  def __init__(self, *args: Any) -> None:
    super().__init__(*args)
    self.step = 0
    self._recorder = recent_episodes.RecentEpisodes()
    self.checkpoint: Callable[[], tuple[dict[str, np.ndarray], dict[str, Any]]] | None = None

  def follow(self) -> bool:
    """Executes commands until the run ends.

    Returns:
      Whether the budget is used up and the final policy is evaluated.

    Raises:
      MachineLost: If another machine does not answer.
      MachinesDiffer: If a command is unknown.
    """
    while True:
      method, *arguments = self.exchange(None)[0]
      if method == "end":
        return arguments[0]
      if method == "epoch":
        self._train(*arguments)
      elif method in _COMMANDS:
        getattr(self, method)(*arguments)
      else:
        raise errors.MachinesDiffer(f"Machine 0 has sent the unknown command {method!r}.")

  def load(self, arrays: dict[str, np.ndarray]) -> None:
    """See `Trainer.load`."""
    self._recorder.load(arrays)
    super().load(arrays)

  def _train(self, progress: float, metadata: dict[str, Any]) -> None:
    """Trains for an epoch if no machine received a request to stop."""
    if self.stopped:
      return
    self.step = metadata["step"]
    state, recorded = self.capture(), self._recorder.arrays()
    self.checkpoint = lambda: ({**state(), **recorded}, metadata)
    epoch = self.epoch(progress)
    assert epoch
    self._recorder.add(epoch.episodes, self.step + epoch.steps)
