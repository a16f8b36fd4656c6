"""What the named configs score after training, over seeds.

    python -m benchmarks.learning --configs cheetah,ant --steps 1e6 --seeds 0-4

Trains each config with each seed, lets every final policy play 100 episodes in
fresh environments, with the mean action and with sampled ones, and appends a
row to docs/results/learning.csv. There is no choosing between checkpoints.
Finished runs are not repeated, interrupted ones are resumed.
"""

from __future__ import annotations

import argparse
import pathlib

from agents import config as config_lib
from agents import configs
from agents.environments.workers import pool
from benchmarks.common import scored_runs

_RESULTS = pathlib.Path(__file__).parent.parent / "docs" / "results"


def options(description: str, configs_default: str, results: str
            ) -> argparse.ArgumentParser:
  """Return a parser of what to train, shared with `benchmarks.ablation`."""
  parser = argparse.ArgumentParser(
      description=description,
      formatter_class=argparse.ArgumentDefaultsHelpFormatter)
  parser.add_argument("--configs", default=configs_default,
                      help="names, with commas between them")
  parser.add_argument("--steps", type=float, help="budget; None: the config's")
  parser.add_argument("--seeds", default="0-4", help="such as 0-4 or 1,3")
  parser.add_argument("--at_once", type=int, default=pool.cores(),
                      help="runs side by side, each with a core of its own; 1 "
                      "has all cores")
  parser.add_argument("--episodes", type=int, default=100,
                      help="of an evaluation")
  parser.add_argument("--logdir", type=pathlib.Path,
                      default=pathlib.Path("~/logdir") / (
                          pathlib.Path(results).stem))
  parser.add_argument("--results", type=pathlib.Path,
                      default=_RESULTS / results, help="CSV to append to")
  return parser


def jobs(args: argparse.Namespace) -> list[scored_runs.Job]:
  """Return a job for each config and seed."""
  found = []
  for seed in scored_runs.seeds(args.seeds):
    for name in args.configs.split(","):
      _, config = configs.load(name)
      found.append(scored_runs.Job(name, int(args.steps or config.steps), seed))
  return found


def finish(args: argparse.Namespace, wanted: list[scored_runs.Job]
           ) -> list[dict[str, str]]:
  """Run the jobs and return their rows."""
  return scored_runs.run(wanted, args.logdir.expanduser(), args.results,
                  args.at_once, args.episodes)


def main(argv: list[str] | None = None):
  parser = options(__doc__.splitlines()[0], "cheetah", "learning.csv")
  parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[],
                      help="change a setting, as for train.py")
  args = parser.parse_args(argv)
  changes = dict(config_lib.parse_setting(text) for text in args.set)
  rows = finish(args, [job._replace(
      changes=changes, variant=" ".join(args.set)) for job in jobs(args)])
  print(f"\n{scored_runs.summary(rows)}")


if __name__ == "__main__":
  main()
