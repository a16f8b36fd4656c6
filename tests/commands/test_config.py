"""`config` prints the settings of named configs, files and runs."""

import json
import sys

import pytest

from agents.commands import config, train
from tests.reports import folders


def test_output_equals_that_of_train_with_print_config(capsys):
  changes = ["--preset", "paper", "--set", "num_envs=16"]
  assert config.main(["pendulum", *changes]) == 0
  printed = capsys.readouterr().out
  assert train.main(["--config", "pendulum", *changes, "--print-config"]) == 0
  assert capsys.readouterr().out == printed
  assert "# preset paper" in printed and "# command line" in printed


def test_json_has_the_config_and_the_origin_of_each_setting(capsys):
  assert config.main(["hopper", "--set", "num_envs=16", "--json"]) == 0
  printed = json.loads(capsys.readouterr().out)
  assert printed["name"] == "hopper"
  assert printed["config"]["env"]["id"] == "Hopper-v5" and printed["config"]["num_envs"] == 16
  assert printed["origins"]["env.id"] == "config hopper"
  assert printed["origins"]["num_envs"] == "command line"


def test_settings_of_the_newest_run_in_a_folder(tmp_path, capsys):
  folders.make(tmp_path / "1-cheetah", [1.0], {"seed": 3})
  folders.make(tmp_path / "2-cheetah", [1.0], {"seed": 4})
  assert config.main([str(tmp_path), "--json"]) == 0
  printed = json.loads(capsys.readouterr().out)
  assert (printed["name"], printed["config"]["seed"]) == ("2-cheetah", 4)
  assert set(printed["origins"].values()) == {"config.yaml"}


def test_settings_of_a_config_file(tmp_path, capsys, monkeypatch):
  monkeypatch.setattr(sys, "path", [*sys.path])
  path = tmp_path / "walk.py"
  path.write_text(
    "from agents.configs import default\nCONFIG = default.CONFIG.override({'seed': 7})\n"
  )
  assert config.main([str(path)]) == 0
  assert "seed: 7 " in capsys.readouterr().out


@pytest.mark.parametrize(
  "args, message",
  [
    (["hoper"], "Did you mean 'hopper'?"),
    (["no/such"], "no/such: no run folder or Python file has this name."),
    (["."], "is not a run folder"),
    ([".", "--set", "seed=1"], "--preset and --set can't change an existing run"),
    (["hopper", "--set", "sed=1", "--json"], "Did you mean 'seed'?"),
  ],
)
def test_user_errors_are_printed_in_one_line_without_a_document(
  args, message, tmp_path, capsys, monkeypatch
):
  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr(sys, "path", [*sys.path])
  with pytest.raises(SystemExit) as ended:
    config.main(args)
  assert ended.value.code == 2
  printed = capsys.readouterr()
  assert message in printed.err.splitlines()[-1] and not printed.out
