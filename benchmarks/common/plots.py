"""The pictures that benchmarks draw."""

from __future__ import annotations

import pathlib
import statistics
import textwrap
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from benchmarks import scaling_report

_STYLE = {"axes.spines.top": False, "axes.spines.right": False,
          "axes.grid": True, "grid.alpha": 0.3, "font.size": 10}


def race(curves: Mapping[str, Sequence[Mapping[str, float]]], title: str,
         caption: str, path: pathlib.Path):
  """Draw return against seconds.

  Args:
    curves: Points with "seconds" and "return", by what the legend says.
    title: Of the picture.
    caption: What is to be known of the axes.
    path: PNG file to write.
  """
  pyplot = _pyplot()
  with pyplot.rc_context(_STYLE):
    figure, axes = pyplot.subplots(figsize=(8, 5.2), layout="constrained")
    for name, points in curves.items():
      axes.plot([point["seconds"] for point in points],
                [point["return"] for point in points], marker="o",
                markersize=3, label=name)
    axes.set_title(title)
    axes.set_xlabel("wall-clock time of training (seconds)")
    axes.set_ylabel("return of training episodes")
    axes.set_xlim(left=0)
    axes.legend(frameon=False)
    figure.supxlabel(textwrap.fill(caption, 110), fontsize=8, color="0.35")
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def scaling(data: Mapping[str, Any], path: pathlib.Path):
  """Draw steps per second along every axis that was measured.

  Args:
    data: What `benchmarks.scaling` writes as JSON.
    path: PNG file to write.
  """
  pyplot = _pyplot()
  panels = data["panels"]
  columns = min(2, len(panels))
  rows = -(-len(panels) // columns)
  with pyplot.rc_context(_STYLE):
    figure, grid = pyplot.subplots(
        rows, columns, figsize=(4.6 * columns, 3.2 * rows + 0.8),
        squeeze=False, sharey=True, layout="constrained")
    for axes in grid.flat[len(panels):]:
      axes.remove()
    for axes, (name, panel) in zip(grid.flat, panels.items()):
      _panel(axes, panel, scaling_report.LABELS[name], doubling=name != "workers")
    for axes in grid[:, 0]:
      axes.set_ylabel("training steps per second")
    grid[0, 0].set_ylim(bottom=0)
    grid[0, 0].legend(frameon=False)
    figure.suptitle(f"{data['config']} on {data['cores']} cores")
    caption = (f"Learning included. Medians of {data['repeats']} round(s); "
               "bars from least to most.")
    if data["memory"]:
      caption += f" {scaling_report.memory_text(data['memory'])}"
    figure.supxlabel(
        textwrap.fill(caption, 65 * columns), fontsize=8, color="0.35")
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def _panel(axes, panel: Mapping[str, Any], label: str, doubling: bool):
  """Draw one axis; bars span the rounds, and a ring is the config's own."""
  xs = [point["x"] for point in panel["points"]]
  speeds = [point["steps_per_second"] for point in panel["points"]]
  medians = [statistics.median(values) for values in speeds]
  bars = [[median - min(values), max(values) - median]
          for median, values in zip(medians, speeds, strict=True)]
  axes.errorbar(xs, medians, yerr=list(zip(*bars, strict=True)), marker="o",
                markersize=4, capsize=2)
  own = [(x, median) for x, median in zip(xs, medians, strict=True)
         if x in panel["own"]]
  axes.plot(*zip(*own), "o", markersize=10, markerfacecolor="none",
            color="C1", label="the config's own value")
  axes.set_xlabel(label)
  if doubling:
    axes.set_xscale("log", base=2)
  axes.set_xticks(xs, [str(x) for x in xs])
  axes.minorticks_off()
  axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")


def _pyplot():
  """Return the module that draws, without a display."""
  import matplotlib
  matplotlib.use("Agg")
  from matplotlib import pyplot
  return pyplot
