"""Measures how well trained legged robots follow commands.

    python train.py --config go1 --seed 0 --logdir ~/go1
    python -m benchmarks.walking ~/go1 ~/spot

Each policy plays 100 episodes with the mean action. The first ten have the
seeds of the run's evaluations. The table has the share of episodes that end by
a fall, and the mean distances from the commanded velocities.
"""

import json
import pathlib

import numpy as np

from agents.commands.shared import rollout_policy
from agents.training.run_folder import checkpoint, run_folder
from benchmarks.common import command_line, machine, tables


def row(path: str, num_episodes: int) -> list[str]:
  """Returns the cells of one run.

  Args:
    path: Run folder, or a folder with runs.
    num_episodes: Number of episodes.
  """
  folder = run_folder.find(path)
  newest = checkpoint.newest_readable(folder.checkpoints)
  rows = [json.loads(line) for line in (folder.path / "metrics.jsonl").read_text().splitlines()]
  (result,) = rollout_policy.play(folder, [newest], num_episodes, 10, False)
  infos = [episode.info for episode in result.episodes]

  def mean(name: str) -> float:
    return float(np.mean([info[f"metric_{name}"] for info in infos]))

  return [
    folder.config.env.id,
    str(folder.config.seed),
    f"{result.step:,}",
    f"{rows[-1]['seconds'] / 60:.1f}",
    f"{1 - mean('survived'):.0%}",
    f"{mean('error_linear'):.3f}",
    f"{mean('error_angular'):.3f}",
    f"{mean('power'):.0f}",
  ]


def main(argv: list[str] | None = None) -> None:
  """Runs the benchmark."""
  parser = command_line.make_parser(__doc__)
  parser.add_argument("runs", nargs="+", type=pathlib.Path, help="run folders")
  parser.add_argument("--episodes", type=int, default=100, help="episodes per run")
  args = parser.parse_args(argv)
  machine.require("envpool")
  header = "robot", "seed", "steps", "minutes", "falls", "m/s", "rad/s", "W"
  lines = [row(str(path), args.episodes) for path in args.runs]
  print(tables.markdown(header, lines))


if __name__ == "__main__":
  main()
