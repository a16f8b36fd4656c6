"""Trains a named config, or resumes a run; see --help."""

import argparse
import sys
import traceback
from typing import Any

from agents import config as config_lib
from agents import configs, errors, training_run
from agents.commands import cli, config_table, run_settings
from agents.configs import presets
from agents.distributed import cluster as cluster_lib
from agents.distributed import cluster_run
from agents.environments.blocks import base
from agents.training.faults import interrupts as interrupts_lib
from agents.training.run_folder import checkpoint, run_folder

_EXAMPLES = """\
examples:
  {0} --config hopper --logdir ~/logdir --set num_envs=32
  {0} --config cheetah --preset paper --steps 1e7
  {0} --resume ~/logdir --steps 5e6
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
  if args.config == "list":
    print(config_table.table())
    return 0
  with interrupts_lib.Interrupts() as interrupts:
    try:
      return _run(args, interrupts)
    except config_lib.ConfigError as error:
      parser.exit(2, f"{parser.prog}: error: {error}\n")
    except Exception as error:
      _print_error(error, args.no_env_processes)
      if interrupts():
        return interrupts.exit_code
      return error.exit_code if isinstance(error, errors.RunError) else 1


def _parser() -> argparse.ArgumentParser:
  parser = cli.make_parser(
      "train", "Train BatchPPO on batches of Gymnasium environments.",
      _EXAMPLES)
  _add_new_run_arguments(parser.add_argument_group("a new run"))
  existing = parser.add_argument_group("an existing run")
  existing.add_argument(
      "--resume", metavar="RUN_DIR", help="resume from the newest checkpoint "
      "of this run; a folder of runs stands for its newest run with a "
      "checkpoint (no default)")
  _add_common_arguments(parser.add_argument_group("new and existing runs"))
  return parser


def _add_new_run_arguments(group: argparse._ArgumentGroup):
  group.add_argument(
      "--config", metavar="NAME", help="named config, path of your own .py "
      "file, or `list` to print the named configs (no default)")
  group.add_argument(
      "--preset", metavar="NAME", help="algorithm that replaces the config's: "
      f"{', '.join(presets.names())} (default: the config's own)")
  group.add_argument(
      "--logdir", metavar="DIR", help="parent folder of the run folder "
      "<time>-<config> (default: ~/logdir)")
  group.add_argument("--seed", metavar="N", help="seed of the run (default: 0)")
  group.add_argument(
      "--set", metavar="KEY=VALUE", action="append", default=[],
      help="change a setting, such as algorithm.learning_rate=3e-4; repeat "
      "for more (default: none; --print_config shows all)")
  group.add_argument(
      "--eager", action="store_true", help="execute operations one by one, for "
      "debugging (default: compiled)")


def _add_common_arguments(group: argparse._ArgumentGroup):
  group.add_argument(
      "--steps", metavar="N", help="budget in environment steps, such as 1e6; "
      "a larger budget extends a run (default: the config's)")
  group.add_argument(
      "--device", choices=("auto", "cpu", "gpu"), help="device of the updates "
      "(default: auto, a GPU if available and the updates are large)")
  group.add_argument(
      "--video_every", metavar="N", help="environment steps between videos of "
      "training episodes; rendering takes minutes, and the next video starts "
      "after the previous one is complete (default: no videos)")
  group.add_argument(
      "--no-env-processes", action="store_true", help="step environments in "
      "this process, for debugging (default: one process per CPU core)")
  group.add_argument(  # Spelling of earlier versions.
      "--noenv_processes", dest="no_env_processes", action="store_true",
      help=argparse.SUPPRESS)
  group.add_argument(
      "--cluster", metavar="HOST:PORT,...", help="addresses of all machines "
      "that train together, the same on each machine (default: TF_CONFIG, or "
      "only this machine)")
  group.add_argument(
      "--task", metavar="N", help="index of this machine in the cluster; "
      "machine 0 has the run folder (no default)")
  group.add_argument(
      "--print_config", action="store_true", help="print all settings with "
      "their origin, without training")


def _run(args: argparse.Namespace, interrupts: interrupts_lib.Interrupts
         ) -> int:
  """Prints the settings or trains the run; returns the exit code."""
  cluster = cluster_lib.find(args.cluster, args.task)
  options = training_run.Options(
      None, logdir=args.logdir or "~/logdir",
      env_processes=not args.no_env_processes)
  if cluster and cluster.task and args.resume:
    # Machine 0 has the run folder and sends the settings.
    return cluster_run.train(cluster, options, interrupts).exit_code
  settings, folder = _resumed(args) if args.resume else (_new(args), None)
  if args.print_config:
    print(settings.describe())
    return 0
  options = options._replace(
      config=settings.config, name=settings.name, folder=folder)
  if cluster:
    outcome = cluster_run.train(cluster, options, interrupts)
  else:
    outcome = training_run.train(options, interrupts)
  return outcome.exit_code


def _new(args: argparse.Namespace) -> run_settings.Settings:
  if not args.config:
    raise config_lib.ConfigError(
        f"name a --config ({', '.join(configs.names())}) or a run to --resume.")
  changes = dict(config_lib.parse_setting(text) for text in args.set)
  changes |= _changes(
      args, "seed", "steps", "device", "video_every", "eager")
  return run_settings.of_new_run(args.config, args.preset, changes)


def _resumed(args: argparse.Namespace
             ) -> tuple[run_settings.Settings, run_folder.RunFolder]:
  for option in ("config", "preset", "logdir", "seed", "set", "eager"):
    if getattr(args, option):
      raise config_lib.ConfigError(
          f"--{option} can't change an existing run; --resume takes --steps, "
          "--device, --video_every and --no-env-processes.")
  folder = run_folder.find(args.resume)
  if not checkpoint.paths(folder.checkpoints):
    raise config_lib.ConfigError(f"{folder.path} has no checkpoint yet.")
  settings = run_settings.of_old_run(
      folder.path.name, folder.config,
      _changes(args, "steps", "device", "video_every"))
  training_run.print_changes(folder)
  return settings, folder


def _changes(args: argparse.Namespace, *options: str) -> dict[str, Any]:
  """Returns the settings that have options of their own."""
  return {option: getattr(args, option) for option in options
          if getattr(args, option) not in (None, False)}


def _print_error(error: Exception, in_process: bool):
  """Prints an error, with a traceback if its message does not explain it."""
  if isinstance(error.__cause__, base.EnvironmentFailure):
    error = error.__cause__
  if isinstance(error, (errors.RunError, OSError)):
    print(f"\n{type(error).__name__}: {error}", file=sys.stderr)
  else:
    traceback.print_exception(error)
  if isinstance(error, base.EnvironmentFailure) and not in_process:
    print("Run with --no-env-processes to debug it in this process.",
          file=sys.stderr)
