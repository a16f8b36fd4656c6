"""Plots of benchmark results."""

from __future__ import annotations

import pathlib
import statistics
import textwrap
from collections.abc import Mapping
from collections.abc import Sequence

_STYLE = {"axes.spines.top": False, "axes.spines.right": False,
          "axes.grid": True, "grid.alpha": 0.3, "font.size": 10}


def plot_race(curves: Mapping[str, Sequence[Mapping[str, float]]], title: str,
              caption: str, path: pathlib.Path):
  """Plot return against wall-clock time.

  Args:
    curves: Points with "seconds" and "return", by label of the legend.
    title: Title of the plot.
    caption: Text below the plot.
    path: PNG file to write.
  """
  pyplot = _pyplot()
  with pyplot.rc_context(_STYLE):
    figure, axes = pyplot.subplots(figsize=(8, 5.2), layout="constrained")
    for name, points in curves.items():
      axes.plot([point["seconds"] for point in points],
                [point["return"] for point in points], marker="o",
                markersize=3, label=name)
    axes.set(title=title, xlabel="wall-clock time of training (seconds)",
             ylabel="return of training episodes")
    axes.set_xlim(left=0)
    axes.legend(frameon=False)
    figure.supxlabel(textwrap.fill(caption, 110), fontsize=8, color="0.35")
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def plot_scaling(panels: Mapping[str, Mapping[int, Sequence[float]]],
                 title: str, path: pathlib.Path):
  """Plot steps per second against several settings.

  Args:
    panels: Steps per second of all rounds, by value of the setting, by label
      of the x axis.
    title: Title of the plot.
    path: PNG file to write.
  """
  pyplot = _pyplot()
  with pyplot.rc_context(_STYLE):
    figure, grid = pyplot.subplots(
        1, len(panels), figsize=(4.6 * len(panels), 4), squeeze=False,
        sharey=True, layout="constrained")
    for axes, (label, panel) in zip(grid.flat, panels.items(), strict=True):
      speeds = panel.values()
      medians = [statistics.median(values) for values in speeds]
      errors = [[median - min(values) for median, values in zip(
          medians, speeds, strict=True)], [max(values) - median for
          median, values in zip(medians, speeds, strict=True)]]
      axes.errorbar(list(panel), medians, yerr=errors, marker="o",
                    markersize=4, capsize=2)
      axes.set_xscale("log", base=2)
      axes.set_xticks(list(panel), [str(x) for x in panel])
      axes.minorticks_off()
      axes.set_xlabel(label)
    grid[0, 0].set(ylabel="training steps per second", ylim=(0, None))
    figure.suptitle(title)
    figure.supxlabel("Learning included. Medians of the rounds; bars from "
                     "minimum to maximum.", fontsize=8, color="0.35")
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def _pyplot():
  """Return `matplotlib.pyplot` with a backend that needs no display."""
  import matplotlib
  matplotlib.use("Agg")
  from matplotlib import pyplot
  return pyplot
