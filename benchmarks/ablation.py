"""Measures the effect of each part of the algorithm on the returns.

    python -m benchmarks.ablation --configs cheetah,hopper --seeds 0-2

Trains each config unchanged, with `--preset paper`, and with each of VARIANTS.
A variant replaces one part of the algorithm by its version of 2017 or by a
common alternative. Each run adds a row to docs/results/ablation.csv, as in
`benchmarks.learning`.
"""

from typing import Any

from benchmarks import learning
from benchmarks.common import scored_runs, tables

# Changes of the config by name of the variant; "" is the unchanged config.
VARIANTS: dict[str, dict[str, Any]] = {
  "": {},
  "Monte-Carlo advantages instead of GAE": {"algorithm.gae_lambda": 1.0},
  "KL penalty instead of clipping": {
    "algorithm.clip_ratio": None,
    "algorithm.kl_penalty": 1.0,
    "algorithm.kl_cutoff_coef": 1000.0,
  },
  "no bootstrap at time limits": {"algorithm.bootstrap_truncation": False},
  "advantages computed once an update": {"algorithm.recompute_advantages": False},
  "advantages normalized in each minibatch": {"algorithm.normalize_advantage": True},
  "initial std 1": {"network.init_std": 1.0},
  "step size constant": {"algorithm.lr_schedule": "constant"},
  "step size held by the KL": {"algorithm.lr_schedule": "kl_adaptive"},
  "whole episodes instead of segments": {
    "algorithm.segment_length": None,
    "algorithm.update_every": 32,
    "num_envs": 32,
  },
}
PAPER = "--preset paper"


def make_jobs(base: list[scored_runs.Job]) -> list[scored_runs.Job]:
  """Returns jobs for the unchanged configs and all variants that change them.

  Args:
    base: Jobs of the unchanged configs.
  """
  jobs = []
  for job in base:
    jobs.append(job._replace(variant=PAPER, presets=("paper",)))
    for variant, changes in VARIANTS.items():
      changed = job._replace(variant=variant, changes=changes)
      if not variant or changed.config != job.config:
        jobs.append(changed)
  return jobs


def table(rows: list[dict[str, str]]) -> str:
  """Returns a table with a line for each variant and a column for each config.

  A cell contains "as is" if the variant does not change the config.

  Args:
    rows: Rows of the CSV file.
  """
  names = list(dict.fromkeys(row["config"] for row in rows))
  lines = []
  for variant in [*VARIANTS, PAPER]:
    cells = []
    for name in names:
      values = [
        float(row["mean_action"])
        for row in rows
        if (row["config"], row["variant"]) == (name, variant)
      ]
      cells.append(scored_runs.spread(values) if values else "as is")
    if set(cells) != {"as is"}:
      lines.append([variant or "the config", *cells])
  return tables.markdown(["mean action", *names], lines)


def main(argv: list[str] | None = None):
  """Runs the benchmark."""
  args = learning.make_parser(__doc__, "cheetah,hopper", "ablation.csv").parse_args(argv)
  jobs = make_jobs(learning.make_jobs(args))
  print(f"\n{table(learning.run(args, jobs))}")


if __name__ == "__main__":
  main()
