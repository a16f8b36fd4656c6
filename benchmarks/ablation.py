"""What each part of the algorithm is worth.

    python -m benchmarks.ablation --configs cheetah,hopper --seeds 0-2

Trains the configs as they are, each with one part taken back to what it was in
2017 or to what is usual, and `--preset paper`; appends to
docs/results/ablation.csv as `benchmarks.learning` does.
"""

from __future__ import annotations

from typing import Any

from benchmarks import learning
from benchmarks.common import scored_runs
from benchmarks.common import tables

# What is different, by its name in the table.
VARIANTS: dict[str, dict[str, Any]] = {
    "": {},
    "Monte-Carlo advantages instead of GAE": {"algorithm.gae_lambda": 1.0},
    "KL penalty instead of clipping": {
        "algorithm.clip_ratio": None, "algorithm.kl_penalty": 1.0,
        "algorithm.kl_cutoff_coef": 1000.0},
    "no bootstrap at time limits": {"algorithm.bootstrap_truncation": False},
    "advantages computed once an update": {
        "algorithm.recompute_advantages": False},
    "advantages normalized in each minibatch": {
        "algorithm.normalize_advantage": True},
    "initial std 1": {"network.init_std": 1.0},
    "step size constant": {"algorithm.lr_schedule": "constant"},
    "step size held by the KL": {"algorithm.lr_schedule": "kl_adaptive"},
    "whole episodes instead of segments": {
        "algorithm.segment_length": None, "algorithm.update_every": 32,
        "num_envs": 32},
}
PAPER = "--preset paper"


def jobs(base: list[scored_runs.Job]) -> list[scored_runs.Job]:
  """Return the jobs of all variants, those that change nothing left out."""
  found = []
  for job in base:
    found.append(job._replace(variant=PAPER, preset="paper"))
    for variant, changes in VARIANTS.items():
      changed = job._replace(variant=variant, changes=changes)
      if not variant or changed.config != job.config:
        found.append(changed)
  return found


def table(rows: list[dict[str, str]]) -> str:
  """Return a line for each variant, and a column for each config."""
  names = list(dict.fromkeys(row["config"] for row in rows))
  lines = []
  for variant in [*VARIANTS, PAPER]:
    cells = []
    for name in names:
      values = [float(row["mean_action"]) for row in rows
                if (row["config"], row["variant"]) == (name, variant)]
      cells.append(scored_runs.spread(values) if values else "as is")
    if set(cells) != {"as is"}:
      lines.append([variant or "the config", *cells])
  return tables.markdown(["mean action", *names], lines)


def main(argv: list[str] | None = None):
  args = learning.options(
      __doc__.splitlines()[0], "cheetah,hopper", "ablation.csv"
      ).parse_args(argv)
  print(f"\n{table(learning.finish(args, jobs(learning.jobs(args))))}")


if __name__ == "__main__":
  main()
