"""`python -m agents` runs the commands, like the installed `batched-ppo`."""

import json
import subprocess
import sys

import pytest

import agents
from agents import __main__


def _run(*args, cwd):
  return subprocess.run(
    [sys.executable, "-m", "agents", *args], cwd=cwd, capture_output=True, text=True, timeout=60
  )


@pytest.mark.parametrize("args, code", [(["--help"], 0), ([], 2), (["x"], 2)])
def test_usage_lists_the_commands(args, code, tmp_path):
  done = _run(*args, cwd=tmp_path)
  assert done.returncode == code
  usage = done.stderr if code else done.stdout
  assert "usage: python -m agents COMMAND ..." in usage
  assert ("Unknown command 'x'." in usage) == (args == ["x"])
  assert all(f"\n  {name}" in usage and text in usage for name, text in __main__.COMMANDS.items())


def test_version_is_that_of_the_package(tmp_path):
  assert _run("--version", cwd=tmp_path).stdout.strip() == agents.__version__


@pytest.mark.parametrize(
  "name, flag",
  [("train", "--resume RUN_DIR"), ("visualize", "--checkpoint NAME"), ("check", "ENV_OR_CONFIG")],
)
def test_help_of_a_command_has_options_and_examples(name, flag, tmp_path):
  done = _run(name, "--help", cwd=tmp_path)
  assert done.returncode == 0
  assert f"usage: python -m agents {name}" in done.stdout
  assert f"python -m agents {name} " in done.stdout.split("examples:")[1]
  assert flag in done.stdout


def test_configs_are_printed_without_creating_files(tmp_path):
  table = _run("list", cwd=tmp_path).stdout
  assert "HalfCheetah-v5" in table
  assert _run("train", "--config", "list", cwd=tmp_path).stdout == table
  done = _run("train", "--config", "cheetah", "--print-config", cwd=tmp_path)
  assert done.returncode == 0
  assert "env.id: HalfCheetah-v5" in done.stdout
  assert _run("config", "cheetah", cwd=tmp_path).stdout == done.stdout
  assert not list(tmp_path.iterdir())


def test_errors_with_json_keep_their_exit_code_and_print_no_document(tmp_path):
  done = _run("config", "cheeta", "--json", cwd=tmp_path)
  assert (done.returncode, done.stdout) == (2, "")
  assert "Did you mean 'cheetah'?" in done.stderr
  done = _run("config", "cheetah", "--json", cwd=tmp_path)
  assert (done.returncode, done.stderr) == (0, "")
  assert json.loads(done.stdout)["config"]["env"]["id"] == "HalfCheetah-v5"
