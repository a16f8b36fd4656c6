"""Writes the stress report as one HTML file."""

import base64
import datetime
import html
import itertools
import pathlib
import string

from agents.reports import elements
from agents.stress import disturbances, experiment, figures, films, intervals
from agents.stress import report as report_lib

_NO_FALL = (
  " <strong>No episode ended before the time limit.</strong> Some tasks, such as HalfCheetah, "
  "never terminate, so that their survival is 100&nbsp;% by definition. The returns show the "
  "effects of the disturbances."
)


def page(report: report_lib.Report) -> str:
  """Returns the report as an HTML page.

  Args:
    report: Contents of the page.

  Returns:
    HTML document that refers to no other file.
  """
  template = pathlib.Path(__file__).with_suffix(".html").read_text()
  return string.Template(template).substitute(
    title=html.escape(f"Stress report of {report.task}"),
    style=elements.style(),
    run=html.escape(report.run),
    step=f"{report.step:,}",
    date=datetime.date.today(),
    episodes=report.num_episodes,
    limit=f"{report.limit:,}",
    note="" if any(summary.survival.value < 1 for summary in _summaries(report)) else _NO_FALL,
    sections="\n".join(
      [_control(report), *(_section(report, name) for name in report.levels), _no_films(report)]
    ),
  )


def _summaries(report: report_lib.Report) -> list[experiment.Summary]:
  return [report.control, *itertools.chain(*report.levels.values())]


def _control(report: report_lib.Report) -> str:
  """Returns the section of the control group."""
  rows = [["no disturbance", *_estimates(report.control)]]
  table = elements.table(["", "survival", "return"], rows)
  return f"{elements.heading('Control group', 'control')}\n{table}"


def _section(report: report_lib.Report, name: str) -> str:
  """Returns the section of a disturbance: heading, figure, table and film."""
  disturbance = disturbances.DISTURBANCES[name]
  rows = [
    [
      f"{summary.level:g}",
      *_estimates(summary),
      _cell(summary.survival_difference, "{:+.0%}"),
      _cell(summary.score_difference, "{:+,.4g}"),
    ]
    for summary in report.levels[name]
  ]
  header = [html.escape(disturbance.unit), "survival", "return"]
  header += ["difference in survival", "difference in return"]
  figure = figures.levels(disturbance, report.levels[name], report.control)
  caption = "Survival and return. The band is the interval of the control group."
  return "\n".join(
    [
      elements.heading(disturbance.title, name),
      elements.figure(caption, figure, name, "figure"),
      elements.figure("Estimates [95 %]", elements.table(header, rows), name, "table"),
      _film(report, name),
    ]
  )


def _estimates(summary: experiment.Summary) -> list[str]:
  return [_cell(summary.survival, "{:.0%}"), _cell(summary.score, "{:,.4g}")]


def _cell(interval: intervals.Interval, form: str) -> str:
  """Returns an interval in a table, such as "50% [30%, 70%]"."""
  value, low, high = map(form.format, interval)
  return f"{value} [{low}, {high}]"


def _film(report: report_lib.Report, name: str) -> str:
  """Returns the film of the first fall, or a text if there is none."""
  fall = report.falls.get(name)
  if fall is None:
    return "<p>No episode ends early that reaches the time limit without this disturbance.</p>"
  caption = html.escape(
    f"First fall: {films.caption(fall)}, seed {fall.episode.seed}, after "
    f"{fall.episode.length:,} steps"
  )
  if name not in report.films:
    return f"<p>{caption}.</p>"
  data = base64.b64encode(report.films[name]).decode()
  video = f'<video controls muted src="data:video/mp4;base64,{data}"></video>'
  return elements.figure(caption, video, name, "film")


def _no_films(report: report_lib.Report) -> str:
  """Returns a section with the reason for missing films, or ""."""
  if not (report.falls and report.no_films):
    return ""
  reason = html.escape(report.no_films)
  return f"{elements.heading('Films', 'films')}\n<p>There are no films.</p>\n<pre>{reason}</pre>"
