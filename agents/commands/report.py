"""Reports on runs as one HTML file; see --help."""

import argparse
import pathlib
import sys
from collections.abc import Iterable

from agents import config as config_lib
from agents.commands import cli
from agents.reports import results

_EXAMPLES = """\
examples:
  {0} ~/logdir
  {0} ~/logdir/*-cheetah ~/logdir/*-hopper --out both.html
"""


def main(argv: list[str] | None = None) -> int:
  """Runs the command.

  Args:
    argv: Arguments; by default those of the process.
  Returns:
    Exit code.
  """
  parser = _parser()
  args = parser.parse_args(argv)
  out = pathlib.Path(args.out).expanduser()
  if out.suffix == ".csv":
    parser.error(f"--out {out}: name the HTML file; the CSV file is written "
                 "to the same folder.")
  with cli.exit_on_error(parser):
    report(results.find(args.runs), out)
  return 0


def _parser() -> argparse.ArgumentParser:
  parser = cli.make_parser(
      "report", "Report on runs: return over steps and over hours with seeds "
      "as bands, published results, speed, and settings. Writes one "
      "self-contained HTML file, and the plotted points as CSV.", _EXAMPLES)
  parser.add_argument(
      "runs", metavar="RUN_DIR", nargs="+", help="run folder, or a folder that "
      "contains run folders at any depth")
  parser.add_argument(
      "--out", metavar="PATH", default="report.html", help="HTML file to "
      "write, next to the CSV file (default: report.html)")
  return parser


def report(paths: Iterable[pathlib.Path], out: pathlib.Path):
  """Writes a report on runs.

  Args:
    paths: Run folders.
    out: HTML file to write.
  Raises:
    ConfigError: If no run has scores yet.
  """
  runs = []
  for path in paths:
    try:
      run = results.read(path)
    except config_lib.ConfigError as error:
      print(f"Note: left out: {error}", file=sys.stderr)
      continue
    if run.phase("eval") or run.phase("train"):
      runs.append(run)
    else:
      print(f"Note: left out: {path} has no scores yet.", file=sys.stderr)
  if not runs:
    raise config_lib.ConfigError("no run has any scores yet.")
  from agents.reports import page  # Takes a second to import.
  groups = results.group(runs)
  tasks = ", ".join(dict.fromkeys(group.task for group in groups))
  table = out.with_name(f"{out.stem}-points.csv")
  out.parent.mkdir(parents=True, exist_ok=True)
  out.write_text(page.page(groups, f"Runs of {tasks}"))
  table.write_text(page.points(groups))
  print(f"Written: {out}, {table} ({len(runs)} "
        f"run{'s' * (len(runs) != 1)})")
