"""Base class of loggers; docs/extending.md contains an example.

The setting `logger` names a subclass, such as this one for Weights & Biases:
`agents.loggers.wandb:WandbLogger`.
"""

import pathlib
from typing import Any

from agents import class_loader
from agents import config as config_lib


class Logger:
  """Receives the metrics and films of a run; subclasses override methods.

  The training process calls all methods between two epochs, so the run waits
  for them. The program prints exceptions of the methods, and training
  continues. An exception of the constructor ends a new run before it trains.

  A run that resumes creates a new logger. Its files are cut at the checkpoint,
  and all reports and films after the checkpoint follow again. A logger of an
  earlier process may already have received them. Repeated metrics are equal on
  the same machine, except for durations, speeds and memory. After a divergence,
  the same process continues from the checkpoint with a new logger, and repeated
  metrics differ.

  Args:
    folder: Path of the run folder.
    config: Settings of the run. `agents.config.flat` converts them to numbers
      and texts by dotted key.
    resumed_step: Step of the checkpoint from which the run resumes; None for a
      new run.
  """

  def __init__(
    self, folder: pathlib.Path, config: config_lib.Config, resumed_step: int | None
  ) -> None:
    self.folder = folder
    self.config = config
    self.resumed_step = resumed_step

  def write(self, row: dict[str, Any], scalars: dict[str, float]) -> None:
    """Receives a report on training, or an evaluation.

    Args:
      row: Line of `metrics.jsonl`; docs/metrics.md explains the fields. `phase`
        is "train" or "eval", and `step` counts training steps.
      scalars: Values that TensorBoard shows for this report, by tag.
    """

  def film(self, path: pathlib.Path, step: int) -> None:
    """Receives a film of a training episode; needs the setting `video_every`.

    Args:
      path: MP4 file.
      step: Training steps after the update that contains the episode's end.
    """

  def close(self) -> None:
    """Called once, after the last report and film of this process."""


def find(name: str) -> type[Logger]:
  """Returns the class that the setting `logger` names.

  Args:
    name: Value of the setting, `module:Class`.

  Raises:
    ConfigError: If the class does not exist or is not a logger.
  """
  return class_loader.find_class("logger", name, base=Logger)
