"""Calls the logger of a run; its exceptions do not end the run."""

import pathlib
import traceback
from typing import Any

from agents import errors
from agents.loggers import base
from agents.training.monitoring import metrics_row, progress
from agents.training.run_folder import run_folder


class GuardedLogger:
  """Prints the first exception of a logger, and counts all exceptions.

  The logger receives further reports after an exception, because a cause such
  as a lost connection may pass. The number of failed calls is printed at the
  end.

  Args:
    folder: Run folder. The setting `logger` of its config is not null.
    resumed_step: See `base.Logger`.

  Raises:
    ConfigError: If the class does not exist or is not a logger.
    RunError: If the constructor of the logger fails and the run is new.
  """

  def __init__(self, folder: run_folder.RunFolder, resumed_step: int | None) -> None:
    assert folder.config.logger
    self._name = folder.config.logger
    self._logger: base.Logger | None = None
    self._num_failures = 0
    make = base.find(self._name)
    try:
      self._logger = make(folder.path, folder.config, resumed_step)
    except Exception as error:
      if resumed_step is None:
        raise errors.RunError(
          f"logger={self._name} can't start:\n{traceback.format_exc()}"
          "Training without the logger needs --set logger=null."
        ) from error
      progress.warn(
        f"logger={self._name} can't start:\n{traceback.format_exc()}"
        "Training continues without the logger; metrics.jsonl contains all reports."
      )

  def write(self, row: metrics_row.MetricsRow) -> None:
    """Passes a report on training or an evaluation to the logger.

    Args:
      row: Row of `metrics.jsonl` and TensorBoard.
    """
    scalars = {tag: value for tag, value in row.scalars.items() if value is not None}
    self._call("write", dict(row.fields), scalars)

  def film(self, path: pathlib.Path, step: int) -> None:
    """Passes a film to the logger; see `base.Logger.film`."""
    self._call("film", path, step)

  def close(self) -> None:
    """Closes the logger; prints the number of its failed calls, if any."""
    self._call("close")
    if self._num_failures:
      progress.warn(f"{self._num_failures} call(s) of logger={self._name} failed.")
    self._logger, self._num_failures = None, 0

  def _call(self, method: str, *args: Any) -> None:
    """Calls a method of the logger, if it has started."""
    if self._logger is None:
      return
    try:
      getattr(self._logger, method)(*args)
    except Exception:
      self._num_failures += 1
      if self._num_failures == 1:
        progress.warn(
          f"logger={self._name} failed in {method}():\n{traceback.format_exc()}"
          "Training continues; metrics.jsonl contains all reports. Further failures of the logger "
          "are only counted."
        )
