"""A report as one HTML file, and its numbers as CSV."""

from __future__ import annotations

import csv
import datetime
import html
import io
import itertools
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

import numpy as np

from agents.reports import curves
from agents.reports import figures
from agents.reports import published_scores
from agents.reports import results
from agents.training.monitoring import time_budget

_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1080px;
  margin: 2em auto; padding: 0 1em; background: Canvas; color: CanvasText; }
h1 { font-size: 1.6em; } h2 { font-size: 1.25em; margin-top: 2em; }
figure { margin: 0; } svg { width: 100%; height: auto; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums;
  font-size: .87em; }
th, td { padding: .25em .7em .25em 0; text-align: right; }
td { white-space: nowrap; }
th:first-child, td:first-child { text-align: left; white-space: normal;
  min-width: 8em; }
th { font-weight: 600; vertical-align: bottom; }
tr { border-bottom: 1px solid;
  border-color: color-mix(in srgb, currentColor 20%, transparent); }
.swatch { display: inline-block; width: 1.2em; height: .8em;
  border-radius: 2px; margin-right: .4em; }
.legend span { margin-right: 1.5em; }
"""


def page(groups: Sequence[results.RunGroup], title: str) -> str:
  """Return all there is to say of some runs.

  Args:
    groups: Of any number of tasks, in the order to show them.
    title: Of the page.
  """
  parts = [f"<h1>{html.escape(title)}</h1>", _introduction(groups)]
  for task, members in itertools.groupby(groups, lambda group: group.task):
    parts.append(_task(task, list(members)))
  parts.append(_speed(groups))
  parts.append(_differences(groups))
  parts.append(_warnings(groups))
  body = "\n".join(filter(None, parts))
  return (f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
          '<meta name="viewport" content="width=device-width, '
          f'initial-scale=1">\n<title>{html.escape(title)}</title>\n'
          f"<style>{_STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n")


def points(groups: Sequence[results.RunGroup]) -> str:
  """Return every score of every run as CSV."""
  file = io.StringIO()
  writer = csv.writer(file, lineterminator="\n")
  writer.writerow(["task", "group", "seed", "run", "actions", "step", "hours",
                   "episodes", "return"])
  for group in groups:
    for run in group.runs:
      for phase, actions in (("eval", "mean"), ("train", "sampled")):
        for row in run.phase(phase):
          writer.writerow([
              group.task, group.label, run.config.seed, run.path.name, actions,
              row["step"], f"{row['seconds'] / 3600:.6f}", row["episodes"],
              f"{row['return_mean']:.6g}"])
  return file.getvalue()


def _introduction(groups: Sequence[results.RunGroup]) -> str:
  amount = sum(len(group.runs) for group in groups)
  begun = [run.path for group in groups for run in group.runs
           if not run.complete]
  text = (
      f"{amount} run{'s' * (amount != 1)}, looked at on "
      f"{datetime.date.today():%Y-%m-%d}. Curves are interquartile means over "
      "seeds, bands their 95&nbsp;% bootstrap intervals (Agarwal et al. 2021); "
      "a single seed has no band. Solid: evaluations with the mean action. "
      "Dashed: training episodes, with sampled actions. Dotted: what is "
      "published of PPO, whose protocols differ.")
  if begun:
    text += (f" {len(begun)} of them ha{'ve' if len(begun) > 1 else 's'} not "
             "come to the end; curves go as far as all seeds have come.")
  return f"<p>{text}</p>"


def _task(task: str, groups: list[results.RunGroup]) -> str:
  """Return figure and table of a task."""
  legend = "".join(
      f"<span>{_swatch(number)}{html.escape(group.label)}</span>"
      for number, group in enumerate(groups))
  rows = []
  for number, group in enumerate(groups):
    run = group.runs[0]
    hours = [each.rows[-1]["seconds"] / 3600 for each in group.runs]
    rows.append([
        f"{_swatch(number)}{html.escape(group.label)}",
        ", ".join(str(seed) for seed in sorted(
            each.config.seed for each in group.runs)),
        f"{curves.final(group.runs, 'eval')[0]:,}",
        *_final(group, "eval"), *_final(group, "train"),
        _time(float(np.mean(hours))), _beside(task, run.config.steps)])
  table = _table([
      "", "seeds", "steps", "mean action: mean ± std", "IQM [95 %]",
      "sampled: mean ± std", "IQM [95 %]", "time", "best published"], rows)
  return (f"<h2>{html.escape(task)}</h2>\n<figure>{figures.learning(groups)}"
          f'<figcaption class="legend">{legend}</figcaption></figure>\n{table}')


def _final(group: results.RunGroup, phase: str) -> list[str]:
  _, scores = curves.final(group.runs, phase)
  if not len(scores):
    return ["-", "-"]
  found = curves.estimate(scores)
  spread = f" ± {_number(scores.std(ddof=1))}" if len(scores) > 1 else ""
  interval = (f" [{_number(found.low)}, {_number(found.high)}]"
              if len(scores) > 1 else "")
  missing = len(group.runs) - len(scores)
  count = f" ({len(scores)} of {len(group.runs)})" if missing else ""
  return [f"{_number(scores.mean())}{spread}{count}",
          f"{_number(found.mean)}{interval}"]


def _time(hours: float) -> str:
  return f"{hours:.3g} h" if hours >= 1 else f"{60 * hours:.3g} min"


def _beside(task: str, steps: int) -> str:
  best = published_scores.best(task, steps)
  return html.escape(
      f"{_number(best.score)} after {best.steps / 1e6:g}M ({best.source})"
      ) if best else "-"


def _speed(groups: Sequence[results.RunGroup]) -> str:
  """Return a table of steps a second and where the time went."""
  rows = []
  for group in groups:
    totals = [time_budget.total(train) for run in group.runs if (
        train := [row for row in run.rows if row["phase"] == "train"])]
    def mean(name, form, totals=totals):
      values = [total[name] for total in totals if total[name] is not None]
      return format(np.mean(values), form) if values else "-"
    rows.append([
        html.escape(f"{group.task}: {group.label}"),
        mean("steps_per_second", ",.0f"), mean("step_limit", ",.0f"),
        mean("limit_share", ".2f"),
        *(mean(f"{part}_share", ".0%") for part in time_budget.PARTS)])
  return ("<h2>Speed</h2>\n<p>Steps a second without evaluation and "
          "compilation; what the workers could do at most; and the shares of "
          "all time.</p>\n" + _table([
              "", "steps/s", "limit", "share", *time_budget.PARTS], rows))


def _differences(groups: Sequence[results.RunGroup]) -> str:
  if len(groups) < 2:
    return ""
  rows = [[html.escape(key), *(html.escape(str(value)) for value in values)]
          for key, values in results.differences(groups).items()]
  names = [html.escape(f"{group.task}: {group.label}") for group in groups]
  return "<h2>Settings that differ</h2>\n" + _table(["", *names], rows)


def _warnings(groups: Sequence[results.RunGroup]) -> str:
  """Return what was told of the health of runs."""
  lines = [
      f"<li>{html.escape(f'{group.task}: {group.label}, seed ')}"
      f"{run.config.seed}, step {row['step']:,}: {html.escape(warning)}</li>"
      for group in groups for run in group.runs for row in run.rows
      for warning in row.get("warnings", [])]
  return ("<h2>Warnings</h2>\n<ul>" + "\n".join(lines) + "</ul>"
          if lines else "")


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
  def line(cells, tag):
    return f"<tr>{''.join(f'<{tag}>{cell}</{tag}>' for cell in cells)}</tr>"
  lines = [line(header, "th"), *(line(row, "td") for row in rows)]
  return '<div class="wide"><table>\n' + "\n".join(lines) + "\n</table></div>"


def _swatch(number: int) -> str:
  color = figures.COLORS[number % len(figures.COLORS)]
  return f'<i class="swatch" style="background:{color}"></i>'


def _number(value: Any) -> str:
  return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
