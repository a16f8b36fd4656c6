"""Compares how early different settings learn, with few steps and many seeds.

    python -m benchmarks.onset --config ant --variant algorithm.gae_lambda=0.9

Final returns of a few seeds can't separate settings, because the seeds of one
setting differ more than the settings. The onset of learning can: the number of
steps until the mean of the latest 20 training episodes reaches a goal. Runs
without onset rank behind all others, in the order of their latest means.

Each variant is compared with the config itself on the same seeds. The p-value
is that of a permutation test that exchanges the two runs of a seed. Runs use
one core each, and as many run at once as there are cores. If the command is
started again, it skips the runs in the CSV file.
"""

import argparse
import collections
import concurrent.futures
import itertools
import json
import math
import pathlib
import shlex
import statistics
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.stats

from agents import config as config_lib
from agents.environments.workers import pool as pool_lib
from benchmarks.common import command_line, scored_runs, tables, training

FIELDS = (
  *("config", "variant", "seed", "quantity", "goal", "steps"),
  *("onset", "latest", "seconds", "commit"),
)
_EPISODES = 20  # Latest training episodes whose mean must reach the goal.
# Quantity of an episode and its goal, by environment id.
GOALS = {
  "Ant-v5": ("return", 2500.0),
  "HalfCheetah-v5": ("return", 5000.0),
  "Hopper-v5": ("return", 2000.0),
  "Humanoid-v5": ("length", 500.0),
  "Walker2d-v5": ("return", 2500.0),
}


def measure(config: config_lib.Config, goal: tuple[str, float], steps: int) -> dict[str, Any]:
  """Trains until the goal is reached.

  Args:
    config: Configuration of the run.
    goal: "return" or "length", and the mean to reach.
    steps: Maximum number of steps.

  Returns:
    "onset", the number of steps or None, and "latest", the latest mean.
  """
  from agents.training import compile_cache
  from agents.training.monitoring import quiet_imports

  quantity, threshold = goal
  with compile_cache.compile_cache():
    with quiet_imports.quiet_imports():
      from agents import build  # noqa: F401
    with training.open_trainer(config, None) as trainer:
      trainer.start()
      latest: collections.deque[float] = collections.deque(maxlen=_EPISODES)
      step, mean = 0, -math.inf
      while step < steps:
        epoch = trainer.epoch(step / config.steps)
        step += epoch.steps
        latest.extend(
          episode.length if quantity == "length" else episode.score
          for episode in epoch.episodes
          if not episode.info.get("cut_short")
        )
        if len(latest) == _EPISODES:
          mean = statistics.fmean(latest)
          if mean >= threshold:
            return {"onset": step, "latest": mean}
  return {"onset": None, "latest": mean}


def lateness(row: dict[str, Any]) -> float:
  """Returns a number by which runs are ranked: the onset, if there is one.

  Args:
    row: Row of the CSV file.
  """
  if row["onset"]:
    return float(row["onset"])
  return float(row["steps"]) + float(row["goal"]) - float(row["latest"])


def p_value(runs: Sequence[float], others: Sequence[float]) -> float:
  """Returns the p-value for the difference between two settings.

  Args:
    runs: Lateness of the runs of one setting.
    others: Lateness of the runs of the other setting, with the same seeds.
  """
  ranks = scipy.stats.rankdata([*runs, *others])
  differences = ranks[: len(runs)] - ranks[len(runs) :]
  return float(
    scipy.stats.permutation_test(
      [differences], np.mean, permutation_type="samples", n_resamples=100_000, rng=0
    ).pvalue
  )


def table(rows: dict[str, list[dict[str, Any]]]) -> str:
  """Returns a table with a line for each setting.

  Args:
    rows: Rows of the CSV file by setting, in the same order of seeds. The first
      setting is compared with the others.
  """
  lines: list[list[str]] = []
  base = [lateness(row) for row in next(iter(rows.values()))]
  for name, group in rows.items():
    own = [lateness(row) for row in group]
    onsets = [float(row["onset"] or math.inf) for row in group]
    median = statistics.median_high(onsets)
    lines.append(
      [
        name or "(config)",
        str(len(group)),
        str(sum(map(math.isfinite, onsets))),
        f"{median:,.0f}" if math.isfinite(median) else "none",
        f"{statistics.fmean(float(row['latest']) for row in group):.4g}",
        f"{scipy.stats.rankdata([*own, *base])[: len(own)].mean():.1f}",
        f"{p_value(own, base):.3f}" if lines else "",
      ]
    )
  header = ["settings", "seeds", "with onset", "median onset", "latest mean", "mean rank", "p"]
  return tables.markdown(header, lines)


def _run(args: argparse.Namespace, variant: str, seed: int, goal: tuple[str, float]) -> dict:
  """Measures one run in a child process; returns its row."""
  commit, start = scored_runs.commit(), time.monotonic()
  arguments = json.dumps([args.config, shlex.split(variant), seed, goal, args.steps])
  result = command_line.measure_in_child("benchmarks.onset", "--measure", arguments)
  return {
    "config": pathlib.Path(args.config).stem,
    "variant": variant,
    "seed": seed,
    "quantity": goal[0],
    "goal": goal[1],
    "steps": args.steps,
    "onset": result["onset"] or "",
    "latest": f"{result['latest']:.1f}",
    "seconds": round(time.monotonic() - start),
    "commit": commit,
  }


def main(argv: list[str] | None = None):
  """Runs the benchmark."""
  parser = command_line.make_parser(__doc__, config="humanoid", seeds="200-207")
  parser.add_argument(
    "--variant",
    metavar="'KEY=VALUE ...'",
    action="append",
    default=[],
    help="settings to compare with the config; repeat the option for more variants",
  )
  parser.add_argument("--steps", type=lambda text: int(float(text)), default=600_000)
  parser.add_argument("--goal", type=float, help="mean return of episodes; None: see GOALS")
  parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("onset.csv"))
  parser.add_argument("--measure", help=argparse.SUPPRESS)
  args = parser.parse_args(argv)
  if args.measure:
    name, settings, seed, goal, steps = json.loads(args.measure)
    config = training.load_config(name, settings)
    config = config.override({"seed": seed, "env_processes": False})
    print(json.dumps(measure(config, goal, steps)))
    return
  variants = ["", *args.variant]
  env_id = training.load_config(args.config).env.id
  for variant in variants:  # Reports mistakes before the first run.
    training.load_config(args.config, shlex.split(variant))
  goal = ("return", args.goal) if args.goal is not None else GOALS.get(env_id)
  if not goal:
    raise SystemExit(f"{env_id} has no goal: give a mean return as --goal.")
  fixed = {
    "config": pathlib.Path(args.config).stem,
    "quantity": goal[0],
    "goal": str(goal[1]),
    "steps": str(args.steps),
  }
  done = {
    (row["variant"], int(row["seed"])): row
    for row in scored_runs.read(args.out)
    if all(row[name] == value for name, value in fixed.items())
  }
  seeds = scored_runs.parse_seeds(args.seeds)
  if len(seeds) < 2:
    raise SystemExit("A comparison needs at least two --seeds.")
  jobs = [job for job in itertools.product(variants, seeds) if job not in done]
  cores, threads = pool_lib.num_cores(), itertools.count()
  with concurrent.futures.ThreadPoolExecutor(
    cores, initializer=lambda: scored_runs.pin_thread(next(threads), cores)
  ) as pool:
    futures = [pool.submit(_run, args, *job, goal) for job in jobs]
    try:
      for future in concurrent.futures.as_completed(futures):
        row = future.result()
        scored_runs.append(args.out, row, FIELDS)
        done[row["variant"], row["seed"]] = row
        print(json.dumps(row), flush=True)
    except BaseException:
      pool.shutdown(wait=False, cancel_futures=True)
      raise
  print("\n" + table({variant: [done[variant, seed] for seed in seeds] for variant in variants}))


if __name__ == "__main__":
  main()
