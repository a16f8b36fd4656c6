"""Runs `python -m agents check` in separate processes."""

import pytest

from tests import command


def _check(*args):
  return command.run_agents("check", *args, cwd=command.ROOT)


@pytest.mark.slow
@pytest.mark.parametrize("args", [
    ("humanoid",), ("Blackjack-v1",),
    ("tests.echo:Echo", "--set", "env.kwargs.space=nested", "--set",
     "network.frame_stack=2", "--set", "env.max_length=5")])
def test_sound_environments_pass_and_train(args):
  done = _check(*args)
  assert done.returncode == 0, done.stdout
  lines = done.stdout.splitlines()
  assert lines[-1] == "Ready for training."
  assert "ok      trains, saves, loads and continues" in lines
  assert "PROBLEM" not in done.stdout and "steps/s" in lines[-2]


@pytest.mark.slow
def test_problem_is_printed_with_its_fix():
  done = _check("tests.commands.test_environment_checker:Unrepeatable")
  assert done.returncode == 1
  lines = done.stdout.splitlines()
  title = "PROBLEM the same seed repeats an episode"
  assert title in lines
  assert "self.np_random" in lines[lines.index(title) + 2]
  assert lines[-1].endswith("problem(s) to fix before training.")
  assert "trains" not in "".join(lines[:-1])


@pytest.mark.slow
@pytest.mark.parametrize("args, text", [
    (("nothing.py",), "no Python file"),
    (("cheetah", "--set", "env.idd=x"), "Did you mean 'id'"),
    (("Hoper-v5",), "Hopper")])
def test_wrong_names_are_reported(args, text):
  done = _check(*args)
  assert done.returncode != 0 and text in done.stdout, done.stdout
