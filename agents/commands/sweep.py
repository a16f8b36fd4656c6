"""Searches for settings with many runs; see --help."""

import argparse
import importlib.util
import pathlib
import shlex
import sys
from typing import Any

from agents import config as config_lib
from agents.commands import cli, run_settings
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


class TrialSettings:
  """Builds the settings of trials from those that all trials share.

  Args:
    name: Name of a config, or path of a Python file with a `CONFIG`.
    preset: Name of a preset, or None.
    changes: Values of all trials by dotted keys.
  Raises:
    ConfigError: If a name is unknown or a value is invalid.
  """

  def __init__(self, name: str, preset: str | None, changes: dict[str, Any]):
    self._name = name
    self._preset = preset
    self.shared = run_settings.of_new_run(name, preset, changes)
    # Options are text. The config contains the converted values, such as the
    # number 1e-5.
    typed = config_lib.flat(self.shared.config)
    self._changes = {
        key: typed.get(key, value) if isinstance(value, str) else value
        for key, value in changes.items()}

  def config(self, suggestions: dict[str, Any]) -> config_lib.Config:
    """Returns the config of a trial.

    Args:
      suggestions: Values of this trial by dotted keys.
    Raises:
      ConfigError: If the values do not fit each other.
    """
    return run_settings.of_new_run(
        self._name, self._preset, {**self._changes, **suggestions}).config

  def arguments(self, suggestions: dict[str, Any]) -> list[str]:
    """Returns the arguments with which `train` runs a trial.

    Args:
      suggestions: Values of this trial by dotted keys.
    """
    arguments = ["--config", self._name]
    if self._preset:
      arguments += ["--preset", self._preset]
    for key, value in {**self._changes, **suggestions}.items():
      arguments += ["--set", config_lib.setting(key, value)]
    return arguments


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
    if not importlib.util.find_spec("optuna"):
      raise config_lib.ConfigError(
          "a sweep needs optuna: pip install 'batch-ppo[sweep]'.")
    for option in ("trials", "at_once"):
      if getattr(args, option) < 1:
        raise config_lib.ConfigError(f"--{option} must be at least 1.")
    with interrupts_lib.Interrupts() as interrupts:
      return _sweep(args, interrupts)


def _parser() -> argparse.ArgumentParser:
  parser = cli.make_parser(
      "sweep", "Search for the settings with which a config learns best. The "
      "results of completed runs suggest the settings of the next ones, and "
      "runs that fall behind stop early. The same command resumes a sweep, and "
      "joins it from other machines that share its storage.", _EXAMPLES)
  parser.add_argument(
      "--config", metavar="NAME", required=True, help="named config, or path "
      "of your own .py file")
  parser.add_argument(
      "--preset", metavar="NAME", help="algorithm that replaces the config's")
  parser.add_argument(
      "--space", metavar="FILE", required=True, type=pathlib.Path,
      help="YAML file with the settings to vary, and their values")
  parser.add_argument(
      "--trials", metavar="N", type=int, default=50, help="number of runs in "
      "the study (default: 50)")
  parser.add_argument(
      "--storage", metavar="URL", help="database of the study (default: SQLite "
      "in the study's folder)")
  parser.add_argument(
      "--study", metavar="NAME", help="(default: the config's name)")
  parser.add_argument(
      "--logdir", metavar="DIR", type=pathlib.Path, default="~/logdir/sweeps",
      help="parent folder of the study's folder with all runs (default: "
      "~/logdir/sweeps)")
  parser.add_argument(
      "--at_once", metavar="N", type=int, default=pool.num_cores(),
      help="number of simultaneous runs, each on a CPU core of its own; 1 uses "
      "all cores (default: the number of cores)")
  parser.add_argument(
      "--steps", metavar="N", help="budget of a run (default: the config's)")
  parser.add_argument(
      "--seed", metavar="N", help="seed of the first run; each further run "
      "adds 1 (default: 0)")
  parser.add_argument(
      "--set", metavar="KEY=VALUE", action="append", default=[],
      help="change a setting of all runs")
  return parser


def _sweep(args: argparse.Namespace, interrupts: interrupts_lib.Interrupts
           ) -> int:
  """Runs the trials that the study still lacks; returns the exit code."""
  import optuna  # This import and the next ones take a second.

  from agents.sweeps import search_space, trial_runner
  from agents.sweeps import study as study_lib
  optuna.logging.set_verbosity(optuna.logging.CRITICAL)
  settings = _trial_settings(args)
  shared = settings.shared
  space = search_space.SearchSpace(_read_space(args.space), str(args.space))
  space.check(settings.config)
  name = args.study or shared.name
  folder = args.logdir.expanduser() / name
  trials = trial_runner.TrialRunner(
      settings.config, settings.arguments, space, folder, args.at_once,
      interrupts)
  for note in make.check(shared.config.env):
    print(f"Note: {note}", file=sys.stderr)
  folder.mkdir(parents=True, exist_ok=True)
  storage = args.storage or f"sqlite:///{folder.resolve() / 'study.db'}"
  study = study_lib.Study(
      storage, name, {"space": space.data, **config_lib.flat(shared.config)},
      shared.config.steps // shared.config.every("eval_every"))
  interrupts.farewell = "To resume, run the same command."
  print(f"Study {name} in {storage}: {len(study.ended)} of {args.trials} "
        f"trials are done. Runs: {folder}", flush=True)
  try:
    study.run(trials, args.trials, args.at_once, interrupts, _print_trial)
  finally:
    _print_summary(study)
  if interrupts():
    print(f"Stopped. {interrupts.farewell}")
    return interrupts.exit_code
  path = shlex.quote(str(folder))
  print(f"To compare: {cli.command('report')} {path}",
        f"To watch: tensorboard --logdir {path}", sep="\n")
  return 0


def _trial_settings(args: argparse.Namespace) -> TrialSettings:
  changes = dict(config_lib.parse_setting(text) for text in args.set)
  changes |= {option: getattr(args, option) for option in ("steps", "seed")
              if getattr(args, option) is not None}
  return TrialSettings(args.config, args.preset, changes)


def _read_space(path: pathlib.Path) -> str:
  try:
    return path.expanduser().read_text()
  except (OSError, UnicodeDecodeError) as error:
    raise config_lib.ConfigError(f"--space {path}: {error}") from None


def _print_trial(trial: Any):
  """Prints the result and the settings of a trial."""
  result = trial.user_attrs.get("why") or f"return {trial.value:,.6g}"
  print(f"Trial {trial.number}: {result}; {_params(trial)}", flush=True)


def _params(trial: Any) -> str:
  return ", ".join(
      f"{key.rpartition('.')[2]}={value:.3g}" if isinstance(value, float)
      else f"{key.rpartition('.')[2]}={value}"
      for key, value in trial.params.items())


def _print_summary(study: Any):
  """Prints the best trials, and the command that trains with the best one."""
  best = study.best
  print(f"{len(study.ended)} trials are done, {len(best)} of them completely.")
  for trial in best[:5]:
    print(f"  {trial.value:>12,.6g}  trial {trial.number}: {_params(trial)}")
  if best:
    arguments = shlex.join(best[0].user_attrs["arguments"])
    print(f"To train with the best: {cli.command('train')} {arguments}")
