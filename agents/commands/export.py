"""Exports a learned policy; see --help."""

import argparse
import pathlib
from collections.abc import Sequence

from agents import config as config_lib
from agents.commands import cli
from agents.environments.making import make
from agents.training.monitoring import quiet_imports
from agents.training.run_folder import checkpoint, run_folder

_FORMATS = "savedmodel", "tflite", "onnx", "npz"
_EXAMPLES = """\
examples:
  {0} ~/logdir --format savedmodel --out ~/policy
  {0} ~/logdir --format npz onnx --actions sampled --out ~/policy
"""


def main(argv: list[str] | None = None) -> int:
  """Runs the command.

  Args:
    argv: Arguments; by default those of the process.
  Returns:
    Exit code.
  """
  parser = _parser()
  args = parser.parse_args(argv)
  cli.import_from_current_folder()
  with cli.exit_on_error(parser):
    export(run_folder.find(args.run), args.out, args.format, args.checkpoint,
           args.actions == "sampled")
  return 0


def export(folder: run_folder.RunFolder, out: pathlib.Path,
           formats: Sequence[str], checkpoint_name: str | None = None,
           sampled: bool = False):
  """Writes the policy of a checkpoint, and compares it with training.

  Args:
    folder: Run folder.
    out: New folder for the exported files.
    formats: Names of formats, such as "npz".
    checkpoint_name: File name or step; None selects the newest checkpoint.
    sampled: Exports sampled actions instead of mean actions.
  Raises:
    ConfigError: If the folder, the checkpoint or a format cannot be used.
    RunError: If an exported policy differs from the policy in training.
  """
  out = out.expanduser()
  if out.exists() and (not out.is_dir() or any(out.iterdir())):
    raise config_lib.ConfigError(
        f"--out {out} is {'not empty' if out.is_dir() else 'a file'}; name a "
        "new folder.")
  make.check(folder.config.env)
  path = (checkpoint.find(folder.checkpoints, checkpoint_name)
          if checkpoint_name
          else checkpoint.newest_readable(folder.checkpoints))
  with quiet_imports.quiet_imports():
    from agents import build
    from agents.export import write
    build.setup(folder.config.override({"device": "cpu"}))
  write.write(folder, path, list(dict.fromkeys(formats)), sampled, out)


def _parser() -> argparse.ArgumentParser:
  parser = cli.make_parser(
      "export", "Write a learned policy as one function that runs without this "
      "package. It maps raw observations to the environment's own actions, and "
      "is compared with the policy in training.", _EXAMPLES)
  parser.add_argument(
      "run", metavar="RUN_DIR", help="run folder; a folder of runs stands for "
      "its newest run with a checkpoint")
  parser.add_argument(
      "--format", nargs="+", choices=_FORMATS, default=["savedmodel"],
      help="formats to write (default: savedmodel)")
  parser.add_argument(
      "--actions", choices=("mean", "sampled"), default="mean",
      help="take the mean action, or sample with noise that is an input "
      "(default: mean)")
  parser.add_argument(
      "--checkpoint", metavar="NAME", help="file name or step of a checkpoint "
      "(default: the newest checkpoint)")
  parser.add_argument(
      "--out", metavar="DIR", type=pathlib.Path, required=True,
      help="new folder for the exported files (no default)")
  return parser
