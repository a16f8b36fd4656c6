"""Measures whether early evaluations predict which seed learns best.

    python -m benchmarks.early_rank
    python -m benchmarks.early_rank --add ~/logdir/learning

A race of seeds would stop the worse half of the runs after a share of the
budget. This command prints Spearman's rank correlation between the score at
that share and the final score, over the seeds of a config, and whether the best
run is in the better half. A score is the mean of the latest three evaluations.
`--add` adds the evaluations of complete runs to docs/results/evaluations.csv.
"""

import csv
import pathlib

import numpy as np
from scipy import stats

from agents.reports import results
from benchmarks.common import command_line, machine, tables

PATH = machine.REPOSITORY / "docs" / "results" / "evaluations.csv"
SHARES = 0.25, 0.5, 0.75
_FIELDS = "config", "seed", "step", "return_mean"
_NUM_LATEST = 3


def read(path: pathlib.Path) -> dict[str, list[np.ndarray]]:
  """Returns the evaluations of all runs by config.

  Args:
    path: CSV file with one row per evaluation.

  Returns:
    One array of shape [E] per run, with the mean returns of its evaluations.
  """
  runs: dict[tuple[str, str], list[float]] = {}
  with open(path, newline="") as file:
    for row in csv.DictReader(file):
      runs.setdefault((row["config"], row["seed"]), []).append(float(row["return_mean"]))
  curves: dict[str, list[np.ndarray]] = {}
  for (config, _), scores in runs.items():
    curves.setdefault(config, []).append(np.array(scores))
  return curves


def predict(curves: list[np.ndarray], share: float) -> tuple[float, float, bool]:
  """Compares the order of runs after a share of the budget with the final one.

  Args:
    curves: Evaluations of each run, of shape [E], at equal steps.
    share: Share of the budget, in (0, 1].

  Returns:
    Rank correlation, its two-sided p-value, and whether the run with the best
    final score is in the better half at the share.
  """
  num_early = max(1, int(share * len(curves[0])))
  early, final = (
    np.array([curve[:stop][-_NUM_LATEST:].mean() for curve in curves]) for stop in (num_early, None)
  )
  correlation = stats.spearmanr(early, final)
  better_half = np.argsort(early)[len(early) // 2 :]
  return correlation.statistic, correlation.pvalue, int(np.argmax(final)) in better_half


def table(curves: dict[str, list[np.ndarray]]) -> str:
  """Returns a table with a line for each config and a column for each share.

  Args:
    curves: Evaluations of all runs by config, see `read`.
  """
  lines = []
  for config, runs in curves.items():
    cells = []
    for share in SHARES:
      correlation, p_value, is_kept = predict(runs, share)
      cells.append(f"{correlation:.2f} (p {p_value:.2f}), best {'kept' if is_kept else 'lost'}")
    lines.append([config, str(len(runs)), *cells])
  return tables.markdown(["config", "seeds", *(f"{share:.0%}" for share in SHARES)], lines)


def add(logdir: str, path: pathlib.Path) -> None:
  """Appends the evaluations of complete runs to a CSV file.

  Args:
    logdir: Folder with run folders at any depth.
    path: CSV file; its header is written if the file does not exist.
  """
  is_new = not path.exists()
  with open(path, "a", newline="") as file:
    writer = csv.writer(file, lineterminator="\n")
    if is_new:
      writer.writerow(_FIELDS)
    for run in map(results.read, results.find([logdir])):
      if run.complete:
        writer.writerows(
          (run.name, run.config.seed, row["step"], f"{row['return_mean']:.6g}")
          for row in run.phase("eval")
        )


def main(argv: list[str] | None = None) -> None:
  """Runs the command.

  Args:
    argv: Command-line arguments; None takes the arguments of the process.
  """
  parser = command_line.make_parser(__doc__)
  parser.add_argument("--add", metavar="LOGDIR", help="add the runs in a folder to the file")
  parser.add_argument("--path", type=pathlib.Path, default=PATH, help="CSV file of evaluations")
  args = parser.parse_args(argv)
  if args.add:
    add(args.add, args.path)
  print(table(read(args.path)))


if __name__ == "__main__":
  main()
