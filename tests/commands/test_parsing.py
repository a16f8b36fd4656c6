"""Commands in hints can be pasted, and help texts fit the console."""

import importlib
import sys

import pytest

from agents.commands import parsing


@pytest.mark.parametrize(
  "program, train, visualize, check",
  [
    ("train.py", "python train.py", "python visualize.py", "python -m agents check"),
    (
      "/a b/visualize.py",
      "python '/a b/train.py'",
      "python '/a b/visualize.py'",
      "python -m agents check",
    ),
    ("/usr/bin/batched-ppo", "batched-ppo train", "batched-ppo visualize", "batched-ppo check"),
    (
      "/x/agents/__main__.py",
      "python -m agents train",
      "python -m agents visualize",
      "python -m agents check",
    ),
    ("", "python -m agents train", "python -m agents visualize", "python -m agents check"),
  ],
)
def test_printed_commands_match_the_way_the_program_was_started(
  program, train, visualize, check, monkeypatch
):
  monkeypatch.setattr(sys, "argv", [program])
  assert parsing.command("train") == train
  assert parsing.command("visualize") == visualize
  assert parsing.command("check") == check


@pytest.mark.parametrize("name", ["train", "visualize", "report", "export", "sweep", "replay"])
def test_help_fits_120_columns(name, monkeypatch, capsys):
  monkeypatch.setenv("COLUMNS", "100")
  module = importlib.import_module(f"agents.commands.{name}")
  with pytest.raises(SystemExit):
    module.main(["--help"])
  description = capsys.readouterr().out.split("examples:")[0]
  assert max(map(len, description.splitlines())) <= 120
