"""Reports on runs as one HTML file; see --help."""

from __future__ import annotations

import argparse
import pathlib
import sys

from agents import config as config_lib
from agents.commands import cli
from agents.reports import results

_EXAMPLES = """\
examples:
  {0} ~/logdir
  {0} ~/logdir/*-cheetah ~/logdir/*-hopper --out both.html
"""


def main(argv: list[str] | None = None) -> int:
  name = cli.command("report")
  parser = argparse.ArgumentParser(
      prog=name, description="Report on runs: return against steps and hours, "
      "over seeds and beside what is published, speed, and settings. Writes "
      "one HTML file that needs no other, and the points as CSV.",
      epilog=_EXAMPLES.format(name), allow_abbrev=False,
      formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument(
      "runs", metavar="RUN_DIR", nargs="+", help="run folder, or a folder with "
      "run folders in it at any depth")
  parser.add_argument(
      "--out", metavar="PATH", default="report.html", help="file to write; the "
      "points stand beside it as CSV (default: report.html)")
  args = parser.parse_args(argv)
  out = pathlib.Path(args.out).expanduser()
  if out.suffix == ".csv":
    parser.error(f"--out {out}: name the HTML file; the points stand beside "
                 "it, as CSV.")
  with cli.exit_on_error(parser):
    _report(results.find(args.runs), out)
  return 0


def _report(paths: list[pathlib.Path], out: pathlib.Path):
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
  from agents.reports import page  # Takes a second, which errors need not.
  groups = results.group(runs)
  tasks = ", ".join(dict.fromkeys(group.task for group in groups))
  table = out.with_name(f"{out.stem}-points.csv")
  out.parent.mkdir(parents=True, exist_ok=True)
  out.write_text(page.page(groups, f"Runs of {tasks}"))
  table.write_text(page.points(groups))
  print(f"Written: {out}, {table} ({len(runs)} "
        f"run{'s' * (len(runs) != 1)})")
