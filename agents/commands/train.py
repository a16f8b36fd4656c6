"""Train BatchPPO on batches of Gymnasium environments.

examples:
  %(prog)s --config hopper --logdir ~/logdir --set num_envs=32
  %(prog)s --config cheetah --preset paper --steps 1e7
  %(prog)s ~/logdir --steps 5e6
  %(prog)s --from ~/logdir --set algorithm.learning_rate=1e-4 --steps 5e5
"""

import argparse
import functools
import os
import pathlib
import shlex
import sys
import traceback
from typing import Any

from agents import config as config_lib
from agents import configs, errors
from agents.commands import parsing
from agents.commands.shared import json_output, merge_settings
from agents.distributed import cluster as cluster_lib
from agents.training import early_end
from agents.training.faults import interrupts as interrupts_lib
from agents.zoo import entries

# Functions import Gymnasium and modules that need it, because this takes 0.2 s.
# Help and most errors of arguments do not need them.


def main(argv: list[str] | None = None) -> int:
  """Runs the command `train`.

  Args:
    argv: Command-line arguments; None takes the arguments of the process.

  Returns:
    Exit code of the process.
  """
  parser = _parser()
  args = parser.parse_args(argv)
  if args.config == "list":
    from agents.commands import list as list_lib

    return list_lib.main(["--json"] * args.json)
  with json_output.only_result(args), interrupts_lib.Interrupts() as interrupts:
    try:
      return _run(args, interrupts)
    except config_lib.ConfigError as error:
      parser.exit(2, f"{parser.prog}: error: {error}\n")
    except Exception as error:
      _print_error(error, args.no_env_processes)
      return interrupts.exit_code if interrupts() else getattr(error, "exit_code", 1)


def _parser() -> argparse.ArgumentParser:
  parser = parsing.make_parser("train", __doc__)
  group = parser.add_argument_group("a new run")
  new = functools.partial(parsing.option, group)
  new(
    "--config NAME",
    "named config, path of your own .py file, or `list` to print the named configs (no default)",
  )
  parsing.add_preset(group)
  new(
    "--from RUN[@STEP]",
    "start with weights, optimizer moments and normalization of another run's checkpoint, and with "
    "its settings unless --config is given; RUN may be the name of a policy in the zoo (default: "
    "random weights)",
  )
  new("--logdir DIR", "parent folder of run folders such as <time>-<config> (default: ~/logdir)")
  new("--seed N", "seed of the run (default: 0)")
  new(
    "--set KEY=VALUE",
    "change a setting, such as algorithm.learning_rate=3e-4; repeat the option for more "
    "settings (default: none; --print-config shows all)",
    action="append",
    default=[],
  )
  new("--eager", "execute operations one by one, for debugging (default: compiled)")
  existing = parser.add_argument_group("an existing run")
  parsing.add_run(existing, "--resume", "run to resume from its newest checkpoint")
  parsing.add_code(existing)
  both = functools.partial(parsing.option, parser.add_argument_group("new and existing runs"))
  both(
    "--steps N",
    "budget in environment steps, such as 1e6; a larger budget extends an existing run "
    "(default: the budget in the config)",
  )
  both(
    "--device",
    "device of the updates (default: auto, which is the CPU)",
    choices=("auto", "cpu", "gpu"),
  )
  both(
    "--video-every N",
    "environment steps between videos of training episodes; rendering takes minutes, and the "
    "next video starts after the previous one is complete (default: no videos)",
  )
  both("--trace-graph", "write the graph of one epoch to TensorBoard (default: no graph)")
  both(
    "--no-env-processes",
    "step environments in this process, for debugging (default: one process per CPU core)",
  )
  # Spelling of earlier versions.
  both("--noenv-processes", argparse.SUPPRESS, dest="no_env_processes")
  both(
    "--cluster HOST:PORT,...",
    "addresses of all machines that train together; all machines need the same list "
    "(default: TF_CONFIG, or only this machine)",
  )
  both(
    "--task N", "index of this machine in the cluster; machine 0 has the run folder (no default)"
  )
  both(
    "--cluster-secret-file FILE",
    "secret that all machines share (default: on one host, a secret of this user)",
  )
  both(
    "--until SCORE",
    "end early, evaluated and saved, when the mean return of the last three evaluations reaches "
    "SCORE; --until=-1e3 for negative numbers in this notation (default: the whole budget)",
    type=float,
  )
  both("--minutes N", "end early, evaluated and saved, after N minutes (no default)", type=float)
  both("--print-config", "print all settings with their origin, without training")
  parsing.add_json(parser, "the outcome and the last evaluation")
  return parser


def _run(args: argparse.Namespace, interrupts: interrupts_lib.Interrupts) -> int:
  """Prints the settings or trains the run; returns the exit code."""
  cluster, run = cluster_lib.find(args.cluster, args.task), parsing.run(args)
  has_end = args.until is not None or args.minutes is not None
  end = early_end.EarlyEnd(args.until, args.minutes) if has_end else None
  if run:
    _check_resumable(args, str(run))
  new, origin = (None, None) if run else _new(args)
  from agents import training_run
  from agents.distributed import access, cluster_run

  if cluster:
    cluster = cluster._replace(secret=access.read_secret(args.cluster_secret_file, cluster))
  train = functools.partial(cluster_run.train, cluster) if cluster else training_run.train
  options = training_run.Options(
    None,
    # Environments may change the working directory of this process later.
    logdir=os.path.abspath(os.path.expanduser(args.logdir or "~/logdir")),
    env_processes=not args.no_env_processes,
    code=tuple(args.code),
    origin=origin,
    end=end,
  )
  # The folder of a resumed run is on machine 0, which sends the settings to the
  # other machines.
  if cluster and cluster.task and run:
    if args.print_config:
      raise config_lib.ConfigError(
        "--print-config needs the run folder, which only machine 0 (--task 0) has."
      )
  else:
    settings, folder = (new, None) if new else _resumed(args, str(run))
    if args.print_config:
      args.result = settings
      if not args.json:
        print(settings.describe())
      return 0
    options = options._replace(config=settings.config, name=settings.name, folder=folder)
  outcome = train(options, interrupts)
  if args.json:
    args.result = outcome._asdict() | {"evaluation": _last_evaluation(outcome.path)}
  return outcome.exit_code


def _last_evaluation(path: pathlib.Path) -> dict[str, Any] | None:
  """Returns the last row about an evaluation in metrics.jsonl, if any."""
  from agents.reports import results

  # Only machine 0 of a cluster has the folder.
  evaluations = results.read(path).phase("eval") if path.exists() else []
  return evaluations[-1] if evaluations else None


def _new(args: argparse.Namespace) -> tuple[merge_settings.Settings, Any]:
  """Returns the settings of a new run, and its `fork.Origin` or None."""
  origin = getattr(args, "from")
  if not (args.config or origin):
    raise config_lib.ConfigError(
      f"name a --config ({', '.join(configs.names())}), a run folder to resume, or a run to start "
      "--from."
    )
  if args.code and not origin:
    raise config_lib.ConfigError("--code needs an existing run; a new run may name any module.")
  parsing.import_from_current_folder()
  changes = parsing.settings(args, "seed", "steps", "device", "video_every", "trace_graph", "eager")
  if "forked_from" in changes:
    raise config_lib.ConfigError("--set forked_from: start from another run with --from RUN.")
  if origin:
    from agents.training import fork

    origin = fork.find(entries.expand(origin), args.code)
    changes["forked_from"] = origin.lineage
  if args.config:
    settings = merge_settings.of_new_run(args.config, args.preset, changes)
  else:
    run = origin.run
    settings = merge_settings.of_fork(run.path.name, run.config, args.preset, changes)
  return settings, origin


def _check_resumable(args: argparse.Namespace, run: str) -> None:
  """Raises `ConfigError` if an option can't change an existing run."""
  for option in ("config", "from", "preset", "logdir", "seed", "set", "eager"):
    if getattr(args, option):
      raise config_lib.ConfigError(
        f"--{option} can't change an existing run; a resumed run takes --steps, --device, "
        "--video-every, --trace-graph, --no-env-processes, --code, --until and --minutes. To train "
        f"its policy with other settings, start a new run: --from {shlex.quote(run)}."
      )


def _resumed(args: argparse.Namespace, run: str) -> tuple[merge_settings.Settings, Any]:
  """Returns the settings of an existing run, and its `RunFolder`."""
  from agents import training_run
  from agents.training.run_folder import checkpoint, run_folder

  folder = run_folder.find(run, args.code)
  if entries.is_entry(folder.path):
    raise config_lib.ConfigError(
      f"{folder.path} is an entry of the zoo, which contains neither optimizer state nor episodes "
      f"to resume. Start a new run with its policy: --from {shlex.quote(run)}."
    )
  if not checkpoint.paths(folder.checkpoints):
    raise config_lib.ConfigError(f"{folder.path} has no checkpoint yet.")
  settings = merge_settings.of_old_run(
    folder.path.name,
    folder.config,
    parsing.settings(args, "steps", "device", "video_every", "trace_graph"),
  )
  training_run.print_changes(folder)
  return settings, folder


def _print_error(error: Exception, in_process: bool) -> None:
  """Prints an error, with a traceback if the error is unexpected."""
  from agents.environments.blocks import base

  if isinstance(error.__cause__, base.EnvironmentFailure):
    error = error.__cause__
  if isinstance(error, (errors.RunError, OSError)):
    print(f"\n{type(error).__name__}: {error}", file=sys.stderr)
  else:
    traceback.print_exception(error)
  if isinstance(error, base.EnvironmentFailure) and not in_process:
    print("Run with --no-env-processes to debug it in this process.", file=sys.stderr)
