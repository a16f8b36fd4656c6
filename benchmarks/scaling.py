"""Measures how environments, workers and threads affect speed and memory.

    python -m benchmarks.scaling --config cheetah --out scaling.md

Writes a Markdown file, and recommends a number of workers and of TensorFlow
threads for this machine. A point is a combination of settings. All points are
measured alternately, each in its own process. Imports and compilation do not
count. Points with other numbers of environments have other segment lengths, so
that every update learns from about as many steps as with the config.
"""

import pathlib
from collections.abc import Callable, Iterable

import tqdm

from agents.environments.workers import pool
from benchmarks import scaling_report, scaling_settings, speed
from benchmarks.common import command_line, machine, training


def measure_alternately(
  points: Iterable[scaling_settings.Point],
  measure: Callable[[scaling_settings.Point], speed.Speed],
  repeats: int,
) -> scaling_report.Results:
  """Measures all points once per round, so that noise affects all points.

  Args:
    points: Points to measure; equal points are measured once.
    measure: Function that measures a point.
    repeats: Number of rounds.

  Returns:
    Measurements of all points. A point that fails, for example because of
    missing memory, is printed and left out.
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
  """Runs the benchmark."""
  parser = command_line.make_parser(__doc__, config="cheetah")
  parser.add_argument("--seconds", type=float, default=3.0, help="duration of a measurement")
  parser.add_argument("--repeats", type=int, default=3, help="number of rounds through all points")
  parser.add_argument(
    "--only", choices=("envs", "advice"), help="measure only one part; both by default"
  )
  parser.add_argument("--out", metavar="PATH", default="scaling.md", help="Markdown file to write")
  args = parser.parse_args(argv)
  machine.warn_if_busy()
  config, cores = training.load_config(args.config), pool.num_cores()
  environments = {} if args.only == "advice" else scaling_settings.environments(config, cores)
  choices = [] if args.only == "envs" else scaling_settings.combinations(config, cores)

  def measure(point: scaling_settings.Point) -> speed.Speed:
    return speed.Speed(
      **command_line.measure_in_child(
        "benchmarks.speed",
        "--config",
        args.config,
        "--seconds",
        str(args.seconds),
        *point.args,
        **point.variables,
      )
    )

  results = measure_alternately([*environments.values(), *choices], measure, args.repeats)
  report = scaling_report.report(args.config, cores, environments, choices, results)
  print(f"\n{report}")
  pathlib.Path(args.out).write_text(report)


if __name__ == "__main__":
  main()
