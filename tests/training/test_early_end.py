"""Runs end early, evaluated and saved, and can continue later."""

import json

import numpy as np
import pytest

from agents import configs, training_run
from agents.training import early_end
from agents.training.run_folder import checkpoint, run_folder
from tests.support import command

pytestmark = pytest.mark.usefixtures("eagerly")

_CONFIG = configs.load("pendulum")[1].override(
  {
    "num_envs": 4,
    "env.max_length": 20,
    "eval_episodes": 1,
    "eval_every": 160,
    "eager": True,
    "stagger": False,
    "steps": 960,
    "algorithm.segment_length": 20,
    "algorithm.minibatch_size": 40,
    "algorithm.update_epochs": 1,
  }
)


def _train(tmp_path, **kwargs):
  options = training_run.Options(_CONFIG, "small", str(tmp_path), env_processes=False, **kwargs)
  return training_run.train(options)


@pytest.mark.slow
def test_run_ends_after_the_third_good_evaluation_and_can_continue(tmp_path, capsys):
  ended = _train(tmp_path / "early", end=early_end.EarlyEnd(score=-1e9))
  assert (ended.step, ended.complete, ended.exit_code) == (480, False, 0)
  printed = capsys.readouterr().out
  assert "Ended after 480 steps: the last 3 evaluations have the mean return" in printed
  assert f"To resume: python -m agents train {ended.path}" in printed
  folder = run_folder.RunFolder(ended.path)
  assert checkpoint.step_of(checkpoint.newest(folder.checkpoints)) == 480
  continued = _train(tmp_path, folder=folder)
  assert continued.complete and continued.step == 960
  # Ending early does not change the weights.
  uninterrupted = _train(tmp_path / "whole")
  first, second = (
    checkpoint.load(checkpoint.newest(outcome.path / "checkpoints"))[0]
    for outcome in (continued, uninterrupted)
  )
  assert first.keys() == second.keys()
  for name in first:
    np.testing.assert_array_equal(first[name], second[name], name)


@pytest.mark.slow
def test_run_ends_after_some_minutes_with_an_evaluation(tmp_path, capsys):
  ended = _train(tmp_path, end=early_end.EarlyEnd(minutes=1e-9))
  assert not ended.complete and ended.exit_code == 0 and ended.step == 80
  assert "1e-09 minutes are over" in capsys.readouterr().out
  assert (
    command.rows(ended.path)[-1] | {"phase": "eval", "step": ended.step}
    == (command.rows(ended.path)[-1])
  )


def test_score_is_the_mean_of_the_last_three_evaluations(tmp_path):
  metrics = tmp_path / "metrics.jsonl"
  scores = [9.0, 1.0, None, 2.0, 6.0]
  rows = [{"phase": "eval", "return_mean": score} for score in scores]
  train = {"phase": "train", "return_mean": 99.0}
  metrics.write_text("".join(f"{json.dumps(row)}\n" for row in [*rows, train]))
  assert early_end.EarlyEnd(score=3.0).reason(metrics, True).endswith("mean return 3")
  assert not early_end.EarlyEnd(score=3.1).reason(metrics, True)
  assert not early_end.EarlyEnd(score=3.0).reason(metrics, False)
  metrics.write_text("".join(f"{json.dumps(row)}\n" for row in rows[:2]))
  assert not early_end.EarlyEnd(score=0.0).reason(metrics, True)
