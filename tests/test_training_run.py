"""Python code can train, resume and stop a run without the command line."""

import os
import signal

import pytest

from agents import config as config_lib
from agents import configs, training_run
from agents.training.faults import interrupts as interrupts_lib
from agents.training.run_folder import checkpoint, run_folder
from tests.support import command

pytestmark = pytest.mark.usefixtures("eagerly")


@pytest.fixture
def config():
  """Returns a config in which each update learns from four whole episodes."""
  return configs.load("pendulum")[1].override(
    {
      "num_envs": 4,
      "env.max_length": 20,
      "eval_episodes": 1,
      "eager": True,
      "stagger": False,
      "steps": 160,
      "algorithm.segment_length": 20,
      "algorithm.minibatch_size": 40,
      "algorithm.update_epochs": 1,
    }
  )


def _options(config, tmp_path, **kwargs):
  return training_run.Options(config, "small", str(tmp_path), env_processes=False, **kwargs)


@pytest.mark.slow
def test_outcome_of_a_complete_run_and_of_its_extension(config, tmp_path, capsys):
  outcome = training_run.train(_options(config, tmp_path))
  assert (outcome.step, outcome.complete, outcome.exit_code) == (160, True, 0)
  assert outcome.path == command.run_folder(tmp_path)
  folder = run_folder.RunFolder(outcome.path)
  assert folder.config == config  # `env_processes` is still true.
  longer = config.override({"steps": 240, "extended_from": [160]})
  extended = training_run.train(_options(longer, tmp_path, folder=folder))
  assert extended == outcome._replace(step=240)
  assert run_folder.RunFolder(outcome.path).config == longer
  assert "Finished 240 steps." in capsys.readouterr().out


def test_outcome_of_an_interrupted_run(config, tmp_path, capsys):
  with interrupts_lib.Interrupts() as interrupts:
    interrupts.signum = signal.SIGTERM
    outcome = training_run.train(_options(config, tmp_path), interrupts)
  assert not outcome.complete
  assert outcome.exit_code == 128 + signal.SIGTERM
  assert f"train {outcome.path}" in capsys.readouterr().out


def test_relative_logdir_stays_valid_if_an_environment_changes_the_current_folder(
  config, tmp_path, monkeypatch
):
  monkeypatch.chdir(tmp_path)
  elsewhere = tmp_path / "elsewhere"
  elsewhere.mkdir()
  config = config.override(
    {
      "env.id": "tests.environments.faulty_envs:ChangesFolder",
      "env.kwargs": {"path": str(elsewhere)},
    }
  )
  with interrupts_lib.Interrupts() as interrupts:
    interrupts.signum = signal.SIGTERM
    outcome = training_run.train(training_run.Options(config, "x", "logs", None, False), interrupts)
  assert outcome.path.parent == tmp_path / "logs"
  assert checkpoint.paths(outcome.path / "checkpoints")
  assert not list(elsewhere.iterdir())


def test_error_while_building_the_trainer_leaves_no_run_folder(config, tmp_path, monkeypatch):
  from agents import build

  def fail(*_):
    raise config_lib.ConfigError("no trainer")

  monkeypatch.setattr(build, "trainer", fail)
  with pytest.raises(config_lib.ConfigError, match="no trainer"):
    training_run.train(_options(config, tmp_path))
  assert not list(tmp_path.iterdir())


def test_environments_that_fail_only_in_workers_leave_no_run_folder(config, tmp_path):
  config = config.override(
    {
      "env.id": "tests.environments.faulty_envs:FailsInWorkers",
      "env.kwargs": {"pid": os.getpid()},
      "num_workers": 1,
    }
  )
  with pytest.raises(ValueError, match="faulty constructor") as error:
    training_run.train(training_run.Options(config, "small", str(tmp_path)))
  assert "Environment 0" in str(error.value.__cause__)
  assert not list(tmp_path.iterdir())
