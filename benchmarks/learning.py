"""Measures the returns of named configs after training, over several seeds.

    python -m benchmarks.learning --configs cheetah,ant --steps 1e6 --seeds 0-4
    python -m benchmarks.learning --preset paper --results /tmp/paper.csv

Trains each config with each seed. The final policy of every run plays 100
episodes with the mean action and 100 with sampled actions, in new environments,
and adds a row to docs/results/learning.csv. Earlier checkpoints are not
evaluated. Finished runs are not repeated, and interrupted runs resume.
"""

import argparse
import pathlib

from agents import config as config_lib
from agents.environments.workers import pool
from benchmarks.common import command_line, scored_runs, training


def make_parser(
  doc: str | None, configs: str, results: str, **options: str
) -> argparse.ArgumentParser:
  """Returns the parser that `learning` and `ablation` share.

  Args:
    doc: Docstring of the module.
    configs: Default of `--configs`.
    results: File name of the CSV file in docs/results.
    options: Further options, see `command_line.make_parser`.
  """
  parser = command_line.make_parser(doc, configs=configs, seeds="0-4", **options)
  parser.add_argument("--steps", type=float, help="environment steps of a run; None: the config's")
  parser.add_argument(
    "--at_once",
    type=int,
    default=pool.num_cores(),
    help="number of simultaneous runs, with one core each; a single run has all cores",
  )
  parser.add_argument(
    "--episodes", type=int, default=100, help="number of episodes of an evaluation"
  )
  command_line.add_files(parser, pathlib.Path(results).stem)
  return parser


def make_jobs(args: argparse.Namespace) -> list[scored_runs.Job]:
  """Returns a job for each config and seed of the command line."""
  return [
    scored_runs.Job(name, int(args.steps or training.load_config(name).steps), seed)
    for seed in scored_runs.parse_seeds(args.seeds)
    for name in args.configs.split(",")
  ]


def run(args: argparse.Namespace, jobs: list[scored_runs.Job]) -> list[dict[str, str]]:
  """Runs jobs with the options of the command line; returns their rows."""
  return scored_runs.run(jobs, args.logdir.expanduser(), args.results, args.at_once, args.episodes)


def main(argv: list[str] | None = None):
  """Runs the benchmark."""
  parser = make_parser(__doc__, "cheetah", "learning.csv", set="")
  parser.add_argument(
    "--preset", metavar="NAME", action="append", default=[], help="apply a preset, as for train.py"
  )
  args = parser.parse_args(argv)
  changed = {
    "variant": " ".join([*(f"--preset {name}" for name in args.preset), *args.set]),
    "presets": tuple(args.preset),
    "changes": dict(map(config_lib.parse_setting, args.set)),
  }
  rows = run(args, [job._replace(**changed) for job in make_jobs(args)])
  print(f"\n{scored_runs.summary(rows)}")


if __name__ == "__main__":
  main()
