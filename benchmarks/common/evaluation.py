"""What the final policy of a run scores, in fresh environments.

    python -m benchmarks.common.evaluation ~/logdir/20260101T120000-cheetah

Prints one line of JSON: mean and standard deviation over the episodes, with
the mean action and with sampled ones.
"""

from __future__ import annotations

import argparse
import json

import numpy as np

from agents.training.monitoring import quiet_imports
from agents.training.run_folder import checkpoint
from agents.training.run_folder import run_folder

_SIDE_BY_SIDE = 50  # Episodes at once, if there are to be as many.


def evaluate(folder: run_folder.RunFolder, episodes: int
             ) -> dict[str, dict[str, float]]:
  """Return mean and std of the returns, by how actions are chosen.

  Seeds are those of evaluation during training, continued; neither training
  nor any choice between policies has seen them.
  """
  with quiet_imports.quiet_imports():
    from agents import build
    from agents.commands import rollout_policy
  build.setup(folder.config)
  newest = checkpoint.newest(folder.checkpoints)
  found = {}
  for name, explore in (("mean_action", False), ("sampled", True)):
    played, = rollout_policy.play(folder, [newest], episodes, _SIDE_BY_SIDE, explore)
    scores = [episode.score for episode in played.episodes]
    found[name] = {"mean": float(np.mean(scores)), "std": float(np.std(scores))}
  return found


def main(argv: list[str] | None = None):
  parser = argparse.ArgumentParser(
      description=__doc__.splitlines()[0],
      formatter_class=argparse.ArgumentDefaultsHelpFormatter)
  parser.add_argument("run_folder")
  parser.add_argument("--episodes", type=int, default=100)
  args = parser.parse_args(argv)
  print(json.dumps(evaluate(run_folder.find(args.run_folder), args.episodes)))


if __name__ == "__main__":
  main()
