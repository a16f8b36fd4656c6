"""Compares speed and results of training between this checkout and a commit.

    python -m benchmarks.commits HEAD~1 --configs cheetah,hopper,ant
    python -m benchmarks.commits 9d4bf19 --configs hopper --preset paper

Both versions train whole epochs alternately, so that other programs slow down
both versions alike. The table has medians over the pairs of epochs. The first
columns are the milliseconds of an epoch. The next columns are ratios of times
(commit ÷ checkout), of the whole epoch and of its parts; above 1, the checkout
is faster. The last column states whether metrics and variables of the versions
were bit-equal after every epoch.
"""

import contextlib
import pathlib
import shutil
import statistics
import subprocess
import tempfile
from typing import Any, NamedTuple

from benchmarks.common import command_line, machine, measuring_process, tables

_PARTS = "total", "stepping", "crossing", "inference", "learning"
_SERVERS = pathlib.Path("benchmarks", "common")


class Pair(NamedTuple):
  """Answers of `serve_updates` for the same epoch of both versions."""

  commit: dict[str, Any]
  checkout: dict[str, Any]


def start_training(
  folder: pathlib.Path, config: str, preset: str | None
) -> measuring_process.MeasuringProcess:
  """Starts the update server of a version.

  A version uses its own module `serve_updates`. A version without this module
  receives a copy of the folder `benchmarks/common` of this checkout, and uses
  `serve_updates_of_old_layout`.

  Args:
    folder: Folder with the packages `agents` and `benchmarks`.
    config: Name of a config.
    preset: Name of a preset, or None.
  """
  adapted = folder / "served_by_adapter"  # Marks a folder with the copy.
  if not (folder / _SERVERS / "serve_updates.py").exists():
    shutil.copytree(machine.REPOSITORY / _SERVERS, folder / _SERVERS)
    adapted.touch()
  server = "serve_updates_of_old_layout" if adapted.exists() else "serve_updates"
  return measuring_process.MeasuringProcess(
    "-m", f"benchmarks.common.{server}", config, *([preset] if preset else []), folder=folder
  )


def measure(
  folders: list[pathlib.Path], config: str, preset: str | None, num_updates: int
) -> list[Pair]:
  """Trains both versions alternately.

  Args:
    folders: Folders of the commit and of the checkout.
    config: Name of a config.
    preset: Name of a preset, or None.
    num_updates: Number of measured epochs, after a first one that compiles.

  Returns:
    Answers of both versions for each measured epoch.

  Raises:
    ProcessFailed: If a version cannot train the config.
  """
  pairs = []
  with contextlib.ExitStack() as stack:
    processes = [start_training(folder, config, preset) for folder in folders]
    for process in processes:
      stack.callback(process.close)
    for index in range(num_updates + 1):
      answers = {}
      for process in processes if index % 2 else reversed(processes):
        process.request()
        answers[process] = process.receive()
      if index:
        pairs.append(Pair(*(answers[process] for process in processes)))
  return pairs


def cells(pairs: list[Pair]) -> list[str]:
  """Returns the cells of a row: milliseconds, ratios, and "yes" if identical.

  Args:
    pairs: Answers for each measured epoch.
  """
  seconds = [(pair.commit["seconds"], pair.checkout["seconds"]) for pair in pairs]
  milliseconds = [
    1000 * statistics.median(times["total"] for times in version)
    for version in zip(*seconds, strict=True)
  ]
  ratios = [
    [commit[part] / checkout[part] for commit, checkout in seconds if checkout[part]]
    for part in _PARTS
  ]
  return [
    *(f"{value:.1f}" for value in milliseconds),
    *(f"{statistics.median(each):.3f}" if each else "-" for each in ratios),
    "yes" if all(map(identical, pairs)) else "no",
  ]


def identical(pair: Pair) -> bool:
  """Returns whether the results of both versions are bit-equal in an epoch.

  Metrics that only one version reports are not compared.
  """
  commit, checkout = pair.commit["metrics"], pair.checkout["metrics"]
  return pair.commit["checksum"] == pair.checkout["checksum"] and all(
    repr(commit[name]) == repr(checkout[name])  # NaN equals NaN.
    for name in commit.keys() & checkout.keys()
  )


def extract(commit: str, folder: pathlib.Path):
  """Writes the files of a commit into a folder.

  Args:
    commit: Name of the commit for git.
    folder: Existing folder.

  Raises:
    SystemExit: If the commit does not exist.
  """
  archive = subprocess.run(["git", "archive", commit], cwd=machine.REPOSITORY, capture_output=True)
  if archive.returncode:
    raise SystemExit(f"git has no files of {commit}: {archive.stderr.decode()}")
  subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)


def main(argv: list[str] | None = None):
  """Runs the benchmark."""
  parser = command_line.make_parser(__doc__, configs="cheetah,hopper,walker,ant,humanoid")
  parser.add_argument(
    "commit", nargs="?", default="HEAD", help="commit to compare this checkout with"
  )
  parser.add_argument("--preset", help="name of a preset")
  parser.add_argument(
    "--updates", type=int, default=100, help="number of measured epochs of each version"
  )
  args = parser.parse_args(argv)
  machine.warn_if_busy()
  rows = []
  with tempfile.TemporaryDirectory() as folder:
    extract(args.commit, pathlib.Path(folder))
    folders = [pathlib.Path(folder), machine.REPOSITORY]
    for config in args.configs.split(","):
      rows.append([config, *cells(measure(folders, config, args.preset, args.updates))])
      print(*rows[-1], flush=True)
  print("Milliseconds of an epoch, and ratios of times (commit ÷ checkout):")
  print(
    tables.markdown(
      ["config", args.commit, "checkout", "whole epoch", *_PARTS[1:], "identical"], rows
    )
  )


if __name__ == "__main__":
  main()
