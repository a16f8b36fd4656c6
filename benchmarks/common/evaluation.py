"""Evaluates policies of a run in fresh environments.

    python -m benchmarks.common.evaluation RUN --policies untrained,sampled

Prints one line of JSON: mean and standard deviation of the returns of each
policy.
"""

import json
from collections.abc import Sequence

import numpy as np

from agents.training.monitoring import quiet_imports
from agents.training.run_folder import checkpoint, run_folder
from benchmarks.common import command_line

# Index of the checkpoint, and whether to sample actions or use their means.
POLICIES = {"mean_action": (-1, False), "sampled": (-1, True), "untrained": (0, True)}
_MAX_ENVS = 50  # Maximum number of simultaneous environments.


def evaluate(
  folder: run_folder.RunFolder, policies: Sequence[str], num_episodes: int
) -> dict[str, dict[str, float]]:
  """Evaluates policies in the same episodes.

  The seeds of the episodes follow the seeds of the evaluations during training,
  so training has used none of these episodes.

  Args:
    folder: Run folder.
    policies: Names in POLICIES.
    num_episodes: Number of episodes of each policy.

  Returns:
    "mean" and "std" of the returns, by policy.
  """
  with quiet_imports.quiet_imports():
    from agents import build
    from agents.commands.shared import rollout_policy
  build.setup(folder.config)
  paths = checkpoint.paths(folder.checkpoints)
  results = {}
  for name in policies:
    index, explore = POLICIES[name]
    (played,) = rollout_policy.play(folder, [paths[index]], num_episodes, _MAX_ENVS, explore)
    scores = [episode.score for episode in played.episodes]
    results[name] = {"mean": float(np.mean(scores)), "std": float(np.std(scores))}
  return results


def evaluate_in_child(
  folder: run_folder.RunFolder, policies: Sequence[str], num_episodes: int
) -> dict[str, dict[str, float]]:
  """Calls `evaluate` in a child process.

  Args:
    folder: Run folder.
    policies: Names in POLICIES.
    num_episodes: Number of episodes of each policy.

  Returns:
    "mean" and "std" of the returns, by policy.

  Raises:
    ProcessFailed: If the evaluation fails.
  """
  return command_line.measure_in_child(
    "benchmarks.common.evaluation",
    str(folder.path),
    "--policies",
    ",".join(policies),
    "--episodes",
    str(num_episodes),
  )


def main(argv: list[str] | None = None):
  """Evaluates the policies of a run and prints their scores."""
  parser = command_line.make_parser(__doc__)
  parser.add_argument("run_folder")
  parser.add_argument(
    "--policies", default="mean_action,sampled", help=f"any of {','.join(POLICIES)}"
  )
  parser.add_argument("--episodes", type=int, default=100, help="number of episodes of each policy")
  args = parser.parse_args(argv)
  print(
    json.dumps(evaluate(run_folder.find(args.run_folder), args.policies.split(","), args.episodes))
  )


if __name__ == "__main__":
  main()
