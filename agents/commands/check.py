"""Is an environment ready to be trained in?"""

from __future__ import annotations

import argparse
import os
import sys

from agents import config as config_lib
from agents import configs
from agents.commands import cli
from agents.commands import environment_checker
from agents.environments.making import make
from agents.training.monitoring import quiet_imports

_EXAMPLES = """\
examples:
  {0} Hopper-v5
  {0} my_package.robot:Robot --set env.kwargs.legs=6
  {0} path/to/robot.py
"""


def main(argv: list[str] | None = None) -> int:
  name = cli.command("check")
  parser = argparse.ArgumentParser(
      prog=name, allow_abbrev=False, epilog=_EXAMPLES.format(name),
      description="See whether an environment can be trained in: it is played, "
      "in this process and in others, and a small run is made of it. The exit "
      "code is 1 if something must be mended.",
      formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument(
      "name", metavar="ENV_OR_CONFIG", help="Gymnasium id, module:Class, name "
      "of a config, or path of a config's .py file")
  parser.add_argument(
      "--set", metavar="KEY=VALUE", action="append", default=[],
      help="change a setting of the config, such as env.max_length=500")
  args = parser.parse_args(argv)
  sys.path.append(os.getcwd())  # Where users keep their own environments.
  with cli.exit_on_error(parser):
    config = _config(args.name).override(
        dict(config_lib.parse_setting(text) for text in args.set))
    return _check(config)


def _config(name: str) -> config_lib.Config:
  if name in configs.names() or name.endswith(".py"):
    return configs.load(name)[1]
  return config_lib.Config().override({"env.id": name})


def _check(config: config_lib.Config) -> int:
  """Print what all checks find and return the exit code."""
  constructor = make.MakeEnv(config.env)
  found = []
  for finding in environment_checker.examine(constructor):
    _tell(finding)
    found += finding.problems
  if all(problem.harmless for problem in found):
    with quiet_imports.quiet_imports():
      from agents import build
      from agents.commands import smoke_test
      build.setup(config)
    finding = environment_checker.Finding(
        "trains, saves, loads and goes on", _rehearse(smoke_test, config))
    _tell(finding)
    found += finding.problems
    print(f"{'':8}{environment_checker.steps_per_second(constructor):,.0f} steps/s in one "
          "process")
  wrong = sum(not problem.harmless for problem in found)
  if wrong:
    print(f"{wrong} problem(s) to mend before training.")
    return 1
  print("Ready to be trained in.")
  return 0


def _rehearse(smoke_test, config: config_lib.Config) -> list[environment_checker.Problem]:
  try:
    problem = smoke_test.run_smoke_test(config)
  except config_lib.ConfigError:
    raise
  except Exception as error:
    return [environment_checker.Problem(
        f"{type(error).__name__}: {error}", "If this is not the environment's "
        "own error, please report it.")]
  return [environment_checker.Problem(problem, "Please report this.")] if problem else []


def _tell(finding: environment_checker.Finding):
  harmless = all(problem.harmless for problem in finding.problems)
  word = "PROBLEM" if not harmless else "note" if finding.problems else "ok"
  print(f"{word:8}{finding.check}", flush=True)
  for problem in finding.problems:
    print(f"{'':8}  {problem.what}\n{'':8}  -> {problem.fix}", flush=True)
