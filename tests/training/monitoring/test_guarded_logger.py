"""Runs pass everything to their logger, and survive its failures."""

import json
import shutil

import pytest

from agents import build, errors
from agents import config as config_lib
from agents.training import loop as loop_lib
from agents.training.monitoring import guarded_logger, metrics_row
from agents.training.run_folder import checkpoint, run_folder
from tests.loggers import recorders
from tests.support import command, modes

# An epoch has 2 * 10 steps.
_CONFIG = config_lib.Config().override(
  {
    "env.id": "tests.toy:Target",
    "env_processes": False,
    "num_envs": 2,
    "algorithm.segment_length": 10,
    "algorithm.minibatch_size": 20,
    "algorithm.update_epochs": 1,
    "network.policy_layers": [4],
    "network.value_layers": [4],
    "steps": 40,
    "report_every": 20,
    "eval_every": 40,
    "eval_episodes": 1,
    "checkpoint_every": 20,
    "logger": "tests.loggers.recorders:Recorder",
  }
)


def _resume(folder):
  loop = loop_lib.Loop(build.trainer(folder.config, None), folder, bool)
  loop.resume()
  loop.run()


def _rows(folder):
  return [json.loads(line) for line in (folder.path / "metrics.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module", autouse=True)
def eagerly():
  with modes.functions_run_eagerly():
    yield


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
  """Returns the folder of a finished run."""
  folder = run_folder.create(str(tmp_path_factory.mktemp("logdir")), "test", _CONFIG)
  loop = loop_lib.Loop(build.trainer(_CONFIG, None), folder, bool)
  loop.start()
  loop.run()
  return folder


@pytest.fixture
def unfinished(recorded, tmp_path):
  """Returns a copy of the run that lacks the newest checkpoint."""
  folder = run_folder.RunFolder(shutil.copytree(recorded.path, tmp_path / "copy"))
  checkpoint.newest(folder.checkpoints).unlink()
  return folder


@pytest.mark.slow
def test_logger_receives_every_row_of_metrics_and_the_scalars_of_tensorboard(recorded):
  assert recorders.calls(recorded.path, "start") == [[None]]
  written = recorders.calls(recorded.path, "write")
  assert [row for row, _ in written] == _rows(recorded)
  for row, scalars in written:
    assert scalars.get("score/return") == row["return_mean"]
    assert ("losses/policy_loss" in scalars) == (row["phase"] == "train")
  assert len(recorders.calls(recorded.path, "close")) == 1


@pytest.mark.slow
def test_logger_of_a_resumed_run_receives_all_rows_after_the_checkpoint(recorded, unfinished):
  _resume(unfinished)
  assert recorders.calls(unfinished.path, "start") == [[20]]
  assert command.rows(unfinished.path) == command.rows(recorded.path)
  received = [row for row, _ in recorders.calls(unfinished.path, "write")]
  assert received == [row for row in _rows(unfinished) if row["step"] > 20]


@pytest.mark.slow
def test_failing_logger_is_reported_once_and_changes_no_result(recorded, unfinished, capsys):
  unfinished.config = _CONFIG.override({"logger": "tests.loggers.recorders:Failing"})
  _resume(unfinished)
  printed = capsys.readouterr().err
  assert printed.count("Warning, logger=tests.loggers.recorders:Failing failed in write()") == 1
  assert printed.count("ValueError: lost connection at step 40") == 1
  assert 'raise ValueError(f"lost connection' in printed  # Part of the traceback.
  assert "2 call(s) of logger=tests.loggers.recorders:Failing failed." in printed
  assert command.rows(unfinished.path) == command.rows(recorded.path)
  command.assert_same_checkpoints(unfinished.path, recorded.path)


def test_logger_that_cannot_start_ends_a_new_run_and_not_a_resumed_run(tmp_path, capsys):
  config = _CONFIG.override({"logger": "tests.loggers.recorders:NeverStarts"})
  folder = run_folder.create(str(tmp_path), "test", config)
  with pytest.raises(errors.RunError, match="NeverStarts can't start:(.|\n)*no account"):
    guarded_logger.GuardedLogger(folder, None)
  logger = guarded_logger.GuardedLogger(folder, 20)
  logger.write(metrics_row.MetricsRow({"phase": "train", "step": 40}, {}))
  logger.close()
  printed = capsys.readouterr().err.replace("\n", " ")
  assert "ValueError: no account Training continues without the logger" in printed
  assert printed.count("Warning") == 1
