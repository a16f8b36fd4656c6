"""Measure how a policy withstands disturbances of its MuJoCo robot.

The policy plays episodes with pushes, delayed actions, less friction, a
payload, weaker motors and noisy sensors. A control group plays episodes with
the same seeds without disturbances. The command writes survival and return with
95 % intervals to one HTML file, with films of the first falls.

examples:
  %(prog)s ~/logdir --out ~/stress.html
  %(prog)s debug --disturbances push,noise --num-episodes 50
"""

import argparse
import functools
import pathlib
from typing import Any

from agents import config as config_lib
from agents.commands import parsing
from agents.stress import disturbances
from agents.training.run_folder import atomic_write
from agents.zoo import entries

# Functions import Gymnasium and TensorFlow, because `--help` needs neither.


def main(argv: list[str] | None = None) -> int:
  """Runs the command `stress`.

  Args:
    argv: Command-line arguments; None takes the arguments of the process.

  Returns:
    Exit code of the process.
  """
  parser = parsing.make_parser("stress", __doc__)
  option = functools.partial(parsing.option, parser)
  option(
    "run RUN",
    "run folder, folder of runs, whose newest run with a checkpoint is used, or name of a policy "
    "of the zoo",
  )
  option(
    "--checkpoint NAME",
    "file name or step of a checkpoint, or `best` for the policy with the best evaluation "
    "(default: the newest checkpoint)",
  )
  option(
    "--disturbances NAME,...",
    f"disturbances to test (default: {','.join(disturbances.DISTURBANCES)})",
  )
  option(
    "--num-episodes N",
    "number of episodes of the control group and of each level (default: 20)",
    type=int,
    default=20,
  )
  option(
    "--out FILE.html",
    "HTML file to write (default: stress.html)",
    type=pathlib.Path,
    default=pathlib.Path("stress.html"),
  )
  option("--no-films", "do not film the first falls")
  parsing.add_code(parser)
  parsing.add_json(parser, "the path of the page, the estimates and the first falls")
  with parsing.parsed(parser, argv) as args:
    args.result = _stress(args)
  return 0


def _stress(args: argparse.Namespace) -> dict[str, Any]:
  """Plays all episodes and writes the page; returns the result."""
  names = disturbances.select(args.disturbances)
  # Environments can change the current folder.
  out = args.out.expanduser().absolute()
  if args.num_episodes < 2:
    raise config_lib.ConfigError("--num-episodes must be at least 2, for intervals.")
  if out.suffix != ".html":
    raise config_lib.ConfigError(f"--out must end in .html. Received: {args.out}.")
  if not out.parent.is_dir():
    raise config_lib.ConfigError(f"--out {args.out}: there is no folder {out.parent}.")
  from agents.environments.making import make
  from agents.stress import environments
  from agents.training.monitoring import quiet_imports
  from agents.training.run_folder import checkpoint, run_folder

  folder = run_folder.find(entries.expand(args.run), args.code)
  make.check(folder.config.env)
  environments.check(environments.undisturbed(folder.config.env), names)
  path = checkpoint.find(folder.checkpoints, args.checkpoint)
  with quiet_imports.quiet_imports():
    from agents import build
    from agents.stress import page, report

    build.setup(folder.config.override({"device": "cpu"}))
  written = report.make(folder, path, names, args.num_episodes, not args.no_films)
  with atomic_write.open_file(out) as file:
    file.write(page.page(written).encode())
  print(f"Written: {out}")
  return {
    "page": out,
    "control": {"survival": written.control.survival, "score": written.control.score},
    "disturbances": written.levels,
    "falls": {
      name: {"level": fall.level, "seed": fall.episode.seed, "length": fall.episode.length}
      for name, fall in written.falls.items()
    },
    "films": list(written.films),
  }
