"""Writes a report on runs as one HTML file, and all scores as CSV."""

import csv
import datetime
import html
import io
import itertools
import pathlib
import string
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from agents.reports import curves, figures, published_scores, results
from agents.training.monitoring import time_usage


def page(groups: Sequence[results.RunGroup], title: str) -> str:
  """Returns a report on runs as an HTML page.

  Args:
    groups: Groups of runs, sorted by task.
    title: Title of the page.

  Returns:
    HTML document that refers to no other file.
  """
  runs = _runs(groups)
  num_incomplete = sum(not run.complete for _, run in runs)
  template = pathlib.Path(__file__).with_suffix(".html").read_text()
  return string.Template(template).substitute(
    title=html.escape(title),
    date=datetime.date.today(),
    runs=f"{len(runs)} run{'s' * (len(runs) != 1)}",
    incomplete=f" Incomplete runs: {num_incomplete}. A curve ends where the "
    "first of its incomplete runs ends."
    if num_incomplete
    else "",
    tasks="\n".join(
      _task(task, list(members))
      for task, members in (itertools.groupby(groups, lambda group: group.task))
    ),
    speed=_speed(groups),
    differences=_differences(groups),
    warnings=_warnings(groups),
  )


def points(groups: Sequence[results.RunGroup]) -> str:
  """Returns all scores of all runs as CSV.

  Args:
    groups: Groups of runs.

  Returns:
    CSV text with a header, and one line per row of metrics.jsonl with a score.
  """
  file = io.StringIO()
  writer = csv.writer(file, lineterminator="\n")
  writer.writerow(
    ["task", "group", "seed", "run", "actions", "step", "hours", "episodes", "return"]
  )
  writer.writerows(
    (
      group.task,
      group.label,
      run.config.seed,
      run.path.name,
      actions,
      row["step"],
      f"{row['seconds'] / 3600:.6f}",
      row["episodes"],
      f"{row['return_mean']:.6g}",
    )
    for group, run in _runs(groups)
    for phase, actions in (("eval", "mean"), ("train", "sampled"))
    for row in run.phase(phase)
  )
  return file.getvalue()


def _runs(groups: Sequence[results.RunGroup]) -> list[tuple[results.RunGroup, results.RunResults]]:
  return [(group, run) for group in groups for run in group.runs]


def _task(task: str, groups: list[results.RunGroup]) -> str:
  """Returns the section of a task: heading, figure and table."""
  names, rows = [], []
  for group, color in zip(groups, itertools.cycle(figures.COLORS)):
    names.append(f'<i class="swatch" style="background:{color}"></i>{html.escape(group.label)}')
    hours = float(np.mean([run.rows[-1]["seconds"] for run in group.runs])) / 3600
    best = published_scores.best(task, group.runs[0].config.steps)
    rows.append(
      [
        names[-1],
        ", ".join(map(str, sorted(run.config.seed for run in group.runs))),
        f"{curves.final(group.runs, 'eval')[0]:,}",
        *_final(group, "eval"),
        *_final(group, "train"),
        f"{hours:.3g} h" if hours >= 1 else f"{60 * hours:.3g} min",
        html.escape(f"{_number(best.score)} after {best.steps / 1e6:g}M ({best.source})")
        if best
        else "-",
      ]
    )
  legend = "".join(f"<span>{name}</span>" for name in names)
  table = _table(
    [
      "",
      "seeds",
      "steps",
      "mean action: mean ± std",
      "IQM [95 %]",
      "sampled: mean ± std",
      "IQM [95 %]",
      "time",
      "best published",
    ],
    rows,
  )
  return (
    f"<h2>{html.escape(task)}</h2>\n<figure>{figures.learning(groups)}"
    f'<figcaption class="legend">{legend}</figcaption></figure>\n{table}'
  )


def _final(group: results.RunGroup, phase: str) -> list[str]:
  """Returns two cells: mean and interquartile mean of the last scores."""
  _, scores = curves.final(group.runs, phase)
  if not len(scores):
    return ["-", "-"]
  estimate = curves.estimate(scores)
  spread = interval = count = ""
  if len(scores) > 1:
    spread = f" ± {_number(scores.std(ddof=1))}"
    interval = f" [{_number(estimate.low)}, {_number(estimate.high)}]"
  if len(scores) < len(group.runs):
    count = f" ({len(scores)} of {len(group.runs)})"
  return [f"{_number(scores.mean())}{spread}{count}", f"{_number(estimate.mean)}{interval}"]


def _speed(groups: Sequence[results.RunGroup]) -> str:
  """Returns a table with the speed and the time shares of each group."""
  columns = {
    "steps_per_second": ",.0f",
    "step_limit": ",.0f",
    "limit_share": ".2f",
    **{f"{part}_share": ".0%" for part in time_usage.PARTS},
  }
  rows = []
  for group in groups:
    totals = [
      time_usage.total(train)
      for run in group.runs
      if (train := [row for row in run.rows if row["phase"] == "train"])
    ]
    row = [_name(group)]
    for column, form in columns.items():
      values = [value for total in totals if (value := total[column]) is not None]
      row.append(format(np.mean(values), form) if values else "-")
    rows.append(row)
  return _table(["", "steps/s", "limit", "share", *time_usage.PARTS], rows)


def _differences(groups: Sequence[results.RunGroup]) -> str:
  if len(groups) < 2:
    return ""
  rows = [
    [html.escape(str(cell)) for cell in (key, *values)]
    for key, values in results.differences(groups).items()
  ]
  return "\n<h2>Settings that differ</h2>\n" + _table(["", *map(_name, groups)], rows)


def _warnings(groups: Sequence[results.RunGroup]) -> str:
  """Returns a section with the warnings of all runs, "" without warnings."""
  lines = [
    f"<li>{_name(group)}, seed {run.config.seed}, step {row['step']:,}: {html.escape(warning)}</li>"
    for group, run in _runs(groups)
    for row in run.rows
    for warning in row.get("warnings", [])
  ]
  return "\n<h2>Warnings</h2>\n<ul>" + "\n".join(lines) + "</ul>" if lines else ""


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
  def line(cells: Iterable[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{cell}</{tag}>' for cell in cells)}</tr>"

  lines = [line(header, "th"), *(line(row, "td") for row in rows)]
  return '<div class="wide"><table>\n' + "\n".join(lines) + "\n</table></div>"


def _name(group: results.RunGroup) -> str:
  return html.escape(f"{group.task}: {group.label}")


def _number(value: Any) -> str:
  return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
