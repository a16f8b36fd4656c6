"""Commands in hints can be pasted, and help texts fit the console."""

import importlib
import re
import sys

import pytest

from agents import __main__
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


@pytest.mark.parametrize("name", __main__.COMMANDS)
def test_help_fits_120_columns_and_spells_options_with_dashes(name, monkeypatch, capsys):
  monkeypatch.setenv("COLUMNS", "100")
  module = importlib.import_module(f"agents.commands.{name}")
  with pytest.raises(SystemExit):
    module.main(["--help"])
  text = capsys.readouterr().out
  assert max(map(len, re.split("examples?:", text)[0].splitlines())) <= 120
  assert not re.search(r"--\w+_", text)


def test_underscores_in_the_name_of_an_option_are_read_as_dashes(capsys):
  parser = parsing.make_parser("train", "Train.")
  for usage in ("--num-episodes N", "--out-dir DIR", "--set KEY=VALUE", "paths PATH"):
    parsing.option(parser, usage, "", **({"nargs": "*"} if usage[0] == "p" else {}))
  args = parser.parse_args(
    ["--num_episodes", "3", "--out_dir=a_b", "--set", "num_envs=32", "c_d", "--", "--e_f"]
  )
  assert (args.num_episodes, args.out_dir, args.set) == ("3", "a_b", "num_envs=32")
  assert args.paths == ["c_d", "--e_f"]
  with pytest.raises(SystemExit):
    parser.parse_args(["--num_episodes"])
  assert "argument --num-episodes: expected one argument" in capsys.readouterr().err
