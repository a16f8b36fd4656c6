"""Searches for settings by many runs; see --help."""

from __future__ import annotations

import argparse
import importlib.util
import os
import pathlib
import shlex
import sys
from typing import Any

from agents import config as config_lib
from agents.commands import cli
from agents.commands import settings as settings_lib
from agents.environments.making import make
from agents.environments.workers import pool
from agents.training.faults import interrupts as interrupts_lib

_EXAMPLES = """\
example of a space, in YAML:
  algorithm.learning_rate: {{low: 1e-5, high: 1e-3, log: true}}
  algorithm.update_epochs: {{low: 3, high: 20}}
  network.policy_layers: [[64, 64], [128, 128]]

examples:
  {0} --config cheetah --space space.yaml --trials 50 --steps 3e5
  {0} --config cheetah --space space.yaml --trials 50 --steps 3e5 \\
      --storage postgresql://host/sweeps
"""


def main(argv: list[str] | None = None) -> int:
  parser = _parser()
  args = parser.parse_args(argv)
  sys.path.append(os.getcwd())  # Where users keep their own environments.
  with cli.exit_on_error(parser):
    if not importlib.util.find_spec("optuna"):
      raise config_lib.ConfigError(
          "a sweep needs optuna: pip install 'batch-ppo[sweep]'.")
    with interrupts_lib.Interrupts() as interrupts:
      return _sweep(args, interrupts)


def _parser() -> argparse.ArgumentParser:
  name = cli.command("sweep")
  parser = argparse.ArgumentParser(
      prog=name, description="Search for the settings with which a config "
      "learns best: by many runs, each with settings suggested by what came of "
      "the others, and left off early where it is behind them. The same "
      "command goes on with a sweep, and so it does on other machines that "
      "share its storage.", epilog=_EXAMPLES.format(name), allow_abbrev=False,
      formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument(
      "--config", metavar="NAME", required=True, help="a named config, or the "
      "path of your own .py file")
  parser.add_argument(
      "--preset", metavar="NAME", help="an algorithm in place of the config's")
  parser.add_argument(
      "--space", metavar="FILE", required=True, type=pathlib.Path,
      help="YAML: settings, and the values to try for each")
  parser.add_argument(
      "--trials", metavar="N", type=int, default=50, help="how many runs there "
      "are to be in the whole study (default: 50)")
  parser.add_argument(
      "--storage", metavar="URL", help="database that keeps the study "
      "(default: SQLite, in the study's folder)")
  parser.add_argument(
      "--study", metavar="NAME", help="(default: the config's name)")
  parser.add_argument(
      "--logdir", metavar="DIR", type=pathlib.Path, default="~/logdir/sweeps",
      help="where the study's folder with all runs is made (default: "
      "~/logdir/sweeps)")
  parser.add_argument(
      "--at_once", metavar="N", type=int, default=pool.cores(),
      help="runs side by side, each with a core of its own; 1 has all cores "
      "(default: as many as there are cores)")
  parser.add_argument(
      "--steps", metavar="N", help="budget of a run (default: the config's)")
  parser.add_argument(
      "--seed", metavar="N", help="of the first run; the next ones count on "
      "(default: 0)")
  parser.add_argument(
      "--set", metavar="KEY=VALUE", action="append", default=[],
      help="change a setting of all runs")
  return parser


def _sweep(args: argparse.Namespace, interrupts: interrupts_lib.Interrupts
           ) -> int:
  import optuna  # This, and what uses it, takes a second.

  from agents.sweeps import space as space_lib
  from agents.sweeps import study as study_lib
  from agents.sweeps import trial as trial_lib
  optuna.logging.set_verbosity(optuna.logging.CRITICAL)
  for flag in ("trials", "at_once"):
    if getattr(args, flag) < 1:
      raise config_lib.ConfigError(f"--{flag} must be at least 1.")
  changes = dict(config_lib.parse_setting(text) for text in args.set)
  changes |= {flag: getattr(args, flag) for flag in ("steps", "seed")
              if getattr(args, flag) is not None}
  shared = settings_lib.of_new_run(args.config, args.preset, changes)
  typed = config_lib.flat(shared.config)  # Such as 1e-5, in YAML a text.
  changes = {key: typed.get(key, value) if isinstance(value, str) else value
             for key, value in changes.items()}
  try:
    text = args.space.expanduser().read_text()
  except (OSError, UnicodeDecodeError) as error:
    raise config_lib.ConfigError(f"--space {args.space}: {error}") from None
  space = space_lib.Space(text, str(args.space))
  name = args.study or shared.name
  folder = args.logdir.expanduser() / name
  def build(settings):
    return settings_lib.of_new_run(
        args.config, args.preset, {**changes, **settings}).config
  def arguments(settings):
    preset = ["--preset", args.preset] if args.preset else []
    return ["--config", args.config, *preset, *(
        word for key, value in {**changes, **settings}.items()
        for word in ("--set", config_lib.setting(key, value)))]
  space.check(build)
  trials = trial_lib.Trials(
      build, arguments, space, folder, args.at_once, interrupts)
  for warning in make.check(shared.config.env):
    print(f"Note: {warning}", file=sys.stderr)
  folder.mkdir(parents=True, exist_ok=True)
  storage = args.storage or f"sqlite:///{folder.resolve() / 'study.db'}"
  study = study_lib.Study(
      storage, name, {"space": space.data, **config_lib.flat(shared.config)},
      shared.config.steps // shared.config.every("eval_every"))
  interrupts.farewell = "To go on, run the same command."
  print(f"Study {name} in {storage}: {len(study.ended)} of {args.trials} "
        f"trials are done. Runs: {folder}", flush=True)
  try:
    study.run(trials, args.trials, args.at_once, interrupts, _tell)
  finally:
    _summarize(study)
  if interrupts():
    print(f"Stopped. {interrupts.farewell}")
    return interrupts.exit_code
  print(f"To compare: {cli.command('report')} "
        f"{shlex.quote(str(folder))}",
        f"To watch: tensorboard --logdir {shlex.quote(str(folder))}", sep="\n")
  return 0


def _tell(trial: Any):
  """Print what became of a trial."""
  result = trial.user_attrs.get("why") or f"return {trial.value:,.6g}"
  print(f"Trial {trial.number}: {result}; {_params(trial)}", flush=True)


def _params(trial: Any) -> str:
  return ", ".join(
      f"{key.rpartition('.')[2]}={value:.3g}" if isinstance(value, float)
      else f"{key.rpartition('.')[2]}={value}"
      for key, value in trial.params.items())


def _summarize(study: Any):
  """Print the best trials, and how to train with the settings of the best."""
  best = study.best
  print(f"{len(study.ended)} trials are done, {len(best)} of them to the end.")
  for trial in best[:5]:
    print(f"  {trial.value:>12,.6g}  trial {trial.number}: {_params(trial)}")
  if best:
    arguments = shlex.join(best[0].user_attrs["arguments"])
    print(f"To train with the best: {cli.command('train')} {arguments}")
