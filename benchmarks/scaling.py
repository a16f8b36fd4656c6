"""How training speed and memory follow environments, workers and networks.

    pip install -e '.[benchmarks]'
    python -m benchmarks.scaling --config cheetah --out scaling

Writes a picture, a Markdown file and a JSON file, and recommends workers,
TensorFlow threads and double buffering for this machine. Points take turns,
each time in a process of their own; imports and compilation are not counted.
Where the number of environments changes, segments do too, so that an update
learns from about as many steps. `--quick` measures fewer points.
"""

from __future__ import annotations

import argparse
import json
import pathlib
from collections.abc import Callable
from collections.abc import Iterable

import tqdm

from agents import configs
from agents.environments.workers import pool
from benchmarks import scaling_report
from benchmarks.common import machine
from benchmarks.common import plots
from benchmarks import scaling_points
from benchmarks import speed as speed_lib

PARTS = ("envs", "workers", "width", "minibatch", "memory", "advice")


def main(argv: list[str] | None = None):
  args = _parser().parse_args(argv)
  machine.warn_if_busy()
  _, config = configs.load(args.config)
  cores = pool.cores()
  sweeps = {name: points for name, points in scaling_points.sweeps(
      config, cores, args.quick).items() if name in args.only}
  pairs = scaling_points.memory(config, cores) if "memory" in args.only else {}
  choices = others = []
  if "advice" in args.only:
    choices = scaling_points.combinations(config, cores)
    others = scaling_points.other_envs(config, cores)

  def measure(point: scaling_points.Point) -> speed_lib.Speed:
    output = machine.python(
        "-m", "benchmarks.speed", "--config", args.config, "--seconds",
        str(args.seconds), *point.args, variables=point.variables)
    return speed_lib.Speed(**json.loads(output.splitlines()[-1]))

  results = take_turns([
      *(point for points in sweeps.values() for point in points.values()),
      *(point for pair in pairs.values() for point in pair),
      *choices, *others], measure, args.repeats)
  own = scaling_points.own_values(config, cores)
  data = {
      "config": args.config, "cores": cores, "repeats": args.repeats,
      "panels": {name: {"own": own[name],
                        "points": scaling_report.panel(points, results)}
                 for name, points in sweeps.items()},
      "memory": scaling_report.added_memory(pairs, results),
      "advice": scaling_report.recommendation(choices, others, results)}
  _write(data, args.out)


def take_turns(points: Iterable[scaling_points.Point],
               measure: Callable[[scaling_points.Point], speed_lib.Speed],
               repeats: int) -> scaling_report.Results:
  """Measure all points once, then again; so noise falls on all alike.

  What fails, such as for lack of memory, is told and left out.
  """
  results: scaling_report.Results = {point: [] for point in points}
  with tqdm.tqdm(total=repeats * len(results), unit="point") as progress:
    for _ in range(repeats):
      for point in list(results):
        try:
          results[point].append(measure(point))
          progress.update()
        except machine.Failed as error:
          progress.write(f"Left out: {error}")
          progress.total -= repeats - len(results.pop(point))
  return results


def _write(data: dict, out: str):
  """Print the report and write all files."""
  text = scaling_report.report(data)
  print(f"\n{text}")
  stem = pathlib.Path(out)
  written = [stem.with_name(stem.name + ending)
             for ending in (".md", ".json", ".png")]
  written[0].write_text(text)
  written[1].write_text(json.dumps(data, indent=2) + "\n")
  if data["panels"]:
    plots.scaling(data, written[2])
  else:
    written.pop()
  print(f"Written: {', '.join(map(str, written))}")


def _parts(text: str) -> list[str]:
  """Parse what `--only` names."""
  names = text.split(",")
  if unknown := [name for name in names if name not in PARTS]:
    raise argparse.ArgumentTypeError(
        f"there is no {', '.join(unknown)}; there are {', '.join(PARTS)}")
  return names


def _parser() -> argparse.ArgumentParser:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--config", metavar="NAME", default="cheetah",
                      help="name or .py file of a config (default: cheetah)")
  parser.add_argument("--seconds", type=float, default=3.0,
                      help="how long to measure a point (default: 3)")
  parser.add_argument("--repeats", type=int, default=3,
                      help="rounds through all points (default: 3)")
  parser.add_argument("--only", metavar="PARTS", type=_parts, default=PARTS,
                      help=f"some of {','.join(PARTS)} (default: all)")
  parser.add_argument("--quick", action="store_true", help="fewer points")
  parser.add_argument("--out", metavar="PATH", default="scaling",
                      help="files to write, without ending (default: scaling)")
  return parser


if __name__ == "__main__":
  main()
