"""Trains a named config, or goes on with a run; see --help."""

from __future__ import annotations

import argparse
import os
import sys
import traceback

import configs
import configs.presets
from agents import config as config_lib
from agents import errors
from agents.environments import block
from agents.environments import make
from agents.environments import workers as workers_lib
from agents.training import checkpoint
from agents.training import interrupts as interrupts_lib
from agents.training import quiet
from agents.training import run_folder

_EXAMPLES = """\
examples:
  python train.py --config cheetah --logdir ~/logdir --set num_envs=32
  python train.py --config cheetah --preset paper --steps 1e7
  python train.py --resume ~/logdir/20261120T190000-cheetah --steps 5e6
"""


def main(argv: list[str] | None = None) -> int:
  parser = _parser()
  args = parser.parse_args(argv)
  sys.path.append(os.getcwd())  # Where users keep their own environments.
  with interrupts_lib.Interrupts() as interrupts:
    try:
      folder = _resumed(args) if args.resume else _created(args)
      if args.noenv_processes:  # For this process, not for the run.
        folder.config = folder.config.override({"env_processes": False})
      interrupts.farewell = _again(folder)
      with folder.locked():
        return _train(folder, bool(args.resume), interrupts)
    except config_lib.ConfigError as error:
      parser.exit(2, f"train.py: error: {error}\n")
    except Exception as error:
      _explain(error, args.noenv_processes)
      return interrupts.exit_code if interrupts() else 1


def _parser() -> argparse.ArgumentParser:
  parser = argparse.ArgumentParser(
      description="Train BatchPPO on batches of Gymnasium environments.",
      epilog=_EXAMPLES, allow_abbrev=False,
      formatter_class=argparse.RawDescriptionHelpFormatter)
  new = parser.add_argument_group("a new run")
  new.add_argument(
      "--config", metavar="NAME", help="one of "
      f"{', '.join(configs.names())}; or the path of your own .py file")
  new.add_argument(
      "--preset", metavar="NAME", help="an algorithm in place of the config's: "
      f"{', '.join(configs.presets.names())} (of 2017)")
  new.add_argument(
      "--logdir", metavar="DIR",
      help="where the run folder <time>-<config> is made (default: ~/logdir)")
  new.add_argument("--seed", metavar="N", help="seed of the run (default: 0)")
  new.add_argument(
      "--set", metavar="KEY=VALUE", action="append", default=[],
      help="change a setting, such as algorithm.learning_rate=3e-4; repeat "
      "for more")
  new.add_argument(
      "--eager", action="store_true",
      help="run operation by operation, for debugging")
  old = parser.add_argument_group("an existing run")
  old.add_argument(
      "--resume", metavar="RUN_DIR", help="go on from its newest checkpoint")
  both = parser.add_argument_group("both")
  both.add_argument(
      "--steps", metavar="N", help="budget in environment steps, such as 1e6; "
      "a larger one extends a run")
  both.add_argument(
      "--device", choices=("auto", "cpu", "gpu"), help="where to learn "
      "(default: auto, a GPU if there is one and the updates are large)")
  both.add_argument(
      "--noenv_processes", action="store_true",
      help="step environments in this process, for debugging")
  return parser


def _created(args: argparse.Namespace) -> run_folder.RunFolder:
  """Check everything there is to check, then make the run folder."""
  if not args.config:
    raise config_lib.ConfigError(
        f"name a --config ({', '.join(configs.names())}) or a run to --resume.")
  name, config = configs.load(args.config)
  if args.preset:
    config = configs.presets.apply(args.preset, config)
    name += f"-{args.preset}"
  changes = dict(config_lib.parse_setting(text) for text in args.set)
  for flag in ("seed", "steps", "device"):
    if getattr(args, flag) is not None:
      changes[flag] = getattr(args, flag)
  if args.eager:
    changes["eager"] = True
  # Through text, so that the run uses just what its config.yaml says.
  config = config_lib.load(
      config_lib.dump(config.override(changes)), "the config")
  _check_env(config)
  return run_folder.create(args.logdir or "~/logdir", name, config)


def _resumed(args: argparse.Namespace) -> run_folder.RunFolder:
  """Open the run folder, with a larger budget if there is one."""
  for flag in ("config", "preset", "logdir", "seed", "set", "eager"):
    if getattr(args, flag):
      raise config_lib.ConfigError(
          f"--{flag} can't change a run that has begun; --resume takes "
          "--steps, --device and --noenv_processes.")
  folder = run_folder.RunFolder(args.resume)
  if not checkpoint.paths(folder.checkpoints):
    raise config_lib.ConfigError(f"{folder.path} has no checkpoint yet.")
  if args.device is not None:  # Of this machine, not of the run.
    folder.config = folder.config.override({"device": args.device})
  if args.steps is not None:
    config = folder.config.override({"steps": args.steps})
    if config.steps < folder.config.steps:
      raise config_lib.ConfigError(
          f"--steps {args.steps}: the run has a budget of "
          f"{folder.config.steps:,} steps already, which can only grow.")
    folder.config = config
  _check_env(folder.config)
  if changed := folder.changed_versions():
    print("Not the versions that this run began with, so it may not repeat "
          f"bit for bit: {', '.join(changed)}.")
  return folder


def _check_env(config: config_lib.Config):
  warnings = make.check(config.env)
  if config.algorithm.update_every:
    make.max_length(config.env)  # Whole episodes need room.
  for warning in warnings:
    print(f"Note: {warning}", file=sys.stderr)


def _train(folder: run_folder.RunFolder, resume: bool,
           interrupts: interrupts_lib.Interrupts) -> int:
  """Build the run, train it, and return the exit code."""
  config = folder.config
  workers = trainer = None
  try:
    if config.env_processes:
      # They get ready while TensorFlow is being imported.
      amount = min(config.num_workers or workers_lib.cores(), config.num_envs)
      workers = workers_lib.Workers(amount, interrupts.give_up_fd)
    with quiet.quiet_imports():
      from agents import build
      from agents.training import loop as loop_lib
      build.setup(config)
    trainer = build.trainer(config, workers)
    loop = loop_lib.Loop(trainer, folder, stop=interrupts)
    if resume:
      loop.resume()
      folder.extend(config.steps)
    else:
      loop.start()
    print(f"{'Resuming' if resume else 'Training'} {folder.path}", flush=True)
    try:
      loop.run()
    except Exception:
      print(f"Failed after {loop.step:,} steps. {_again(folder)}",
            file=sys.stderr)
      raise
  finally:
    if workers:
      workers.close()
    if trainer:
      trainer.close()
  if interrupts():
    print(f"Stopped after {loop.step:,} steps. {_again(folder)}")
    return interrupts.exit_code
  print(f"Finished {loop.step:,} steps. To watch the policy: python "
        f"visualize.py --logdir {folder.path} --outdir {folder.path}/videos")
  return 0


def _again(folder: run_folder.RunFolder) -> str:
  return f"To resume: python train.py --resume {folder.path}"


def _explain(error: Exception, in_process: bool):
  """Print what failed; our own traceback only where it could help."""
  if isinstance(error.__cause__, block.EnvironmentFailure):
    error = error.__cause__
  if isinstance(error, (errors.RunError, OSError)):
    print(f"\n{type(error).__name__}: {error}", file=sys.stderr)
  else:
    traceback.print_exception(error)
  if isinstance(error, block.EnvironmentFailure) and not in_process:
    print("Run with --noenv_processes to debug it in this process.",
          file=sys.stderr)


if __name__ == "__main__":
  sys.exit(main())
