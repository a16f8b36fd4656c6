"""Return against wall-clock time, beside Stable-Baselines3.

    pip install -e '.[benchmarks]'
    python -m benchmarks.race --config hopper --steps 300000 --out race.png

This project trains as `train.py` does it, Stable-Baselines3 with the settings
of the config and with its own defaults; one after the other, each in a process
of its own. Points are whole episodes of training, of which HalfCheetah's 512
environments end the first ones after 513,000 steps. Seconds count from the
beginning of training: compilation is in them, imports aren't. Writes a picture
and, beside it, the points as CSV.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import pathlib
import tempfile
from typing import NamedTuple

from agents import configs
from agents.environments.workers import pool
from benchmarks.common import machine
from benchmarks.common import plots
from benchmarks.common import tables

TRAIN = pathlib.Path(__file__).parent.parent / "train.py"
CAPTION = (
    "Seconds from the beginning of training: compilation included, imports "
    "not; those of Batch PPO also include its evaluations and checkpoints. "
    "Return: mean over the training episodes (sampled actions) that ended "
    "since the last point. {steps:,} steps each, seed {seed}, {cores} cores.")


class Curve(NamedTuple):
  """How one system learned."""

  seconds: float  # Of all training.
  points: list[dict[str, float]]  # "step", "seconds", "episodes", "return".


def main(argv: list[str] | None = None):
  args = _parser().parse_args(argv)
  machine.require("stable_baselines3")
  name, config = configs.load(args.config)
  config = config.override({"steps": args.steps, "seed": args.seed})
  if not config.algorithm.segment_length:
    raise SystemExit(f"{name} learns from whole episodes, which "
                     "Stable-Baselines3's PPO can't.")
  machine.warn_if_busy()
  task = ("--config", args.config, "--steps", str(config.steps), "--seed",
          str(config.seed))
  systems = {
      "Batch PPO": lambda: ours(*task),
      "Stable-Baselines3, same settings": lambda: sb3(*task, "--matched"),
      "Stable-Baselines3, its defaults": lambda: sb3(*task)}
  curves = {}
  for system, train in systems.items():
    print(f"Training: {system} ...", flush=True)
    curves[system] = train()
  print(f"\n{table(curves)}\n")
  out = pathlib.Path(args.out)
  write_csv(curves, out.with_suffix(".csv"))
  caption = CAPTION.format(
      steps=config.steps, seed=config.seed, cores=pool.cores())
  plots.race({name: curve.points for name, curve in curves.items()},
                f"{config.env.id} ({name})", caption, out)
  print(f"Written: {out}, {out.with_suffix('.csv')}")


def ours(*args: str) -> Curve:
  """Train by this project, as users do."""
  with tempfile.TemporaryDirectory() as logdir:
    machine.python(str(TRAIN), *args, "--logdir", logdir)
    metrics, = pathlib.Path(logdir).glob("*/metrics.jsonl")
    return from_metrics(metrics.read_text())


def sb3(*args: str) -> Curve:
  """Train by Stable-Baselines3."""
  output = machine.python("-m", "benchmarks.peers.sb3", *args)
  return Curve(**json.loads(output.splitlines()[-1]))


def from_metrics(text: str) -> Curve:
  """Return what a `metrics.jsonl` holds of training."""
  rows = [row for row in map(json.loads, text.splitlines())
          if row["phase"] == "train"]
  return Curve(rows[-1]["seconds"], [
      {"step": row["step"], "seconds": row["seconds"],
       "episodes": row["episodes"], "return": row["return_mean"]}
      for row in rows if row["episodes"]])


def goals(curves: dict[str, Curve], amount: int = 4) -> list[float]:
  """Return round returns that two curves reach at least, in rising order.

  They lie between where all curves begin and what the second best reaches.
  """
  returns = [[point["return"] for point in curve.points]
             for curve in curves.values()]
  returns = [values for values in returns if values]
  if len(returns) < 2:
    return []
  low = max(values[0] for values in returns)
  high = sorted(max(values) for values in returns)[-2]
  if high <= low:
    return []
  unit = 10.0 ** math.floor(math.log10((high - low) / amount))
  return sorted({
      unit * math.floor((low + (high - low) * number / amount) / unit)
      for number in range(1, amount + 1)})


def seconds_to(curve: Curve, goal: float) -> float | None:
  """Return when a curve first reaches a return."""
  return next((point["seconds"] for point in curve.points
               if point["return"] >= goal), None)


def table(curves: dict[str, Curve]) -> str:
  """Return final returns and times, those to reach some returns among them."""
  reached = goals(curves)
  def seconds(value):
    return "-" if value is None else f"{value:,.1f} s"
  rows = []
  for name, curve in curves.items():
    last = f"{curve.points[-1]['return']:,.1f}" if curve.points else "-"
    rows.append([name, last, seconds(curve.seconds), *(
        seconds(seconds_to(curve, goal)) for goal in reached)])
  return tables.markdown(
      ["", "final return", "total", *(f"to {x:,.6g}" for x in reached)], rows)


def write_csv(curves: dict[str, Curve], path: pathlib.Path):
  """Write all points, one a line."""
  fields = ["system", "step", "seconds", "episodes", "return"]
  with open(path, "w", newline="") as file:
    writer = csv.DictWriter(file, fields)
    writer.writeheader()
    for system, curve in curves.items():
      writer.writerows({"system": system, **point} for point in curve.points)


def _parser() -> argparse.ArgumentParser:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--config", metavar="NAME", default="hopper",
                      help="name or .py file of a config (default: hopper)")
  parser.add_argument("--steps", metavar="N", default="300000",
                      help="budget of each (default: 300000)")
  parser.add_argument("--seed", metavar="N", default="0",
                      help="seed of each (default: 0)")
  parser.add_argument("--out", metavar="PATH", default="race.png",
                      help="picture to write (default: race.png)")
  return parser


if __name__ == "__main__":
  main()
