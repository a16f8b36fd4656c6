"""Compares return against wall-clock time with Stable-Baselines3.

    pip install -e '.[benchmarks]'
    python -m benchmarks.race --config hopper --steps 300000 --out race.png

Three systems train one after the other, each in its own process: this project
with `train.py`, Stable-Baselines3 with the settings of the config, and
Stable-Baselines3 with its default settings. Each point of a curve is a mean
over whole training episodes. (The first full-length episodes of `cheetah` end
after 512,000 steps.) Seconds count from the start of training. They include
compilation, but not imports.
"""

import pathlib
import tempfile
from collections.abc import Mapping
from typing import NamedTuple

from agents.environments.workers import pool
from agents.reports import results
from benchmarks.common import command_line, machine, tables, training


class Curve(NamedTuple):
  """Learning curve of one system."""

  seconds: float  # Duration of training until the last point.
  points: list[dict[str, float]]  # The keys are "seconds" and "return".


def train(*args: str) -> Curve:
  """Trains with this project.

  Args:
    args: Arguments of `train.py`.
  """
  with tempfile.TemporaryDirectory() as logdir:
    machine.python(str(machine.REPOSITORY / "train.py"), *args, "--logdir", logdir)
    (folder,) = results.find([logdir])
    rows = results.read(folder).phase("train")
  return Curve(
    rows[-1]["seconds"] if rows else 0.0,
    [{"seconds": row["seconds"], "return": row["return_mean"]} for row in rows],
  )


def train_sb3(*args: str) -> Curve:
  """Trains with Stable-Baselines3.

  Args:
    args: Arguments of `benchmarks.peers.sb3`.
  """
  return Curve(**command_line.measure_in_child("benchmarks.peers.sb3", *args))


def table(curves: Mapping[str, Curve]) -> str:
  """Returns a table of final returns and durations.

  Args:
    curves: Learning curves by name of the system.
  """
  return tables.markdown(
    ["", "final return", "seconds"],
    [
      [name, f"{curve.points[-1]['return']:,.1f}" if curve.points else "-", f"{curve.seconds:,.1f}"]
      for name, curve in curves.items()
    ],
  )


def plot(curves: Mapping[str, Curve], title: str, path: pathlib.Path):
  """Plots return against wall-clock time.

  Args:
    curves: Learning curves by name of the system.
    title: Title of the plot.
    path: PNG file to write.
  """
  import matplotlib

  matplotlib.use("Agg")  # Needs no display.
  from matplotlib import pyplot

  figure, axes = pyplot.subplots(figsize=(8, 5.2), layout="constrained")
  for name, curve in curves.items():
    axes.plot(
      [point["seconds"] for point in curve.points],
      [point["return"] for point in curve.points],
      marker="o",
      markersize=3,
      label=name,
    )
  axes.set(
    title=title,
    xlabel="wall-clock time of training (seconds)",
    ylabel="return of training episodes",
  )
  axes.set_xlim(left=0)
  axes.grid(alpha=0.3)
  axes.legend(frameon=False)
  figure.savefig(path, dpi=150)
  pyplot.close(figure)


def main(argv: list[str] | None = None):
  """Runs the benchmark."""
  parser = command_line.make_parser(__doc__, config="hopper")
  parser.add_argument(
    "--steps", metavar="N", default="300000", help="environment steps of each system"
  )
  parser.add_argument("--seed", metavar="N", default="0", help="seed of each system")
  parser.add_argument("--out", metavar="PATH", default="race.png", help="plot to write")
  args = parser.parse_args(argv)
  machine.require("stable_baselines3")
  config = training.load_config(args.config, [f"steps={args.steps}"])
  if not config.algorithm.segment_length:
    raise SystemExit(
      f"{args.config} learns from whole episodes, but Stable-Baselines3's PPO learns from segments."
    )
  machine.warn_if_busy()
  options = ("--config", args.config, "--steps", str(config.steps), "--seed", args.seed)
  curves = {
    "Batch PPO": train(*options),
    "Stable-Baselines3, same settings": train_sb3(*options, "--matched"),
    "Stable-Baselines3, its defaults": train_sb3(*options),
  }
  print(f"\n{table(curves)}\n")
  plot(
    curves,
    f"{config.env.id} ({args.config}), {config.steps:,} steps, {pool.num_cores()} cores",
    pathlib.Path(args.out),
  )


if __name__ == "__main__":
  main()
