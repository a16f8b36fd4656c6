r"""Search for the settings with which a config learns best.

The results of earlier runs suggest the settings of new runs, and runs with low
scores stop early. With --sampler pbt, copies of good runs replace bad runs
during training, and continue with other settings. Repeat the command to resume
a sweep. With --sampler tpe, run it on other machines with the same --storage to
share the sweep.

example of a search space, in YAML:
  algorithm.learning_rate: {low: 1e-5, high: 1e-3, log: true}
  algorithm.update_epochs: {low: 3, high: 20}
  network.policy_layers: [[64, 64], [128, 128]]

examples:
  %(prog)s --config cheetah --space space.yaml --trials 50 --steps 3e5
  %(prog)s --config cheetah --space space.yaml --trials 50 --steps 3e5 \
      --storage postgresql://host/sweeps
  %(prog)s --config cheetah --space space.yaml --sampler pbt --population 8
"""

import argparse
import dataclasses
import functools
import importlib.util
import pathlib
import shlex
import sys
from collections.abc import Sequence
from typing import Any

from agents import config as config_lib
from agents.commands import parsing
from agents.commands.shared import merge_settings
from agents.environments.making import make
from agents.environments.workers import pool
from agents.training.faults import interrupts as interrupts_lib
from agents.training.run_folder import run_lock


def main(argv: list[str] | None = None) -> int:
  """Runs the command `sweep`.

  Args:
    argv: Command-line arguments; None takes the arguments of the process.

  Returns:
    Exit code of the process.
  """
  parser = parsing.make_parser("sweep", __doc__)
  option = functools.partial(parsing.option, parser)
  option("--config NAME", "named config, or path of your own .py file", required=True)
  parsing.add_preset(parser)
  option(
    "--space FILE",
    "YAML file with the search space: settings, and the values to try",
    required=True,
    type=pathlib.Path,
  )
  option(
    "--sampler",
    "tpe: train each run from the beginning, and stop bad runs early; pbt: population-based "
    "training, which changes settings during training (default: tpe)",
    choices=("tpe", "pbt"),
    default="tpe",
  )
  option("--trials N", "tpe: number of runs in the study (default: 50)", type=int)
  option("--population N", "pbt: number of policies (default: 8)", type=int)
  option(
    "--generations N",
    "pbt: number of parts of the budget, after which bad policies are replaced (default: 10)",
    type=int,
  )
  option("--storage URL", "database of the study (default: SQLite in the study's folder)")
  option("--study NAME", "name of the study (default: the config's name)")
  option(
    "--logdir DIR",
    "parent folder of the study's folder, which contains all runs (default: ~/logdir/sweeps)",
    type=pathlib.Path,
    default="~/logdir/sweeps",
  )
  option(
    "--at-once N",
    "number of simultaneous runs, one per CPU core; with "
    "1, the run uses all cores (default: the number of cores)",
    type=int,
    default=pool.num_cores(),
  )
  option("--steps N", "budget of each run in environment steps (default: the budget in the config)")
  option(
    "--seed N", "seed of the first run; the seed of each further run is one higher (default: 0)"
  )
  option("--set KEY=VALUE", "change a setting of all runs", action="append", default=[])
  parsing.add_json(parser, "the complete trials, the best one first,")
  with parsing.parsed(parser, argv) as args:
    parsing.import_from_current_folder()
    if not importlib.util.find_spec("optuna"):
      raise config_lib.ConfigError("a sweep needs optuna: pip install 'batched-ppo[sweep]'.")
    parsing.check_counts(args, "trials", "population", "generations", "at_once")
    with interrupts_lib.Interrupts() as interrupts:
      return _sweep(args, interrupts)


def _sweep(args: argparse.Namespace, interrupts: interrupts_lib.Interrupts) -> int:
  """Runs the remaining trials of the study; returns the exit code."""
  import optuna  # This import and the next ones take a second.

  from agents.sweeps import population as population_lib
  from agents.sweeps import search_space, trial_runner
  from agents.sweeps import study as study_lib

  optuna.logging.set_verbosity(optuna.logging.CRITICAL)
  source = args.config, args.preset
  changes = parsing.settings(args, "steps", "seed")
  shared = merge_settings.of_new_run(*source, changes)
  space = search_space.SearchSpace(_read_space(args.space), str(args.space))
  population = _population(args, shared.config, space.data)
  # Values of options are text; the config contains the converted values.
  typed = config_lib.flat(shared.config)
  changes = {
    key: typed.get(key, value) if isinstance(value, str) else value
    for key, value in changes.items()
  }
  if population:
    changes["steps"] = -(-shared.config.steps // population.generations)
    # Settings that adapt to the budget must fit to all generations together.
    changes |= {
      key: typed[key]
      for key, origin in shared.origins.items()
      if origin == merge_settings.TASK_AND_BUDGET
    }

  def build_config(suggestions: dict[str, Any]) -> config_lib.Config:
    return merge_settings.of_new_run(*source, changes | suggestions).config

  space.check(build_config)
  name = args.study or shared.name
  folder = args.logdir.expanduser().absolute() / name
  arguments = functools.partial(_arguments, *source, changes)
  trials = trial_runner.TrialRunner(
    build_config, arguments, space, folder, args.at_once, interrupts
  )
  for note in make.check(shared.config.env):
    print(f"Note: {note}", file=sys.stderr)
  folder.mkdir(parents=True, exist_ok=True)
  storage = args.storage or f"sqlite:///{folder.resolve() / 'study.db'}"
  sampler: optuna.samplers.BaseSampler = optuna.samplers.TPESampler()
  num_evaluations = shared.config.steps // shared.config.every("eval_every")
  pruner: optuna.pruners.BasePruner = optuna.pruners.MedianPruner(
    n_warmup_steps=num_evaluations // 4
  )
  num_trials = args.trials or 50
  if population:
    trials.parent = population.parent
    sampler = population_lib.PopulationSampler(population)
    pruner = optuna.pruners.NopPruner()
    num_trials = population.size * population.generations
  about = {"space": space.data, "population": population and dataclasses.asdict(population)}
  study = study_lib.Study(storage, name, about | typed, sampler, pruner)
  interrupts.farewell = "To resume, run the same command."
  print(
    f"Study {name} in {storage}: {len(study.ended)} of {num_trials} "
    f"trials have ended. Runs: {folder}",
    flush=True,
  )
  try:
    if population:
      with run_lock.locked(folder):
        population_lib.run(study, population, trials, args.at_once, _print_trial)
    else:
      study.run(trials, num_trials, args.at_once, interrupts, _print_trial)
  finally:
    _print_summary(study, trials)
  args.result = _result(name, trials, study)
  if interrupts():
    print(f"Stopped. {interrupts.farewell}")
    return interrupts.exit_code
  path = shlex.quote(str(folder))
  print(
    f"To compare: {parsing.command('report')} {path}",
    f"To watch: tensorboard --logdir {path}",
    sep="\n",
  )
  return 0


def _population(args: argparse.Namespace, config: config_lib.Config, space: Any) -> Any:
  """Returns the `population.Population` of --sampler pbt, or None.

  Raises:
    ConfigError: If the options, the search space or the config do not fit the
      sampler.
  """
  other = ("population", "generations") if args.sampler == "tpe" else ("trials", "storage")
  for option in other:
    if getattr(args, option):
      raise config_lib.ConfigError(f"--{option} can't be combined with --sampler {args.sampler}.")
  if args.sampler == "tpe":
    return None
  if args.population == 1:
    raise config_lib.ConfigError("--population must be at least 2, to replace bad policies.")
  for key in space:
    if not key.startswith("algorithm.") or key in ("algorithm.type", "algorithm.lr_schedule"):
      raise config_lib.ConfigError(
        f"{args.space}: {key} can't change during training. With --sampler pbt, the search space "
        "contains settings of the algorithm, without algorithm.type and algorithm.lr_schedule."
      )
  if config.algorithm.lr_schedule in ("linear", "kl_adaptive_linear"):
    raise config_lib.ConfigError(
      f"algorithm.lr_schedule={config.algorithm.lr_schedule} would lower the learning rate to 0 in "
      "each generation. Add --set algorithm.lr_schedule=constant, or kl_adaptive."
    )
  from agents.sweeps import population

  return population.Population(args.population or 8, args.generations or 10, config.seed)


def _result(name: str, trials: Any, study: Any) -> dict[str, Any]:
  """Returns the state of a study, with the complete trials by their scores."""
  best = [
    {
      "trial": trial.number,
      "score": trial.value,
      "settings": trial.params,
      "arguments": trial.user_attrs["arguments"],  # Arguments of `train`.
      "folder": trials.folder(trial),
    }
    for trial in study.best
  ]
  return {"study": name, "folder": trials.logdir, "ended": len(study.ended), "best": best}


def _read_space(path: pathlib.Path) -> str:
  try:
    return path.expanduser().read_text()
  except (OSError, UnicodeDecodeError) as error:
    raise config_lib.ConfigError(f"--space {path}: {error}") from None


def _arguments(
  name: str, preset_names: Sequence[str], changes: dict[str, Any], suggestions: dict[str, Any]
) -> list[str]:
  """Returns the command-line arguments of `train` for a trial."""
  arguments = ["--config", name]
  for preset in preset_names:
    arguments += ["--preset", preset]
  for key, value in (changes | suggestions).items():
    arguments += ["--set", config_lib.setting(key, value)]
  return arguments


def _print_trial(trial: Any) -> None:
  """Prints the result and the settings of a trial."""
  result = trial.user_attrs.get("why") or f"return {trial.value:,.6g}"
  print(f"Trial {trial.number}: {result}; {_params(trial)}", flush=True)


def _params(trial: Any) -> str:
  short = {key.rpartition(".")[2]: value for key, value in trial.params.items()}
  texts = {key: f"{x:.3g}" if isinstance(x, float) else str(x) for key, x in short.items()}
  return ", ".join(f"{key}={text}" for key, text in texts.items())


def _print_summary(study: Any, trials: Any) -> None:
  """Prints the best trials, and commands for the best one."""
  best = study.best
  print(f"{len(study.ended)} trials have ended; {len(best)} of them are complete.")
  for trial in best[:5]:
    print(f"  {trial.value:>12,.6g}  trial {trial.number}: {_params(trial)}")
  if best:
    # The settings of a policy of a population have changed during training.
    if not trials.parent:
      arguments = shlex.join(best[0].user_attrs["arguments"])
      print(f"To train with the best: {parsing.command('train')} {arguments}")
    folder = shlex.quote(str(trials.folder(best[0])))
    print(f"To continue with the best: {parsing.command('train')} --from {folder}")
