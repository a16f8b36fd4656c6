"""Draws learning curves as SVG with the text color of the surrounding page."""

import io
import itertools
import pathlib
import re
from collections.abc import Sequence

from matplotlib import figure as figure_lib
from matplotlib import style, ticker

from agents.reports import curves, published_scores, results

STYLE = pathlib.Path(__file__).with_suffix(".mplstyle")
_INK = "#010203"  # Placeholder, replaced by the text color of the page.
# These colors differ clearly on white and on black. Color-blind readers can
# distinguish at least the first four (Okabe and Ito 2008).
COLORS = (
  "#0072b2",
  "#d55e00",
  "#009e73",
  "#cc79a7",
  "#b58900",
  "#56b4e9",
  "#8c6bb1",
  "#a65628",
  "#7f7f7f",
  "#e41a1c",
  "#6a9f00",
  "#17a2a2",
)


def learning(groups: Sequence[results.RunGroup]) -> str:
  """Draws the return of a task over steps and over wall-clock time.

  The time is in hours, or in minutes if all runs took less than an hour.

  Args:
    groups: Groups of runs on the same task, in the order of `COLORS`.

  Returns:
    An SVG element.
  """
  runs = [run for group in groups for run in group.runs]
  use_minutes = all(run.rows[-1]["seconds"] < 3600 for run in runs)
  with style.context(STYLE):
    figure = figure_lib.Figure(figsize=(9.6, 3.6), layout="constrained")
    by_steps, by_time = figure.subplots(1, 2, sharey=True)
    panels = ((by_steps, "steps", 1), (by_time, "hours", 60 if use_minutes else 1))
    # Solid lines show the mean action, dashed lines show sampled actions.
    for (axes, unit, scale), (group, color), (phase, line) in itertools.product(
      panels, zip(groups, itertools.cycle(COLORS)), (("eval", "-"), ("train", "--"))
    ):
      if curve := curves.curve(group.runs, phase, unit):
        x, score = scale * curve[0], curve[1]
        axes.plot(x, score.mean, line, color=color)
        axes.fill_between(x, score.low, score.high, color=color, alpha=0.15, linewidth=0)
    for group, color in zip(groups, itertools.cycle(COLORS)):
      for run in group.runs:
        if (branch := curves.branch(run, runs)) is not None:
          by_steps.plot(*branch, ":", color=color)
    # Texts of similar scores would overlap on the same side.
    for published, (x, side) in zip(
      sorted(
        published_scores.up_to(
          groups[0].task, max(run.origin[1] + run.rows[-1]["step"] for run in runs)
        ),
        key=lambda published: published.score,
      ),
      itertools.cycle(((0.01, "left"), (0.99, "right"))),
    ):
      for axes in (by_steps, by_time):
        axes.axhline(published.score, color=_INK, alpha=0.6, linewidth=1, linestyle=":")
      by_steps.annotate(
        f"{published.score:,.6g} after {published.steps / 1e6:g}M: {published.source}",
        (x, published.score),
        xycoords=("axes fraction", "data"),
        xytext=(0, 2),
        textcoords="offset points",
        horizontalalignment=side,
        fontsize=7.5,
        alpha=0.8,
      )
    by_steps.set_xlim(left=0)
    by_time.set_xlim(left=0)
    by_steps.set_xlabel("environment steps")
    by_steps.xaxis.set_major_formatter(ticker.EngFormatter(sep=""))
    by_steps.set_ylabel("return")
    by_steps.yaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,.6g}"))
    by_time.set_xlabel(f"{'minutes' if use_minutes else 'hours'} of wall-clock time")
    return svg(figure, f"Return of {groups[0].task}")


def svg(figure: figure_lib.Figure, title: str) -> str:
  """Returns a figure as an SVG element, in the text color of the page.

  Args:
    figure: Figure that was drawn in the style `STYLE`.
    title: Title of the element, unique within the page.
  """
  file = io.StringIO()
  figure.savefig(file, format="svg", transparent=True, metadata={"Title": title})
  text = file.getvalue()
  text = text[text.index("<svg") :].replace(_INK, "currentColor")
  text = re.sub("<metadata>.*</metadata>", "", text, flags=re.DOTALL)
  # A page contains several figures, and ids must be unique within the page.
  prefix = re.sub(r"\W", "_", title)
  return re.sub(r'(id="|url\(#|href="#)', rf"\g<1>{prefix}_", text)
