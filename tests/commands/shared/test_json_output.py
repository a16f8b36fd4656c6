"""With --json, standard output contains only the result."""

import argparse
import json
import pathlib
import subprocess
import sys
from typing import NamedTuple

import pytest

from agents import config as config_lib
from agents.commands.shared import json_output

_SCRIPT = """\
import argparse, os, subprocess, sys
from agents.commands.shared import json_output
args = argparse.Namespace(json=True, result=None)
with json_output.only_result(args):
  print("printed")
  os.write(1, b"native\\n")
  subprocess.run(["echo", "child"], check=True)
  args.result = {"steps": 3}
print("later")
"""


class _Score(NamedTuple):
  run: pathlib.Path
  values: tuple[float, ...]


def _printed(result, capsys):
  args = argparse.Namespace(json=True, result=result)
  with json_output.only_result(args):
    print("text")
  printed = capsys.readouterr()
  assert printed.err == "text\n"
  return json.loads(printed.out)


def test_output_of_the_process_libraries_and_children_goes_to_stderr():
  done = subprocess.run(
    [sys.executable, "-c", _SCRIPT], capture_output=True, text=True, timeout=60, check=True
  )
  document, later, end = done.stdout.rpartition("later\n")
  assert (json.loads(document), later, end) == ({"steps": 3}, "later\n", "")
  assert done.stderr.split() == ["printed", "native", "child"]


def test_results_become_objects_with_absolute_paths_and_valid_numbers(capsys):
  score = _Score(pathlib.Path("logdir"), (1.5, float("inf")))
  assert _printed({"best": score, 3: None}, capsys) == {
    "best": {"run": str(pathlib.Path.cwd() / "logdir"), "values": [1.5, "inf"]},
    "3": None,
  }


def test_config_has_the_structure_of_its_file(capsys):
  config = config_lib.Config().override({"env.id": "Hopper-v5", "network.policy_layers": [8]})
  printed = _printed(config, capsys)
  assert printed["network"]["policy_layers"] == [8]
  assert config_lib.from_data(printed) == config


def test_no_document_follows_an_error(capsys):
  args = argparse.Namespace(json=True, result={"steps": 3})
  with pytest.raises(RuntimeError), json_output.only_result(args):
    raise RuntimeError
  assert not capsys.readouterr().out


def test_without_json_the_output_stays_as_it_is(capsys):
  with json_output.only_result(argparse.Namespace(json=False, result={"steps": 3})):
    print("text")
  assert capsys.readouterr() == ("text\n", "")
