"""`python -m agents` runs the commands, like the installed `batched-ppo`."""

import subprocess
import sys

import pytest

import agents


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
  assert "train a named config" in usage


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
  assert "HalfCheetah-v5" in _run("train", "--config", "list", cwd=tmp_path).stdout
  done = _run("train", "--config", "cheetah", "--print_config", cwd=tmp_path)
  assert done.returncode == 0
  assert "env.id: HalfCheetah-v5" in done.stdout
  assert not list(tmp_path.iterdir())
