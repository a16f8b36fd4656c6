"""Learning curves as SVG that adopts the colors of the surrounding page."""

import io
import itertools
import re
from collections.abc import Sequence
from typing import Any

import matplotlib
from matplotlib import figure as figure_lib
from matplotlib import ticker

from agents.reports import curves, published_scores, results

_INK = "#010203"  # Placeholder of the text color of the page.
# Distinct on white and on black; the first colors also for color-blind readers
# (Okabe and Ito 2008).
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b58900", "#56b4e9",
          "#8c6bb1", "#a65628", "#7f7f7f", "#e41a1c", "#6a9f00", "#17a2a2")
_STYLE: Any = {  # Matplotlib's type would require a literal for each key.
    "svg.fonttype": "none", "svg.hashsalt": "report", "font.size": 10,
    "font.family": "sans-serif", "text.color": _INK, "axes.edgecolor": _INK,
    "axes.labelcolor": _INK, "xtick.color": _INK, "ytick.color": _INK,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
    "grid.color": _INK, "grid.alpha": 0.15, "legend.frameon": False}


def learning(groups: Sequence[results.RunGroup]) -> str:
  """Draw the return on a task against steps and against wall-clock time.

  The time is in hours, or in minutes if all runs took less than an hour.

  Args:
    groups: Groups of runs on the same task, in the order of their colors.
  Returns:
    An SVG element.
  """
  runs = [run for group in groups for run in group.runs]
  use_minutes = all(run.rows[-1]["seconds"] < 3600 for run in runs)
  with matplotlib.rc_context(_STYLE):
    figure = figure_lib.Figure(figsize=(9.6, 3.6), layout="constrained")
    by_steps, by_time = figure.subplots(1, 2, sharey=True)
    for group, color in zip(groups, itertools.cycle(COLORS)):
      _draw_group(by_steps, group, color, "steps", 1)
      _draw_group(by_time, group, color, "hours", 60 if use_minutes else 1)
    for axes in (by_steps, by_time):
      _draw_published(axes, groups[0].task, max(
          run.rows[-1]["step"] for run in runs), labeled=axes is by_steps)
      axes.set_xlim(left=0)
    by_steps.set_xlabel("environment steps")
    by_steps.xaxis.set_major_formatter(ticker.EngFormatter(sep=""))
    by_steps.set_ylabel("return")
    by_steps.yaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,.6g}"))
    by_time.set_xlabel(
        f"{'minutes' if use_minutes else 'hours'} of wall-clock time")
    return _svg(figure, f"Return of {groups[0].task}")


def _draw_group(axes, group: results.RunGroup, color: str, unit: str,
                scale: int):
  """Draw the curves of a group, with the mean action and with sampled ones."""
  for phase, style in (("eval", "-"), ("train", "--")):
    curve = curves.curve(group.runs, phase, unit)
    if curve:
      x = scale * curve.x
      axes.plot(x, curve.score.mean, style, color=color)
      axes.fill_between(x, curve.score.low, curve.score.high, color=color,
                        alpha=0.15, linewidth=0)


def _draw_published(axes, task: str, steps: int, labeled: bool):
  """Draw published scores as horizontal lines."""
  for published in published_scores.up_to(task, steps):
    axes.axhline(published.score, color=_INK, alpha=0.6, linewidth=1,
                 linestyle=":")
    if labeled:
      axes.annotate(
          f"{published.score:,.6g} after {published.steps / 1e6:g}M: "
          f"{published.source}", (0.01, published.score),
          xycoords=("axes fraction", "data"), xytext=(0, 2),
          textcoords="offset points", fontsize=7.5, alpha=0.8)


def _svg(figure: figure_lib.Figure, title: str) -> str:
  file = io.StringIO()
  figure.savefig(file, format="svg", transparent=True,
                 metadata={"Title": title})
  text = file.getvalue()
  text = text[text.index("<svg"):].replace(_INK, "currentColor")
  text = re.sub("<metadata>.*</metadata>", "", text, flags=re.DOTALL)
  # A page contains several figures, so their ids need different prefixes.
  prefix = re.sub(r"\W", "_", title)
  return re.sub(r'(id="|url\(#|href="#)', rf"\g<1>{prefix}_", text)
