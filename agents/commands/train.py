"""Trains a named config, or goes on with a run; see --help."""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import sys
import traceback
from typing import Any

from agents import config as config_lib
from agents import configs
from agents import errors
from agents.commands import cli
from agents.commands import config_table
from agents.commands import open_run
from agents.commands import settings as settings_lib
from agents.configs import presets
from agents.distributed import cluster as cluster_lib
from agents.distributed import cluster_run
from agents.environments.blocks import backend
from agents.environments.blocks import base
from agents.environments.blocks import envpool_block
from agents.environments.making import make
from agents.environments.workers import start_workers
from agents.training.faults import interrupts as interrupts_lib
from agents.training.monitoring import quiet_imports
from agents.training.run_folder import checkpoint
from agents.training.run_folder import run_folder
from agents.videos import render_pool

_EXAMPLES = """\
examples:
  {0} --config hopper --logdir ~/logdir --set num_envs=32
  {0} --config cheetah --preset paper --steps 1e7
  {0} --resume ~/logdir --steps 5e6
"""


def main(argv: list[str] | None = None) -> int:
  parser = _parser()
  args = parser.parse_args(argv)
  sys.path.append(os.getcwd())  # Where users keep their own environments.
  if args.config == "list":
    print(config_table.table())
    return 0
  cluster = None
  with interrupts_lib.Interrupts() as interrupts:
    try:
      cluster = cluster_lib.find(args.cluster, args.task)
      if cluster and not cluster.leads and args.resume:
        return _follow(args, cluster, None, interrupts)
      settings, folder = _old(args) if args.resume else (_new(args), None)
      if args.print_config:
        print(settings.describe())
        return 0
      _check(settings.config)
      if cluster:
        cluster_run.check(settings.config, cluster)
      if cluster and not cluster.leads:
        return _follow(args, cluster, settings.config, interrupts)
      try:
        drawing = _drawing(settings.config)
      except render_pool.RenderingFailed as error:
        if not args.resume:
          raise
        print(f"Note: No films: {error}", file=sys.stderr)
        settings = settings._replace(
            config=settings.config.override({"video_every": None}))
        drawing = {}
      machines = None
      if cluster:
        machines = cluster_run.meet(
            cluster, None if args.resume else settings.config, interrupts)
        folder = folder or open_run.begun(
            args.logdir or "~/logdir", settings.config)
      resume = bool(folder)
      folder = folder or run_folder.create(
          args.logdir or "~/logdir", settings.name, settings.config)
      folder.config = settings.config
      if args.noenv_processes:  # For this process, not for the run.
        folder.config = folder.config.override({"env_processes": False})
      interrupts.farewell = _again(folder)
      with folder.locked():
        if cluster:
          cluster_run.share(cluster, machines, cluster_run.Run(
              folder.path.resolve(), folder.path.name.partition("-")[2],
              settings.config))
        return _train(folder, resume, interrupts, drawing, machines)
    except config_lib.ConfigError as error:
      parser.exit(2, f"{parser.prog}: error: {error}\n")
    except Exception as error:
      if cluster and isinstance(error, errors.MachineLost):
        error = errors.MachineLost(
            f"{cluster.blame(str(error))} {str(error).splitlines()[0]}")
      _explain(error, args.noenv_processes)
      if interrupts():
        return interrupts.exit_code
      return error.exit_code if isinstance(error, errors.RunError) else 1


def _parser() -> argparse.ArgumentParser:
  name = cli.command("train")
  parser = argparse.ArgumentParser(
      prog=name, description="Train BatchPPO on batches of Gymnasium "
      "environments.", epilog=_EXAMPLES.format(name), allow_abbrev=False,
      formatter_class=argparse.RawDescriptionHelpFormatter)
  new = parser.add_argument_group("a new run")
  new.add_argument(
      "--config", metavar="NAME", help="a named config, the path of your own "
      ".py file, or `list` to see the named ones (no default)")
  new.add_argument(
      "--preset", metavar="NAME", help="an algorithm in place of the config's: "
      f"{', '.join(presets.names())} (of 2017; default: the config's own)")
  new.add_argument(
      "--logdir", metavar="DIR",
      help="where the run folder <time>-<config> is made (default: ~/logdir)")
  new.add_argument("--seed", metavar="N", help="seed of the run (default: 0)")
  new.add_argument(
      "--set", metavar="KEY=VALUE", action="append", default=[],
      help="change a setting, such as algorithm.learning_rate=3e-4; repeat "
      "for more (default: none; --print_config shows all)")
  new.add_argument(
      "--eager", action="store_true",
      help="run operation by operation, for debugging (default: compiled)")
  old = parser.add_argument_group("an existing run")
  old.add_argument(
      "--resume", metavar="RUN_DIR", help="go on from its newest checkpoint; a "
      "folder of runs stands for its newest one with a checkpoint (no default)")
  policy_and_value = parser.add_argument_group("both")
  policy_and_value.add_argument(
      "--steps", metavar="N", help="budget in environment steps, such as 1e6; "
      "a larger one extends a run (default: the config's)")
  policy_and_value.add_argument(
      "--device", choices=("auto", "cpu", "gpu"), help="where to learn "
      "(default: auto, a GPU if there is one and the updates are large)")
  policy_and_value.add_argument(
      "--video_every", metavar="N", help="film an episode of training every N "
      "environment steps, or as soon as the film before is done, which takes "
      "minutes while training goes on (default: never)")
  policy_and_value.add_argument(
      "--noenv_processes", action="store_true", help="step environments in "
      "this process, for debugging (default: in a process a core)")
  policy_and_value.add_argument(
      "--cluster", metavar="HOST:PORT,...", help="train on several machines, "
      "each of which is told all of their addresses (default: TF_CONFIG's, or "
      "this machine alone)")
  policy_and_value.add_argument(
      "--task", metavar="N", help="which machine of the cluster this is; 0 has "
      "the run folder (no default)")
  policy_and_value.add_argument(
      "--print_config", action="store_true", help="print all settings and who "
      "set each of them, and train nothing")
  return parser


def _changes(args: argparse.Namespace, *flags: str) -> dict[str, Any]:
  """Return the settings that have flags of their own."""
  return {flag: getattr(args, flag) for flag in flags
          if getattr(args, flag) not in (None, False)}


def _new(args: argparse.Namespace) -> settings_lib.Settings:
  if not args.config:
    raise config_lib.ConfigError(
        f"name a --config ({', '.join(configs.names())}) or a run to --resume.")
  changes = dict(config_lib.parse_setting(text) for text in args.set)
  changes |= _changes(
      args, "seed", "steps", "device", "video_every", "eager")
  return settings_lib.of_new_run(args.config, args.preset, changes)


def _old(args: argparse.Namespace
         ) -> tuple[settings_lib.Settings, run_folder.RunFolder]:
  for flag in ("config", "preset", "logdir", "seed", "set", "eager"):
    if getattr(args, flag):
      raise config_lib.ConfigError(
          f"--{flag} can't change a run that has begun; --resume takes "
          "--steps, --device, --video_every and --noenv_processes.")
  return open_run.named(
      args.resume, _changes(args, "steps", "device", "video_every"))


def _check(config: config_lib.Config):
  warnings = make.check(config.env, filmed=config.video_every is not None)
  if config.env.backend == "envpool":
    warnings += envpool_block.check(config)
  elif config.env.backend != "gymnasium":
    with quiet_imports.quiet_imports():
      kind = backend.find(config.env.backend)
    warnings += backend.check(config, kind)
  if config.algorithm.update_every:
    make.max_length(config.env)  # Whole episodes need room.
  for warning in warnings:
    print(f"Note: {warning}", file=sys.stderr)
  if config.names_classes:
    with quiet_imports.quiet_imports():  # Which they import, too.
      from agents import build
    build.check(config)


def _drawing(config: config_lib.Config) -> dict[str, str]:
  """Return environment variables to draw films with, if there are to be any."""
  if not config.video_every:
    return {}
  return render_pool.backend(make.MakeEnv(config.env, render_mode="rgb_array"))


def _follow(args: argparse.Namespace, cluster: cluster_lib.Cluster,
            config: config_lib.Config | None,
            interrupts: interrupts_lib.Interrupts) -> int:
  """Train as another machine says, and return the exit code."""
  machines = cluster_run.meet(cluster, config, interrupts)
  return cluster_run.follow(cluster, machines, args.logdir or "~/logdir",
                         args.noenv_processes, interrupts)


def _train(folder: run_folder.RunFolder, resume: bool,
           interrupts: interrupts_lib.Interrupts, drawing: dict[str, str],
           machines: Any = None) -> int:
  """Build the run, train it, and return the exit code.

  Args:
    folder: Of the run.
    resume: Whether it goes on.
    interrupts: Of this process.
    drawing: Environment variables to draw films with.
    machines: exchange.Machines, of which this is the first; None: it is alone.
  """
  config = folder.config
  workers = trainer = None
  try:
    workers = start_workers.start_workers(config, interrupts.give_up_fd)  # While TensorFlow loads.
    with quiet_imports.quiet_imports():
      from agents import build
      from agents.distributed import assembly
      from agents.distributed import coordinator
      from agents.training import loop as loop_lib
      from agents.training.monitoring import summary
    try:
      with quiet_imports.quiet_imports():
        build.setup(config)
      trainer = build.trainer(config, workers) if machines is None else (
          assembly.trainer(config, workers, machines))
    except Exception:
      if not resume:
        folder.remove()  # It would be the newest of its logdir.
      raise
    def stop():
      return interrupts() or (machines and trainer.stop_elsewhere)
    guard = contextlib.nullcontext if machines else interrupts.save_on_timeout
    loop = loop_lib.Loop(trainer, folder, stop, drawing, guard)
    if isinstance(trainer, coordinator.Coordinator):
      trainer.metadata, trainer.stop = loop.metadata, interrupts
    if resume:
      loop.resume()
      folder.extend(config)
    else:
      loop.start()
    print(summary.beginning(folder, trainer), flush=True)
    try:
      loop.run()
    except Exception:
      again = _again(folder) if checkpoint.paths(folder.checkpoints) else (
          "No checkpoint was saved.")
      print(f"Failed after {loop.step:,} steps. {again}", file=sys.stderr)
      raise
  finally:
    if workers:
      workers.close()
    if trainer:
      trainer.close()
  if stop() and not loop.complete:
    print(f"Stopped after {loop.step:,} steps. {_again(folder)}")
    return interrupts.exit_code if interrupts() else 1
  print(f"Finished {loop.step:,} steps. {summary.end(folder)}")
  path, logdir = (
      shlex.quote(str(path)) for path in (folder.path, folder.path.parent))
  print(_again(folder, f" --steps {2 * config.steps}"),
        f"To watch: {cli.command('visualize')} --logdir {path}",
        f"To compare: tensorboard --logdir {logdir}", sep="\n")
  return 0


def _again(folder: run_folder.RunFolder, more: str = "") -> str:
  return (f"To {'extend' if more else 'resume'}: {cli.command('train')} "
          f"--resume {shlex.quote(str(folder.path))}{more}")


def _explain(error: Exception, in_process: bool):
  """Print what failed; our own traceback only where it could help."""
  if isinstance(error.__cause__, base.EnvironmentFailure):
    error = error.__cause__
  if isinstance(error, (errors.RunError, OSError)):
    print(f"\n{type(error).__name__}: {error}", file=sys.stderr)
  else:
    traceback.print_exception(error)
  if isinstance(error, base.EnvironmentFailure) and not in_process:
    print("Run with --noenv_processes to debug it in this process.",
          file=sys.stderr)

