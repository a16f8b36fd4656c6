"""Write a report on runs as one self-contained HTML file.

The report contains learning curves over steps and over hours, intervals over
seeds, probabilities of improvement between groups of runs, published results,
speed, and settings. A CSV file contains all scores.

examples:
  %(prog)s ~/logdir
  %(prog)s ~/logdir/*-cheetah ~/logdir/*-hopper --out both.html
"""

import functools
import pathlib
import sys
from collections.abc import Iterable
from typing import NamedTuple

from agents import config as config_lib
from agents.commands import parsing
from agents.reports import results
from agents.training.run_folder import atomic_write


class Report(NamedTuple):
  """Files of a report."""

  page: pathlib.Path  # HTML file.
  points: pathlib.Path  # CSV file.
  runs: list[pathlib.Path]  # Folders of the runs in the report.


def main(argv: list[str] | None = None) -> int:
  """Runs the command `report`.

  Args:
    argv: Command-line arguments; None takes the arguments of the process.

  Returns:
    Exit code of the process.
  """
  parser = parsing.make_parser("report", __doc__)
  option = functools.partial(parsing.option, parser)
  option(
    "runs RUN_DIR", "run folder, or a folder that contains run folders at any depth", nargs="+"
  )
  option(
    "--out PATH",
    "HTML file to write; the CSV file is written to the same folder (default: report.html)",
    default="report.html",
  )
  parsing.add_json(parser, "the paths of the files")
  with parsing.parsed(parser, argv) as args:
    out = pathlib.Path(args.out).expanduser()
    if out.suffix == ".csv" or not out.name:
      parser.error(
        f"--out '{args.out}': name the HTML file; the CSV file is written to the same folder."
      )
    args.result = report(results.find(args.runs), out)
  return 0


def report(paths: Iterable[pathlib.Path], out: pathlib.Path) -> Report:
  """Writes a report on runs.

  Args:
    paths: Run folders.
    out: HTML file to write.

  Returns:
    The written files.

  Raises:
    ConfigError: If no run has scores that can be read.
  """
  runs = []
  for path in paths:
    try:
      run = results.read(path)
      if not (run.phase("eval") or run.phase("train")):
        raise config_lib.ConfigError(f"{path} has no scores yet.")
      runs.append(run)
    except config_lib.ConfigError as error:
      print(f"Note: a run is left out: {error}", file=sys.stderr)
  if not runs:
    raise config_lib.ConfigError("no run has any scores yet.")
  from agents.reports import page  # Takes a second to import.

  groups = results.group(runs)
  tasks = ", ".join(dict.fromkeys(group.task for group in groups))
  table = out.with_name(f"{out.stem}-points.csv")
  out.parent.mkdir(parents=True, exist_ok=True)
  for path, text in ((out, page.page(groups, f"Runs of {tasks}")), (table, page.points(groups))):
    with atomic_write.open_file(path) as file:
      file.write(text.encode())
  print(f"Written: {out}, {table} ({len(runs)} run{'s' * (len(runs) != 1)})")
  return Report(out, table, [run.path for run in runs])
