"""Draws survival and return over the levels of a disturbance."""

from collections.abc import Sequence

import numpy as np
from matplotlib import axes as axes_lib
from matplotlib import figure as figure_lib
from matplotlib import style, ticker

from agents.reports import figures
from agents.stress import disturbances, experiment, intervals


def levels(
  disturbance: disturbances.Disturbance,
  summaries: Sequence[experiment.Summary],
  control: experiment.Summary,
) -> str:
  """Draws a panel with the survival and a panel with the return.

  Args:
    disturbance: Disturbance of the levels.
    summaries: Estimates for the levels.
    control: Estimates for the control group.

  Returns:
    An SVG element.
  """
  with style.context(figures.STYLE):
    figure = figure_lib.Figure(figsize=(9.6, 2.8), layout="constrained")
    survival, score = figure.subplots(1, 2)
    _draw(survival, [each.survival for each in summaries], control.survival)
    _draw(score, [each.score for each in summaries], control.score)
    survival.set_ylim(-0.03, 1.03)
    survival.set_ylabel("survival")
    survival.yaxis.set_major_formatter(ticker.PercentFormatter(1))
    score.set_ylabel("return")
    score.yaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,.6g}"))
    ticks = ["control", *(f"{level:g}" for level in disturbance.levels)]
    for axes in (survival, score):
      axes.set_xticks(range(len(ticks)), ticks)
      axes.set_xlabel(disturbance.unit)
    return figures.svg(figure, disturbance.title)


def _draw(
  axes: axes_lib.Axes, estimates: Sequence[intervals.Interval], control: intervals.Interval
) -> None:
  """Draws estimates with their intervals, and the control group as a band."""
  gray, color = figures.COLORS[8], figures.COLORS[0]
  axes.axhspan(control.low, control.high, color=gray, alpha=0.15, linewidth=0)
  _points(axes, 0, [control], gray)
  _points(axes, 1, estimates, color)


def _points(
  axes: axes_lib.Axes, start: int, estimates: Sequence[intervals.Interval], color: str
) -> None:
  value, low, high = np.array(estimates).T
  x = start + np.arange(len(value))
  axes.plot(x, value, "o-", color=color)
  axes.vlines(x, low, high, color=color)
