"""Write a learned policy as one function that runs without this package.

The function maps raw observations to actions in the units of the environment.
The command checks that the function computes the same actions as in training.

examples:
  %(prog)s ~/logdir --format savedmodel --out ~/policy
  %(prog)s ~/logdir --format npz onnx --actions sampled --out ~/policy
"""

import functools
import pathlib
from collections.abc import Sequence

from agents import config as config_lib
from agents.commands import parsing
from agents.environments.making import make
from agents.export import formats
from agents.training.monitoring import quiet_imports
from agents.training.run_folder import checkpoint, run_folder


def main(argv: list[str] | None = None) -> int:
  """Runs the command `export`.

  Args:
    argv: Command-line arguments; None takes the arguments of the process.

  Returns:
    Exit code of the process.
  """
  parser = parsing.make_parser("export", __doc__)
  option = functools.partial(parsing.option, parser)
  option("run RUN_DIR", "run folder; in a folder of runs, the newest run with a checkpoint is used")
  option(
    "--format",
    "formats to write (default: savedmodel)",
    nargs="+",
    choices=formats.NAMES,
    default=["savedmodel"],
  )
  option(
    "--actions",
    "take the mean action, or sample with noise that is an input (default: mean)",
    choices=("mean", "sampled"),
  )
  option(
    "--checkpoint NAME",
    "file name or step of a checkpoint, or "
    "`best` for the policy with the best evaluation (default: the newest "
    "checkpoint)",
  )
  option(
    "--out DIR", "new folder for the exported files (no default)", type=pathlib.Path, required=True
  )
  parsing.add_code(parser)
  parsing.add_json(parser, "the paths of the policies")
  with parsing.parsed(parser, argv) as args:
    folder = run_folder.find(args.run, args.code)
    policies = export(folder, args.out, args.format, args.checkpoint, args.actions == "sampled")
    args.result = {"policies": policies}
  return 0


def export(
  folder: run_folder.RunFolder,
  out: pathlib.Path,
  names: Sequence[str],
  checkpoint_name: str | None = None,
  sampled: bool = False,
) -> list[pathlib.Path]:
  """Exports a policy and compares each file with the policy in training.

  Args:
    folder: Run folder.
    out: New folder for the exported files.
    names: Names of formats, such as "npz".
    checkpoint_name: File name or step of a checkpoint; None selects the newest
      checkpoint.
    sampled: Exports sampled actions instead of mean actions.

  Returns:
    Path of the policy in each format.

  Raises:
    ConfigError: If `out`, the checkpoint or a format cannot be used.
    RunError: If an exported policy differs from the policy in training.
  """
  out = out.expanduser().absolute()  # Environments can change the current folder.
  if out.exists() and (not out.is_dir() or any(out.iterdir())):
    raise config_lib.ConfigError(
      f"--out {out} is {'not empty' if out.is_dir() else 'a file'}; name a new folder."
    )
  make.check(folder.config.env)
  path = checkpoint.find(folder.checkpoints, checkpoint_name)
  with quiet_imports.quiet_imports():
    from agents import build
    from agents.export import write

    build.setup(folder.config.override({"device": "cpu"}))
  return write.write(folder, path, list(dict.fromkeys(names)), sampled, out)
