"""Measures how environments, workers and networks affect speed and memory.

    pip install -e '.[benchmarks]'
    python -m benchmarks.scaling --config cheetah --out scaling

Writes a plot, a Markdown file and a JSON file, and recommends numbers of
workers and of TensorFlow threads for this machine. All points are measured
alternately, each in a process of its own. Imports and compilation do not count.
Where the number of environments changes, the segment length changes too, so
that an update learns from about as many steps. `--quick` measures fewer points.
"""

from __future__ import annotations

import argparse
import json
import pathlib
from collections.abc import Callable
from collections.abc import Iterable

import tqdm

from agents.environments.workers import pool
from benchmarks import scaling_points
from benchmarks import scaling_report
from benchmarks import speed
from benchmarks.common import machine
from benchmarks.common import plots
from benchmarks.common import training

PARTS = ("envs", "workers", "width", "minibatch", "memory", "advice")


def measure_alternately(
    points: Iterable[scaling_points.Point],
    measure: Callable[[scaling_points.Point], speed.Speed], repeats: int
) -> scaling_report.Results:
  """Measure all points once, then all again, so that noise affects all alike.

  Args:
    points: Points to measure; equal points are measured once.
    measure: Function that measures a point.
    repeats: Number of rounds.
  Returns:
    Measurements of all points. A point that fails, such as for lack of memory,
    is printed and left out.
  """
  results: scaling_report.Results = {point: [] for point in points}
  with tqdm.tqdm(total=repeats * len(results), unit="point") as progress:
    for _ in range(repeats):
      for point in list(results):
        try:
          results[point].append(measure(point))
          progress.update()
        except machine.ProcessFailed as error:
          progress.write(f"Left out: {error}")
          progress.total -= repeats - len(results.pop(point))
  return results


def main(argv: list[str] | None = None):
  args = _parser().parse_args(argv)
  machine.warn_if_busy()
  config = training.load_config(args.config)
  cores = pool.cores()
  sweeps = {name: points for name, points in scaling_points.sweeps(
      config, cores, args.quick).items() if name in args.only}
  pairs = (scaling_points.memory(config, cores) if "memory" in args.only
           else {})
  choices = (scaling_points.combinations(config, cores)
             if "advice" in args.only else [])

  def measure(point: scaling_points.Point) -> speed.Speed:
    output = machine.python(
        "-m", "benchmarks.speed", "--config", args.config, "--seconds",
        str(args.seconds), *point.args, variables=point.variables)
    return speed.Speed(**json.loads(output.splitlines()[-1]))

  results = measure_alternately(
      [*(point for points in sweeps.values() for point in points.values()),
       *(point for pair in pairs.values() for point in pair), *choices],
      measure, args.repeats)
  memory = scaling_report.memory_per_env(pairs, results)
  report = scaling_report.report(
      args.config, cores, sweeps, choices, memory, results)
  print(f"\n{report}")
  pathlib.Path(f"{args.out}.md").write_text(report)
  pathlib.Path(f"{args.out}.json").write_text(
      json.dumps(scaling_report.rows(results), indent=2) + "\n")
  if sweeps:
    plots.plot_scaling(
        {scaling_report.LABELS[name]: {
            x: scaling_report.speeds(results[point])
            for x, point in points.items() if point in results}
         for name, points in sweeps.items()},
        f"{args.config} on {cores} cores", pathlib.Path(f"{args.out}.png"))
  print(f"Written: {args.out}.md, {args.out}.json"
        + (f", {args.out}.png" if sweeps else ""))


def _parts(text: str) -> list[str]:
  """Parse the value of `--only`."""
  names = text.split(",")
  if unknown := [name for name in names if name not in PARTS]:
    raise argparse.ArgumentTypeError(
        f"unknown: {', '.join(unknown)}; choose from {', '.join(PARTS)}")
  return names


def _parser() -> argparse.ArgumentParser:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--config", metavar="NAME", default="cheetah",
                      help="name or .py file of a config (default: cheetah)")
  parser.add_argument("--seconds", type=float, default=3.0,
                      help="duration of a measurement (default: 3)")
  parser.add_argument("--repeats", type=int, default=3,
                      help="rounds through all points (default: 3)")
  parser.add_argument("--only", metavar="PARTS", type=_parts, default=PARTS,
                      help=f"some of {','.join(PARTS)} (default: all)")
  parser.add_argument("--quick", action="store_true",
                      help="measure fewer points")
  parser.add_argument("--out", metavar="PATH", default="scaling",
                      help="files to write, without ending (default: scaling)")
  return parser


if __name__ == "__main__":
  main()
