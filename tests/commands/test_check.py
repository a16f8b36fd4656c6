"""`python -m agents check` prints each problem with its fix."""

import json
import sys

import pytest

from agents.commands import check
from agents.commands.checks import environment_checker
from tests.support import command


def _check(*args):
  return command.run_agents("check", *args, cwd=command.ROOT)


@pytest.mark.slow
@pytest.mark.parametrize(
  "args",
  [
    ("humanoid",),
    ("Blackjack-v1",),
    (
      "tests.echo:Echo",
      "--set",
      "env.kwargs.space=nested",
      "--set",
      "network.frame_stack=2",
      "--set",
      "env.max_length=5",
    ),
  ],
)
def test_sound_environments_pass_and_train(args):
  # Compilation would take most of the time.
  done = _check(*args, "--set", "eager=true")
  assert done.returncode == 0, done.stdout
  lines = done.stdout.splitlines()
  assert lines[-1] == "Ready for training."
  assert "ok      trains, saves, loads and continues" in lines
  assert "PROBLEM" not in done.stdout and "steps/s" in lines[-2]


@pytest.mark.slow
def test_problem_is_printed_with_its_fix():
  done = _check("tests.commands.checks.test_environment_checker:Unrepeatable")
  assert done.returncode == 1
  lines = done.stdout.splitlines()
  title = "PROBLEM the same seed repeats an episode"
  assert title in lines
  assert "self.np_random" in lines[lines.index(title) + 2]
  assert "skipped trains, saves, loads and continues: needs the checks above" in lines
  assert done.stdout.count("PROBLEM") == 1
  assert lines[-1].startswith("1 problem to fix before training.")


def _check_with_results(monkeypatch, *results, options=()):
  """Returns the exit code of a check whose results are given."""
  monkeypatch.setattr(environment_checker, "examine", lambda _: results)
  monkeypatch.setattr(sys, "path", [*sys.path])
  return check.main(["CartPole-v1", *options])


def test_output_fits_into_100_columns(monkeypatch, capsys):
  problem = environment_checker.Problem("word " * 50, "text " * 50)
  assert (
    _check_with_results(
      monkeypatch,
      environment_checker.CheckResult("a", [problem] * 2),
      environment_checker.CheckResult("b", [], skipped=True),
    )
    == 1
  )
  lines = capsys.readouterr().out.splitlines()
  assert max(map(len, lines)) <= 100
  assert lines[0] == "PROBLEM a" and lines[1].startswith(" " * 10 + "word word")
  assert lines[-3] == "skipped b: needs the checks above"
  assert lines[-1].startswith("2 problems to fix before training.")


def test_json_has_all_checks_with_problems_and_fixes(monkeypatch, capsys):
  problem = environment_checker.Problem("It is loud.", "Turn it down.")
  result = environment_checker.CheckResult("is quiet", [problem])
  assert _check_with_results(monkeypatch, result, options=["--json"]) == 1
  printed = capsys.readouterr()
  quiet, trains = (document := json.loads(printed.out))["checks"]
  assert not document["ready"] and trains["skipped"]
  assert quiet == {
    "title": "is quiet",
    "problems": [{"description": "It is loud.", "fix": "Turn it down.", "harmless": False}],
    "skipped": False,
  }
  assert "PROBLEM is quiet" in printed.err


def test_error_after_many_steps_is_a_problem(monkeypatch, capsys):
  def fail(_):
    raise RuntimeError("hot motor")

  monkeypatch.setattr(environment_checker, "steps_per_second", fail)
  monkeypatch.setattr(check, "_train_and_resume", lambda _: [])
  assert _check_with_results(monkeypatch) == 1
  output = capsys.readouterr().out
  assert "RuntimeError: hot motor (test_check.py, line " in output
  assert "Ready" not in output


@pytest.mark.slow
@pytest.mark.parametrize(
  "args, text",
  [
    (("nothing.py",), "no Python file"),
    (("cheetah", "--set", "env.idd=x"), "Did you mean 'env.id'"),
    (("Hoper-v5",), "Hopper"),
  ],
)
def test_wrong_names_are_reported(args, text):
  done = _check(*args)
  assert done.returncode != 0 and text in done.stdout, done.stdout
