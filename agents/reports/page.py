"""Writes a report on runs as one HTML file, and all scores as CSV."""

import csv
import datetime
import html
import io
import itertools
import pathlib
import string
from collections.abc import Sequence

import numpy as np

from agents.reports import curves, elements, figures, improvement_tables, published_scores, results
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
    style=elements.style(),
    date=datetime.date.today(),
    runs=f"{len(runs)} run{'s' * (len(runs) != 1)}",
    incomplete=f" Incomplete runs: {num_incomplete}. A curve ends where the "
    "first of its incomplete runs ends."
    if num_incomplete
    else "",
    sections="\n".join(
      [
        *(
          _task(task, list(members))
          for task, members in itertools.groupby(groups, lambda group: group.task)
        ),
        improvement_tables.over_tasks(groups),
        _settings(groups),
        _speed(groups),
        _warnings(groups),
      ]
    ),
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
  """Returns the section of a task: heading, figure and tables."""
  names = {
    group.label: elements.colored(group.label, color)
    for group, color in zip(groups, itertools.cycle(figures.COLORS))
  }
  legend = "".join(f"<span>{name}</span>" for name in names.values())
  return "\n".join(
    [
      elements.heading(task, task),
      elements.figure(
        "Return over steps and over time",
        f'<div class="legend">{legend}</div>\n{figures.learning(groups)}',
        task,
        "curves",
      ),
      elements.figure(
        "Last scores, at the last step that all runs of a group have reached",
        _scores(groups, names),
        task,
        "scores",
      ),
      improvement_tables.on_task(groups, names),
    ]
  )


def _scores(groups: Sequence[results.RunGroup], names: dict[str, str]) -> str:
  """Returns a table with the last scores of groups, whose names are in HTML."""
  rows = []
  for group in groups:
    hours = float(np.mean([run.rows[-1]["seconds"] for run in group.runs])) / 3600
    best = published_scores.best(group.task, group.runs[0].origin[1] + group.runs[0].config.steps)
    rows.append(
      [
        names[group.label],
        ", ".join(map(str, sorted(run.config.seed for run in group.runs))),
        f"{curves.final(group.runs, 'eval')[0]:,}",
        *_final(group, "eval"),
        *_final(group, "train"),
        f"{hours:.3g} h" if hours >= 1 else f"{60 * hours:.3g} min",
        html.escape(f"{elements.number(best.score)} after {best.steps / 1e6:g}M ({best.source})")
        if best
        else "-",
      ]
    )
  return elements.table(
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


def _final(group: results.RunGroup, phase: str) -> list[str]:
  """Returns two cells: mean and interquartile mean of the last scores."""
  _, scores = curves.final(group.runs, phase)
  if not len(scores):
    return ["-", "-"]
  estimate = curves.estimate(scores)
  spread = interval = count = ""
  if len(scores) > 1:
    spread = f" ± {elements.number(scores.std(ddof=1))}"
    interval = f" [{elements.number(estimate.low)}, {elements.number(estimate.high)}]"
  if len(scores) < len(group.runs):
    count = f" ({len(scores)} of {len(group.runs)})"
  return [
    f"{elements.number(scores.mean())}{spread}{count}",
    f"{elements.number(estimate.mean)}{interval}",
  ]


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
    row = [elements.name(group)]
    for column, form in columns.items():
      values = [value for total in totals if (value := total[column]) is not None]
      row.append(format(np.mean(values), form) if values else "-")
    rows.append(row)
  caption = (
    "&ldquo;steps/s&rdquo; is the number of training steps per second, without the time of "
    "evaluation and compilation. &ldquo;limit&rdquo; is this number if workers only step "
    "environments, and &ldquo;share&rdquo; is the speed divided by the limit. The other columns "
    "are shares of the wall-clock time."
  )
  table = elements.table(["group", "steps/s", "limit", "share", *time_usage.PARTS], rows)
  return (
    f"{elements.heading('Speed', 'speed')}\n{elements.figure(caption, table, 'speed', 'table')}"
  )


def _settings(groups: Sequence[results.RunGroup]) -> str:
  """Returns a section with the settings that differ, "" for a single group."""
  if len(groups) < 2:
    return ""
  settings = results.differences(groups)
  rows = [
    [
      elements.name(group),
      _final(group, "eval")[1],
      *(html.escape(str(values[index])) for values in settings.values()),
    ]
    for index, group in enumerate(groups)
  ]
  table = elements.table(["group", "IQM [95 %], mean action", *map(html.escape, settings)], rows)
  caption = "A click on the name of a column sorts the rows by this column."
  return (
    f"{elements.heading('Settings that differ', 'differences')}\n"
    f"{elements.figure(caption, table, 'settings')}"
  )


def _warnings(groups: Sequence[results.RunGroup]) -> str:
  """Returns a section with the warnings of all runs, "" without warnings."""
  lines = [
    f"<li>{elements.name(group)}, seed {run.config.seed}, step {row['step']:,}: "
    f"{html.escape(warning)}</li>"
    for group, run in _runs(groups)
    for row in run.rows
    for warning in row.get("warnings", [])
  ]
  if not lines:
    return ""
  return f"{elements.heading('Warnings', 'warnings')}\n<ul>" + "\n".join(lines) + "</ul>"
