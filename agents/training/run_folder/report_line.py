"""The format of a line of `metrics.jsonl`."""

from typing import Any


def is_report(row: Any) -> bool:
  """Returns whether a decoded line has the fields that all reports have.

  Args:
    row: Decoded line.
  """
  return (
    isinstance(row, dict)
    and row.get("phase") in ("train", "eval")
    and all(isinstance(row.get(name), (int, float)) for name in ("step", "seconds"))
    and isinstance(row.get("return_mean", ""), (int, float, type(None)))
  )
