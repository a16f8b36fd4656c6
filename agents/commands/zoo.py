"""List, film and verify the trained policies that come with the package.

examples:
  %(prog)s
  %(prog)s play cheetah
  %(prog)s verify cheetah
  %(prog)s add ~/logdir/20260101T120000-cheetah
"""

import argparse
import contextlib
import functools
import itertools
import pathlib
import tempfile
from collections.abc import Callable
from typing import Any

from agents import config as config_lib
from agents.commands import parsing
from agents.zoo import entries

# Functions import Gymnasium and TensorFlow, because `list` needs neither.

_FILM_SECONDS = 8.0
_FILM_PIXELS = 200


def main(argv: list[str] | None = None) -> int:
  """Runs the command `zoo`.

  Args:
    argv: Command-line arguments; None takes the arguments of the process.

  Returns:
    Exit code of the process.
  """
  with parsing.parsed(_parser(), argv) as args:
    return args.run_action(args)


def _parser() -> argparse.ArgumentParser:
  parser = parsing.make_parser("zoo", __doc__)
  parser.set_defaults(run_action=_list)
  parsing.add_json(parser, "all entries")
  actions = parser.add_subparsers(title="actions", metavar="ACTION")

  def action(
    name: str, function: Callable[[argparse.Namespace], int], text: str, result: str
  ) -> Any:
    added = actions.add_parser(name, help=text, description=text, allow_abbrev=False)
    added.set_defaults(run_action=function)
    # Without the default, --json may also precede the action.
    parsing.add_json(added, result, default=argparse.SUPPRESS)
    return functools.partial(parsing.option, added)

  action("list", _list, "print a table of all policies (default)", "all entries")
  play = action(
    "play", _play, "film an episode, with NumPy instead of TensorFlow", "file and return"
  )
  play("entry NAME", "name of a policy, or path of an entry, such as ./cheetah")
  play("--out FILE.mp4", "film to write (default: NAME.mp4)", type=pathlib.Path)
  play(
    "--seconds N",
    f"maximum duration of the film (default: {_FILM_SECONDS:g})",
    type=float,
    default=_FILM_SECONDS,
  )
  play(
    "--size PIXELS",
    f"height of the frames (default: {_FILM_PIXELS})",
    type=int,
    default=_FILM_PIXELS,
  )
  text = "train a policy again, and compare it with the zoo"
  verify = action("verify", _verify, text, "the verdict")
  verify("entry NAME", "name of a policy, or path of an entry")
  verify("--logdir DIR", "folder that keeps the run (default: the run is deleted)")
  text = "make an entry from a finished run of a named config"
  add = action("add", _add, text, "folder and entry")
  add("run RUN_DIR", "run folder; in a folder of runs, the newest run with a checkpoint is used")
  add("name NAME", "name of the config (default: from the name of the run folder)", nargs="?")
  add("--out DIR", "new folder of the entry (default: NAME in the zoo)", type=pathlib.Path)
  add(
    "--scores S,S,...",
    "final scores of runs with different seeds (default: EXPECTED of the config)",
    default="",
  )
  return parser


def _list(args: argparse.Namespace) -> int:
  rows = [("config", "task", "steps", "score", "minutes", "size")]
  args.result = {}
  for name in entries.names():
    path = entries.root() / name
    args.result[name] = entry = entries.read(path)
    rows.append(
      (
        name,
        entry.task,
        f"{entry.steps:,}",
        f"{entry.score:.4g} ± {entry.score_std:.2g}",
        f"{entry.minutes:g}",
        f"{entries.num_bytes(path) / 1000:.0f} KB",
      )
    )
  widths = [max(map(len, column)) for column in itertools.zip_longest(*rows)]
  for row in rows:
    print("  ".join(map(str.ljust, row, widths)).rstrip())
  print("\nScore: mean and standard deviation of the returns of 100 episodes with the mean action.")
  return 0


def _play(args: argparse.Namespace) -> int:
  path = entries.find(args.entry)
  parsing.check_counts(args, "size", "seconds")
  out = (args.out or pathlib.Path(f"{path.name}.mp4")).expanduser().absolute()
  if out.suffix != ".mp4":
    raise config_lib.ConfigError(f"--out must end in .mp4. Received: {args.out}.")
  if not out.parent.is_dir():
    raise config_lib.ConfigError(f"--out {args.out}: there is no folder {out.parent}.")
  from agents.zoo import film

  played = film.record(path, out, args.size, args.seconds)
  args.result = {"file": out, **played._asdict()}
  print(
    f"{out}: the first {played.seconds:.1f} seconds of an episode with return "
    f"{played.score:.1f} in {played.length} steps"
  )
  return 0


def _verify(args: argparse.Namespace) -> int:
  path = entries.find(args.entry)
  entry = entries.read(path)
  from agents import training_run
  from agents.training.run_folder import run_folder
  from agents.zoo import verify

  with contextlib.ExitStack() as stack:
    logdir = args.logdir or stack.enter_context(tempfile.TemporaryDirectory())
    print(f"Trains again: {entry.command} ({entry.minutes:g} minutes for the entry)", flush=True)
    config = run_folder.find(path).config
    outcome = training_run.train(training_run.Options(config, entry.config, logdir))
    if not outcome.complete:
      return outcome.exit_code
    verdict = verify.compare(path, run_folder.RunFolder(outcome.path))
  deleted = "" if args.logdir else "The run was deleted; --logdir DIR keeps it.\n"
  print(f"{deleted}\n{verdict.text}")
  args.result = verdict
  return 0 if verdict.verified else 1


def _add(args: argparse.Namespace) -> int:
  try:
    scores = [float(score) for score in args.scores.split(",") if args.scores]
  except ValueError:
    raise config_lib.ConfigError(
      f"--scores must be numbers, such as 500,490,500. Received: {args.scores}."
    ) from None
  from agents.training.run_folder import run_folder
  from agents.zoo import add

  run = run_folder.find(args.run)
  name = args.name or run.path.name.partition("-")[2]
  out = (args.out or entries.root() / name).expanduser().absolute()
  entry = add.add(run, name, out, scores)
  args.result = {"path": out, "entry": entry}
  print(f"{out}: score {entry.score:.1f} ± {entry.score_std:.1f}, {entries.num_bytes(out):,} bytes")
  return 0
