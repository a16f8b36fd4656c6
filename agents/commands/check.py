"""Check an environment before training.

The command plays some steps in this process and in worker processes, and then
trains a small run. The exit code is 1 if there are problems to fix.

examples:
  %(prog)s Hopper-v5
  %(prog)s my_package.robot:Robot --set env.kwargs.legs=6
  %(prog)s path/to/robot.py
"""

import functools
import textwrap
from collections.abc import Sequence
from typing import NamedTuple

from agents import config as config_lib
from agents import configs
from agents.commands import parsing
from agents.commands.checks import environment_checker
from agents.environments.making import make
from agents.training.monitoring import quiet_imports

_WIDTH = 100  # Columns of the output.
_INDENT = " " * 10  # Of problems and fixes.


class Outcome(NamedTuple):
  """Results of all checks."""

  ready: bool  # Whether there are no problems to fix before training.
  checks: list[environment_checker.CheckResult]


def main(argv: list[str] | None = None) -> int:
  """Runs the command `check`.

  Args:
    argv: Command-line arguments; None takes the arguments of the process.

  Returns:
    Exit code of the process: 1 if there are problems to fix, else 0.
  """
  parser = parsing.make_parser("check", __doc__)
  option = functools.partial(parsing.option, parser)
  option(
    "name ENV_OR_CONFIG",
    "Gymnasium id, module:Class, name of a config, or path of a config's .py file",
  )
  option(
    "--set KEY=VALUE",
    "change a setting of the config, such as env.max_length=500",
    action="append",
    default=[],
  )
  parsing.add_json(parser, "the problems and their fixes")
  with parsing.parsed(parser, argv) as args:
    parsing.import_from_current_folder()
    if args.name in configs.names() or args.name.endswith(".py"):
      config = configs.load(args.name)[1]
    else:
      config = config_lib.Config().override({"env.id": args.name})
    args.result = check(config.override(parsing.settings(args)))
    return int(not args.result.ready)


def check(config: config_lib.Config) -> Outcome:
  """Checks the environment of a config and prints the results.

  Args:
    config: Config of the small training run.

  Returns:
    Results of all checks.

  Raises:
    ConfigError: If the environment renders observations.
  """
  if config.env.renders:
    raise config_lib.ConfigError(
      "check can't render observations in this process, which imports TensorFlow. Check the "
      "environment without the wrapper Pixels."
    )
  constructor = make.MakeEnv(config.env)
  checks = [_report(result) for result in environment_checker.examine(constructor)]
  skipped = _num_harmful(checks) > 0
  checks.append(
    _report(
      environment_checker.CheckResult(
        "trains, saves, loads and continues", [] if skipped else _train_and_resume(config), skipped
      )
    )
  )
  if not _num_harmful(checks):
    checks.append(_report(_measure_speed(constructor)))
  if num_problems := _num_harmful(checks):
    print(
      f"{num_problems} problem{'s' * (num_problems > 1)} to fix before "
      "training. Then run this command again."
    )
  else:
    print("Ready for training.")
  return Outcome(not num_problems, checks)


def _num_harmful(checks: Sequence[environment_checker.CheckResult]) -> int:
  return sum(result.num_harmful for result in checks)


def _train_and_resume(config: config_lib.Config) -> list[environment_checker.Problem]:
  with quiet_imports.quiet_imports():
    from agents import build
    from agents.commands.checks import training_checker

    build.setup(config)
  try:
    problem = training_checker.find_problem(config)
    fix = (
      "If the config names an algorithm or a network of your own, correct "
      "it. Otherwise please report this."
    )
  except config_lib.ConfigError:
    raise
  except Exception as error:
    problem = environment_checker.describe(error)
    fix = "If the environment did not raise this error, please report it."
  return [environment_checker.Problem(problem, fix)] if problem else []


def _measure_speed(constructor: make.MakeEnv) -> environment_checker.CheckResult:
  try:
    speed = environment_checker.steps_per_second(constructor)
  except Exception as error:  # Only many steps or resets cause it.
    return environment_checker.CheckResult(
      "takes many steps",
      [
        environment_checker.Problem(
          environment_checker.describe(error), "Correct the cause of this error."
        )
      ],
    )
  return environment_checker.CheckResult(f"{speed:,.0f} steps/s in one process", [])


def _report(result: environment_checker.CheckResult) -> environment_checker.CheckResult:
  """Prints the result of a check, and returns it."""
  word = (
    "skipped"
    if result.skipped
    else "PROBLEM"
    if result.num_harmful
    else "note"
    if result.problems
    else "ok"
  )
  reason = ": needs the checks above" if result.skipped else ""
  print(f"{word:8}{result.title}{reason}", flush=True)
  for problem in result.problems:
    for mark, text in (("", problem.description), ("-> ", problem.fix)):
      print(
        textwrap.fill(
          text,
          _WIDTH,
          initial_indent=_INDENT + mark,
          subsequent_indent=_INDENT + " " * len(mark),
          break_long_words=False,
          break_on_hyphens=False,
        ),
        flush=True,
      )
  return result
