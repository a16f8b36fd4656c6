"""Compares return against wall-clock time with Stable-Baselines3.

    pip install -e '.[benchmarks]'
    python -m benchmarks.race --config hopper --steps 300000 --out race.png

This project trains by `train.py`, Stable-Baselines3 with the settings of the
config and with its own defaults; one after the other, each in a process of its
own. Points are means over whole training episodes. (The 512 environments of
`cheetah` end their first episodes after 513,000 steps.) Seconds count from the
start of training; they include compilation, but no imports. Writes a plot, and
a CSV file of the points beside it.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import pathlib
import tempfile
from typing import NamedTuple

from agents.environments.workers import pool
from benchmarks.common import machine
from benchmarks.common import plots
from benchmarks.common import tables
from benchmarks.common import training

CAPTION = (
    "Seconds from the start of training, with compilation, without imports; "
    "those of Batch PPO include evaluations and checkpoints. Return: mean over "
    "the training episodes (sampled actions) that ended since the last point. "
    "{steps:,} steps each, seed {seed}, {cores} cores.")


class Curve(NamedTuple):
  """Learning curve of one system."""

  seconds: float  # Duration of training.
  points: list[dict[str, float]]  # "step", "seconds", "episodes", "return".


def train(*args: str) -> Curve:
  """Train by this project.

  Args:
    args: Arguments of `train.py`.
  """
  with tempfile.TemporaryDirectory() as logdir:
    machine.python(str(machine.REPOSITORY / "train.py"), *args, "--logdir",
                   logdir)
    metrics, = pathlib.Path(logdir).glob("*/metrics.jsonl")
    return from_metrics(metrics.read_text())


def train_sb3(*args: str) -> Curve:
  """Train by Stable-Baselines3.

  Args:
    args: Arguments of `benchmarks.peers.sb3`.
  """
  output = machine.python("-m", "benchmarks.peers.sb3", *args)
  return Curve(**json.loads(output.splitlines()[-1]))


def from_metrics(text: str) -> Curve:
  """Return the learning curve in the text of a `metrics.jsonl`."""
  rows = [row for row in map(json.loads, text.splitlines())
          if row["phase"] == "train"]
  return Curve(rows[-1]["seconds"], [
      {"step": row["step"], "seconds": row["seconds"],
       "episodes": row["episodes"], "return": row["return_mean"]}
      for row in rows if row["episodes"]])


def goals(curves: dict[str, Curve], count: int = 4) -> list[float]:
  """Return round numbers that at least two curves reach, in rising order.

  They lie between the lowest first return of all curves and the second highest
  best return.

  Args:
    curves: Learning curves by name of the system.
    count: Maximum number of goals.
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
  unit = 10.0 ** math.floor(math.log10((high - low) / count))
  return sorted({
      unit * math.floor((low + (high - low) * number / count) / unit)
      for number in range(1, count + 1)})


def seconds_to(curve: Curve, goal: float) -> float | None:
  """Return the seconds until a curve reaches a return; None if it does not.
  """
  return next((point["seconds"] for point in curve.points
               if point["return"] >= goal), None)


def table(curves: dict[str, Curve]) -> str:
  """Return a table of final returns, and of the times to reach some returns.
  """
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
  """Write all points to a CSV file."""
  fields = ["system", "step", "seconds", "episodes", "return"]
  with open(path, "w", newline="") as file:
    writer = csv.DictWriter(file, fields)
    writer.writeheader()
    for system, curve in curves.items():
      writer.writerows({"system": system, **point} for point in curve.points)


def main(argv: list[str] | None = None):
  args = _parser().parse_args(argv)
  machine.require("stable_baselines3")
  config = training.load_config(
      args.config, [f"steps={args.steps}", f"seed={args.seed}"])
  if not config.algorithm.segment_length:
    raise SystemExit(f"{args.config} learns from whole episodes, but "
                     "Stable-Baselines3's PPO learns from segments.")
  machine.warn_if_busy()
  task = ("--config", args.config, "--steps", str(config.steps), "--seed",
          str(config.seed))
  systems = {
      "Batch PPO": lambda: train(*task),
      "Stable-Baselines3, same settings": lambda: train_sb3(*task, "--matched"),
      "Stable-Baselines3, its defaults": lambda: train_sb3(*task)}
  curves = {}
  for system, function in systems.items():
    print(f"Training: {system} ...", flush=True)
    curves[system] = function()
  print(f"\n{table(curves)}\n")
  out = pathlib.Path(args.out)
  write_csv(curves, out.with_suffix(".csv"))
  caption = CAPTION.format(
      steps=config.steps, seed=config.seed, cores=pool.cores())
  plots.plot_race({name: curve.points for name, curve in curves.items()},
                  f"{config.env.id} ({args.config})", caption, out)
  print(f"Written: {out}, {out.with_suffix('.csv')}")


def _parser() -> argparse.ArgumentParser:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--config", metavar="NAME", default="hopper",
                      help="name or .py file of a config (default: hopper)")
  parser.add_argument("--steps", metavar="N", default="300000",
                      help="budget of each (default: 300000)")
  parser.add_argument("--seed", metavar="N", default="0",
                      help="seed of each (default: 0)")
  parser.add_argument("--out", metavar="PATH", default="race.png",
                      help="plot to write (default: race.png)")
  return parser


if __name__ == "__main__":
  main()
