"""Exports a learned policy; see --help."""

from __future__ import annotations

import argparse
import os
import pathlib
import sys

from agents import config as config_lib
from agents.commands import cli
from agents.environments.making import make
from agents.training.monitoring import quiet_imports
from agents.training.run_folder import checkpoint
from agents.training.run_folder import run_folder

_FORMATS = "savedmodel", "tflite", "onnx", "npz"
_EXAMPLES = """\
examples:
  {0} ~/logdir --format savedmodel --out ~/policy
  {0} ~/logdir --format npz onnx --actions sampled --out ~/policy
"""


def main(argv: list[str] | None = None) -> int:
  parser = _parser()
  args = parser.parse_args(argv)
  sys.path.append(os.getcwd())  # Where users keep their own environments.
  with cli.exit_on_error(parser):
    folder = run_folder.find(args.run)
    out = args.out.expanduser()
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
      raise config_lib.ConfigError(
          f"--out {out} is {'not empty' if out.is_dir() else 'a file'}; name a "
          "new folder.")
    make.check(folder.config.env)
    path = (checkpoint.named(folder.checkpoints, args.checkpoint)
            if args.checkpoint else checkpoint.newest_whole(folder.checkpoints))
    with quiet_imports.quiet_imports():
      from agents import build
      from agents.export import write
      build.setup(folder.config.override({"device": "cpu"}))
    write.write(folder, path, list(dict.fromkeys(args.format)),
                args.actions == "sampled", out)
  return 0


def _parser() -> argparse.ArgumentParser:
  name = cli.command("export")
  parser = argparse.ArgumentParser(
      prog=name, description="Write a learned policy as one function, from raw "
      "observations to the environment's own actions, that runs without this "
      "package; compare it with the policy in training.",
      epilog=_EXAMPLES.format(name), allow_abbrev=False,
      formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument(
      "run", metavar="RUN_DIR", help="run folder; a folder of runs stands for "
      "its newest one with a checkpoint")
  parser.add_argument(
      "--format", nargs="+", choices=_FORMATS, default=["savedmodel"],
      help="what to write (default: savedmodel)")
  parser.add_argument(
      "--actions", choices=("mean", "sampled"), default="mean",
      help="take the mean action, or sample by noise that is an input "
      "(default: mean)")
  parser.add_argument(
      "--checkpoint", metavar="NAME", help="a file's name or a step (default: "
      "the newest)")
  parser.add_argument(
      "--out", metavar="DIR", type=pathlib.Path, required=True,
      help="a new folder (no default)")
  return parser
