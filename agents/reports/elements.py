"""Builds headings, figures and tables in HTML, each with a permalink."""

import html
import pathlib
import re
from collections.abc import Iterable
from typing import Any

from agents.reports import results


def style() -> str:
  """Returns the CSS of a page with these elements, in light and dark mode."""
  return pathlib.Path(__file__).with_name("page.css").read_text()


def anchor(*names: str) -> str:
  """Returns the id of an element, such as "Ant-v5-curves".

  Ids depend on names only, so a link into a report is also valid in a later
  report on the same tasks.

  Args:
    *names: Names of the element, such as its task.
  """
  return re.sub(r"[^\w.=-]+", "_", "-".join(names))


def heading(text: str, *names: str) -> str:
  """Returns a heading with a permalink.

  Args:
    text: Text of the heading, not escaped.
    *names: Names for the id, see `anchor`.
  """
  return f'<h2 id="{anchor(*names)}">{html.escape(text)}{_permalink(anchor(*names))}</h2>'


def figure(caption: str, content: str, *names: str) -> str:
  """Returns a drawing or a table with a caption and a permalink.

  Args:
    caption: Caption in HTML.
    content: Content in HTML.
    *names: Names for the id, see `anchor`.
  """
  link = _permalink(anchor(*names))
  return (
    f'<figure id="{anchor(*names)}">\n<figcaption>{caption}{link}</figcaption>\n'
    f'<div class="wide">{content}</div>\n</figure>'
  )


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
  """Returns a table.

  Args:
    header: Cells of the header in HTML.
    rows: Cells of the other rows in HTML. The first cell names the row.
  """
  head = "".join(f'<th scope="col">{cell}</th>' for cell in header)
  lines = [
    f'<tr><th scope="row">{name}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'
    for name, *cells in rows
  ]
  return (
    f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n" + "\n".join(lines) + "\n</tbody></table>"
  )


def colored(label: str, color: str) -> str:
  """Returns the label of a group with its color in the figure.

  Args:
    label: Text, not escaped.
    color: Color in CSS.
  """
  return f'<i class="swatch" style="background:{color}"></i>{html.escape(label)}'


def name(group: results.RunGroup) -> str:
  """Returns task and label of a group in HTML."""
  return html.escape(f"{group.task}: {group.label}")


def number(value: Any) -> str:
  """Returns a number with three digits, or without decimal places."""
  return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _permalink(target: str) -> str:
  return f' <a class="permalink" href="#{target}" aria-label="Permalink">#</a>'
