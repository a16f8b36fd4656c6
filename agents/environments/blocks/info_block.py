"""A block that reports the info of every step and reset."""

from collections.abc import Sequence
from typing import Any

from agents.environments.blocks import base, gymnasium_block


class InfoBlock(gymnasium_block.GymnasiumBlock):
  """Adds infos to the reports of `GymnasiumBlock`.

  Args:
    constructors: Functions without arguments that return environments.
    args: See `GymnasiumBlock`.
  """

  def __init__(self, constructors: Sequence[base.Constructor], *args: Any) -> None:
    # Infos of the latest step, by the environment's offset in the block.
    self._infos: dict[int, dict[str, Any]] = {}
    self._reset_infos: list[dict[str, Any]] = [{} for _ in constructors]
    super().__init__(constructors, *args)

  def begin_next(self, seeds: Sequence[int | None]) -> list[dict[str, Any]]:
    """See `GymnasiumBlock.begin_next`; returns the latest reset infos."""
    super().begin_next(seeds)
    return list(self._reset_infos)

  def step(self) -> dict[int, base.StepReport]:
    """See `GymnasiumBlock.step`; reports every environment that stepped."""
    self._infos = {}
    reports = {
      index: report._replace(reset_info=self._reset_infos[index - self._first])
      for index, report in super().step().items()
    }
    for offset, info in self._infos.items():
      report = reports.get(self._first + offset, base.StepReport({}))
      reports[self._first + offset] = report._replace(info=info)
    return reports

  def _count_step(self, offset: int, info: dict[str, Any]) -> None:
    super()._count_step(offset, info)
    # A copy, because an environment may reuse its dict in the next reset.
    self._infos[offset] = dict(info)

  def _record_reset(self, offset: int, info: dict[str, Any]) -> None:
    self._reset_infos[offset] = dict(info)
