"""Learning curves as SVG that takes its colors from the page it is in."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import Any

import matplotlib
from matplotlib import figure as figure_lib
from matplotlib import ticker

from agents.reports import curves
from agents.reports import published_scores
from agents.reports import results

_INK = "#010203"  # Becomes the color of the text around the figure.
# Distinct on white as well as on black; the first ones (Okabe and Ito 2008) for
# all eyes.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b58900", "#56b4e9",
          "#8c6bb1", "#a65628", "#7f7f7f", "#e41a1c", "#6a9f00", "#17a2a2")
_STYLE: Any = {  # Matplotlib lists all keys there are in its type.
    "svg.fonttype": "none", "svg.hashsalt": "report", "font.size": 10,
    "font.family": "sans-serif", "text.color": _INK, "axes.edgecolor": _INK,
    "axes.labelcolor": _INK, "xtick.color": _INK, "ytick.color": _INK,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
    "grid.color": _INK, "grid.alpha": 0.15, "legend.frameon": False}


def learning(groups: Sequence[results.RunGroup]) -> str:
  """Draw the return of a task against steps and against time, which is in hours
  or, where none takes one, in minutes.

  Args:
    groups: All of one task; they have the colors of their order.
  Returns:
    An SVG element.
  """
  with matplotlib.rc_context(_STYLE):
    figure = figure_lib.Figure(figsize=(9.6, 3.6), layout="constrained")
    by_steps, by_time = figure.subplots(1, 2, sharey=True)
    brief = all(run.rows[-1]["seconds"] < 3600
                for group in groups for run in group.runs)
    for number, group in enumerate(groups):
      color = COLORS[number % len(COLORS)]
      for axes, unit, scale in ((by_steps, "steps", 1),
                                (by_time, "hours", 60 if brief else 1)):
        for phase, style in (("eval", "-"), ("train", "--")):
          curve = curves.curve(group.runs, phase, unit)
          if curve:
            x = scale * curve.x
            axes.plot(x, curve.score.mean, style, color=color)
            axes.fill_between(x, curve.score.low, curve.score.high,
                              color=color, alpha=0.15, linewidth=0)
    for axes in (by_steps, by_time):
      _anchors(axes, groups, named=axes is by_steps)
    by_steps.set_xlabel("environment steps")
    by_steps.xaxis.set_major_formatter(ticker.EngFormatter(sep=""))
    by_steps.set_ylabel("return")
    by_steps.yaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,.6g}"))
    by_time.set_xlabel(
        f"{'minutes' if brief else 'hours'} of wall-clock time")
    for axes in (by_steps, by_time):
      axes.set_xlim(left=0)
    return _svg(figure, f"Return of {groups[0].task}")


def _anchors(axes, groups: Sequence[results.RunGroup], named: bool):
  """Draw what is published as lines."""
  budget = max(run.rows[-1]["step"] for group in groups for run in group.runs)
  for anchor in published_scores.up_to(groups[0].task, budget):
    axes.axhline(anchor.score, color=_INK, alpha=0.6, linewidth=1,
                 linestyle=":")
    if named:
      axes.annotate(
          f"{anchor.score:,.6g} after {anchor.steps / 1e6:g}M: "
          f"{anchor.source}", (0.01, anchor.score),
          xycoords=("axes fraction", "data"), xytext=(0, 2),
          textcoords="offset points", fontsize=7.5, alpha=0.8)


def _svg(figure: figure_lib.Figure, title: str) -> str:
  file = io.StringIO()
  figure.savefig(file, format="svg", transparent=True,
                 metadata={"Title": title})
  text = file.getvalue()
  text = text[text.index("<svg"):].replace(_INK, "currentColor")
  text = re.sub("<metadata>.*</metadata>", "", text, flags=re.DOTALL)
  # Several figures share a page, so their names must differ.
  prefix = re.sub(r"\W", "_", title)
  text = re.sub(r'(id="|url\(#|href="#)', rf"\g<1>{prefix}_", text)
  return text
