"""A batch environment that stores the infos of steps and resets."""

from typing import Any

import numpy as np

from agents.environments import batch_env
from agents.environments.blocks import base, info_block
from agents.environments.data import episode_data


class InfoBatchEnv(batch_env.BatchEnv):
  """Stores every info, at the cost of pickling the infos in workers.

  The attribute `infos` contains the info of each environment's latest step,
  even if the step ended an episode. Such an info is empty if the environment
  waited or failed, and after a call of `reset`. The attribute `reset_infos`
  contains the info of the reset that began each running episode. After
  `restore`, all infos are empty.
  Steps and resets create new lists instead of changing the previous lists.

  Args:
    args: See `BatchEnv`.
    kwargs: See `BatchEnv`.
  """

  def __init__(self, *args: Any, **kwargs: Any) -> None:
    kwargs["block_class"] = info_block.InfoBlock
    super().__init__(*args, **kwargs)
    self.infos: list[dict[str, Any]] = [{} for _ in range(len(self))]
    self.reset_infos: list[dict[str, Any]] = [{} for _ in range(len(self))]

  def step_packed(self, action: np.ndarray, active: np.ndarray | None = None) -> np.ndarray:
    """See `BatchEnv.step_packed`."""
    packed = super().step_packed(action, active)
    empty = base.StepReport({})
    reports = [self._reports.get(self.first + index, empty) for index in range(len(self))]
    self.infos = [report.info or {} for report in reports]
    self.reset_infos = [
      previous if report.reset_info is None else report.reset_info
      for report, previous in zip(reports, self.reset_infos, strict=True)
    ]
    return packed

  def restore(self, state: episode_data.EpisodeState) -> bool:
    """See `BatchEnv.restore`."""
    restored = super().restore(state)
    self._record_resets({index: {} for index in range(len(self))})
    return restored

  def _record_resets(self, infos: dict[int, dict[str, Any]]) -> None:
    self.infos = [{} if index in infos else info for index, info in enumerate(self.infos)]
    self.reset_infos = [infos.get(index, info) for index, info in enumerate(self.reset_infos)]
