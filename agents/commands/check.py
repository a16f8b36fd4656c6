"""Check an environment before training: play some steps in this process and in
worker processes, then train a small run. The exit code is 1 if there are
problems to fix.

examples:
  %(prog)s Hopper-v5
  %(prog)s my_package.robot:Robot --set env.kwargs.legs=6
  %(prog)s path/to/robot.py
"""

import functools

from agents import config as config_lib
from agents import configs
from agents.commands import environment_checker, parsing
from agents.environments.making import make
from agents.training.monitoring import quiet_imports


def main(argv: list[str] | None = None) -> int:
  """Runs the command `check`.

  Args:
    argv: Command-line arguments; None takes the arguments of the process.

  Returns:
    Exit code of the process: 1 if there are problems to fix, else 0.
  """
  parser = parsing.make_parser("check", __doc__)
  option = functools.partial(parsing.option, parser)
  option("name ENV_OR_CONFIG", "Gymnasium id, module:Class, name "
         "of a config, or path of a config's .py file")
  option("--set KEY=VALUE", "change a setting of the config, such "
         "as env.max_length=500", action="append", default=[])
  with parsing.parsed(parser, argv) as args:
    if args.name in configs.names() or args.name.endswith(".py"):
      config = configs.load(args.name)[1]
    else:
      config = config_lib.Config().override({"env.id": args.name})
    return check(config.override(parsing.settings(args)))


def check(config: config_lib.Config) -> int:
  """Checks the environment of a config and prints the results.

  Args:
    config: Config of the small training run.

  Returns:
    Exit code: 1 if there are problems to fix, else 0.
  """
  constructor = make.MakeEnv(config.env)
  problems = []
  for result in environment_checker.examine(constructor):
    problems += _report(result)
  if all(problem.harmless for problem in problems):
    problems += _report(environment_checker.CheckResult(
        "trains, saves, loads and continues", _train_and_resume(config)))
    speed = environment_checker.steps_per_second(constructor)
    print(f"{'':8}{speed:,.0f} steps/s in one process")
  num_harmful = sum(not problem.harmless for problem in problems)
  print(f"{num_harmful} problem(s) to fix before training." if num_harmful
        else "Ready for training.")
  return int(num_harmful > 0)


def _train_and_resume(config: config_lib.Config
                ) -> list[environment_checker.Problem]:
  with quiet_imports.quiet_imports():
    from agents import build
    from agents.commands import training_checker
    build.setup(config)
  try:
    problem, fix = training_checker.find_problem(config), "Please report this."
  except config_lib.ConfigError:
    raise
  except Exception as error:
    problem = f"{type(error).__name__}: {error}"
    fix = "If the environment did not raise this error, please report it."
  return [environment_checker.Problem(problem, fix)] if problem else []


def _report(result: environment_checker.CheckResult
            ) -> list[environment_checker.Problem]:
  """Prints the result of a check and returns the problems in the result."""
  harmless = all(problem.harmless for problem in result.problems)
  word = "PROBLEM" if not harmless else "note" if result.problems else "ok"
  print(f"{word:8}{result.title}", flush=True)
  for problem in result.problems:
    print(f"{'':8}  {problem.description}\n{'':8}  -> {problem.fix}",
          flush=True)
  return result.problems
