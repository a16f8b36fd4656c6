"""Tables that are readable on a terminal and as Markdown."""

from collections.abc import Sequence


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
  """Returns a Markdown table.

  Args:
    header: Titles of the columns.
    rows: Cells; the first column is aligned to the left, all others to the
      right.
  """
  lines = [list(header), *map(list, rows)]
  widths = [max(map(len, column)) for column in zip(*lines, strict=True)]

  def line(cells):
    padded = [
      cells[0].ljust(widths[0]),
      *(cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)),
    ]
    return f"| {' | '.join(padded)} |"

  rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
  return "\n".join([line(lines[0]), f"| {' | '.join(rule)} |", *map(line, lines[1:])])
