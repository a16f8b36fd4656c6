"""A batch environment that keeps the infos of steps and resets."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from agents.environments import batch_env
from agents.environments.blocks import base, info_block
from agents.environments.data import episode_statistics, episodes


class _InfoStatistics(episode_statistics.EpisodeStatistics):
  """Statistics that also keep infos."""

  infos: list[dict[str, Any]] = []
  reset_infos: list[dict[str, Any]] = []

  def update(self, arrays: dict[str, np.ndarray],
             reports: Mapping[int, base.StepReport], seconds: float):
    """See `EpisodeStatistics.update`."""
    super().update(arrays, reports, seconds)
    waiting = base.StepReport({})
    by_row = [reports.get(self._first + row, waiting)
              for row in range(len(arrays["active"]))]
    # New lists, because a caller may have kept the previous ones.
    self.infos = [report.info or {} for report in by_row]
    self.reset_infos = [
        before if report.reset_info is None else report.reset_info
        for report, before in zip(by_row, self.reset_infos, strict=True)]

  def record_resets(self, infos: Mapping[int, dict[str, Any]], size: int):
    """Stores the infos of resets outside of steps.

    Args:
      infos: Info of each reset, by index.
      size: Number of environments.
    """
    if not self.infos:
      self.forget_infos(size)
    self.infos = [{} if index in infos else info
                  for index, info in enumerate(self.infos)]
    self.reset_infos = [infos.get(index, info)
                        for index, info in enumerate(self.reset_infos)]

  def forget_infos(self, size: int):
    """Replaces all infos by empty dicts.

    Args:
      size: Number of environments.
    """
    self.infos = [{} for _ in range(size)]
    self.reset_infos = [{} for _ in range(size)]


class InfoBatchEnv(batch_env.BatchEnv):
  """Stores every info, at the cost of pickling it.

  Infos are empty dicts where an environment waited or failed, and after
  `restore`.

  Args:
    args: See `BatchEnv`.
    kwargs: See `BatchEnv`.
  """

  _statistics_class = _InfoStatistics
  _statistics: _InfoStatistics

  @property
  def infos(self) -> list[dict[str, Any]]:
    """Infos of the latest steps, even where these ended an episode."""
    return self._statistics.infos

  @property
  def reset_infos(self) -> list[dict[str, Any]]:
    """Infos of the resets that began the running episodes."""
    return self._statistics.reset_infos

  def restore(self, state: episodes.EpisodeState) -> bool:
    """See `BatchEnv.restore`."""
    restored = super().restore(state)
    self._statistics.forget_infos(len(self))
    return restored

  def _select_block_class(self, probe: Any) -> type[base.BlockBase]:
    return info_block.InfoBlock

  def _record_resets(self, infos: dict[int, dict[str, Any]]):
    self._statistics.record_resets(infos, len(self))
