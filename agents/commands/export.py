"""Exports a learned policy; see --help."""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shutil
import sys

import numpy as np

from agents import config as config_lib
from agents import errors
from agents.commands import program
from agents.environments import make
from agents.training import checkpoint
from agents.training import quiet
from agents.training import run_folder

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
  try:
    folder = run_folder.find(args.run)
    out = args.out.expanduser()
    if out.exists() and any(out.iterdir()):
      raise config_lib.ConfigError(
          f"--out {out} is not empty; name a new folder.")
    make.check(folder.config.env)
    path = (checkpoint.named(folder.checkpoints, args.checkpoint)
            if args.checkpoint else checkpoint.newest_whole(folder.checkpoints))
    return _export(folder, path, list(dict.fromkeys(args.format)),
                   args.actions == "sampled", out)
  except config_lib.ConfigError as error:
    parser.exit(2, f"{parser.prog}: error: {error}\n")
  except KeyboardInterrupt:
    return 130
  except (errors.RunError, OSError) as error:
    parser.exit(1, f"{parser.prog}: {type(error).__name__}: {error}\n")


def _export(folder: run_folder.RunFolder, path: pathlib.Path,
            names: list[str], sampled: bool, out: pathlib.Path) -> int:
  with quiet.quiet_imports():
    from agents import build
    from agents.export import formats
    from agents.export import policy as policy_lib
    from agents.export import readme
    from agents.export import verify
    build.setup(folder.config.override({"device": "cpu"}))
  formats.check(names)
  policy = policy_lib.load(folder, path, sampled)
  steps: list[verify.Step] = []
  expected = verify.play(policy, verify.in_training(policy), steps.append)
  print(f"{policy.config.env.id} after {policy.step:,} steps, "
        f"{len(expected)} episodes in training's graph: return "
        f"{np.mean(expected):.1f}", flush=True)
  out.mkdir(parents=True, exist_ok=True)
  failed = []
  for name in names:
    one = formats.FORMATS[name]
    with quiet.quiet_imports():
      one.write(policy, out / one.file)
      run = one.load(out / one.file)
    found = verify.examine(policy, run, steps)
    good = found.difference <= verify.TOLERANCE and verify.same(
        found.returns, expected)
    print(f"{name:<10} {out / one.file}: largest difference "
          f"{found.difference:.1e}, return {np.mean(found.returns):.1f}, "
          f"{found.milliseconds:.3f} ms an action"
          f"{'' if good else '  DIFFERS'}", flush=True)
    if not good:
      failed.append(name)
      _remove(out / one.file)
  (out / "README.md").write_text(readme.text(
      policy, [name for name in names if name not in failed]))
  (out / "signature.json").write_text(json.dumps({
      "environment": policy.config.env.id, "step": policy.step,
      "actions": "sampled" if sampled else "mean",
      "inputs": {name: x._asdict() for name, x in policy.inputs.items()},
      "outputs": {name: x._asdict() for name, x in policy.outputs.items()}},
      indent=2) + "\n")
  if failed:
    raise errors.RunError(
        f"{', '.join(failed)}: not the policy that was trained, by more than "
        f"{verify.TOLERANCE} or in what it earns, and so not kept.")
  return 0


def _remove(path: pathlib.Path):
  if path.is_dir():
    shutil.rmtree(path)
  else:
    path.unlink()


def _parser() -> argparse.ArgumentParser:
  name = program.command("export")
  parser = argparse.ArgumentParser(
      prog=name, description="Write a learned policy as one function, from raw "
      "observations to the environment's own actions, that runs without this "
      "package; compare it with the policy in training.",
      epilog=_EXAMPLES.format(name), allow_abbrev=False,
      formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument(
      "run", metavar="RUN_DIR", help="run folder; a folder of runs stands for "
      "its newest one")
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
