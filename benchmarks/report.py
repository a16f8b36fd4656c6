"""Measures the duration of the command `report` on many runs.

    python -m benchmarks.report ~/logdir/20260101T000000-cheetah

The runs are copies of a finished run in groups of ten, which differ in seed,
learning rate and scores.
"""

import json
import pathlib
import random
import resource
import tempfile
import time

from agents import config as config_lib
from benchmarks.common import command_line, machine


def copy(run: pathlib.Path, number: int, to: pathlib.Path):
  """Writes the files that a report reads, with other settings and scores.

  Args:
    run: Run folder to copy.
    number: Number of the copy. Ten successive copies form a group.
    to: Run folder to write.
  """
  group, seed = divmod(number, 10)
  config = config_lib.load((run / "config.yaml").read_text(), str(run))
  rate = config.algorithm.learning_rate * (1 + group / 10)
  factor = random.Random(number).gauss(1.0, 0.1)
  rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
  for row in rows:
    if row["return_mean"] is not None:
      row["return_mean"] *= factor
  to.mkdir()
  changes = {"seed": seed, "algorithm.learning_rate": rate}
  (to / "config.yaml").write_text(config_lib.dump(config.override(changes)))
  (to / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def main(argv: list[str] | None = None):
  """Runs the benchmark."""
  parser = command_line.make_parser(__doc__)
  parser.add_argument("run", type=pathlib.Path, help="run folder to copy")
  parser.add_argument("--runs", type=int, default=200, help="number of copies")
  args = parser.parse_args(argv)
  machine.warn_if_busy()
  with tempfile.TemporaryDirectory() as folder:
    logdir = pathlib.Path(folder) / "logdir"
    logdir.mkdir()
    for number in range(args.runs):
      copy(args.run.expanduser(), number, logdir / f"{number}-copy")
    out = pathlib.Path(folder) / "report.html"
    start = time.time()
    machine.python("-m", "agents", "report", str(logdir), "--out", str(out))
    seconds = time.time() - start
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    lines = len((args.run.expanduser() / "metrics.jsonl").read_text().splitlines())
    print(
      f"{args.runs} runs with {lines} lines of metrics: {seconds:.1f} s, "
      f"{usage.ru_utime + usage.ru_stime:.1f} s of CPU time, "
      f"page of {out.stat().st_size / 1e6:.1f} MB."
    )


if __name__ == "__main__":
  main()
