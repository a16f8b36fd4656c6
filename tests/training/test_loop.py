from __future__ import annotations

import pathlib
import re
import shutil

import numpy as np
import pytest

from agents import build
from agents import config as config_lib
from agents import errors
from agents.environments.blocks import base
from agents.environments.data import episodes
from agents.training import loop as loop_lib
from agents.training.faults import crash_folder
from agents.training.run_folder import checkpoint
from agents.training.run_folder import run_folder
from tests import command
from tests import modes
from tests.environments import faulty_envs

# An epoch has 2 * 10 steps, and no interval is a multiple of that.
CONFIG = config_lib.Config().override({
    "env.id": "tests.toy:Target", "env_processes": False, "num_envs": 2,
    "algorithm.segment_length": 10, "algorithm.minibatch_size": 20,
    "algorithm.update_epochs": 1, "network.policy_layers": [4],
    "network.value_layers": [4], "steps": 110, "report_every": 30,
    "eval_every": 50, "eval_episodes": 1, "checkpoint_every": 70})


def make(tmp_path, changes=None, stop=lambda: False):
  config = CONFIG.override(changes or {})
  folder = run_folder.create(str(tmp_path), "test", config)
  return loop_lib.Loop(build.trainer(config, None), folder, stop), folder


def steps(folder, phase):
  return [row["step"] for row in command.rows(folder.path)
          if row["phase"] == phase]


@pytest.fixture(scope="module", autouse=True)
def eagerly():
  """Compiling would take longer than what is learned here."""
  with modes.functions_run_eagerly():
    yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
  loop, folder = make(tmp_path_factory.mktemp("logdir"))
  loop.start()
  loop.run()
  return loop, folder


def test_epoch_that_has_begun_is_finished(finished):
  assert finished[0].step == 120


def test_intervals_are_kept_as_well_as_epochs_allow(finished):
  _, folder = finished
  assert steps(folder, "train") == [40, 60, 100, 120]
  assert steps(folder, "eval") == [60, 100, 120]
  saved = [checkpoint.load(path)[1]["step"]
           for path in checkpoint.paths(folder.checkpoints)]
  assert saved == [0, 80, 120]


def test_every_training_episode_is_counted_once(finished):
  rows = command.rows(finished[1].path)
  # Both environments take 60 steps, in episodes of 5.
  assert sum(row["episodes"] for row in rows if row["phase"] == "train") == 24


def test_finished_runs_have_nothing_left_to_do(finished, tmp_path):
  shutil.copytree(finished[1].path, tmp_path / "copy")
  folder = run_folder.RunFolder(tmp_path / "copy")
  before = checkpoint.newest(folder.checkpoints).read_bytes()
  loop = loop_lib.Loop(build.trainer(folder.config, None), folder, bool)
  loop.resume()
  loop.run()
  assert loop.step == finished[0].step
  assert command.rows(folder.path) == command.rows(finished[1].path)
  assert checkpoint.newest(folder.checkpoints).read_bytes() == before


@pytest.mark.slow
def test_divergence_that_comes_again_ends_the_run(tmp_path, capsys):
  loop, folder = make(tmp_path, {
      "algorithm.learning_rate": 1e30, "algorithm.update_epochs": 4,
      "algorithm.max_grad_norm": 1e30})
  loop.start()
  message = r"became .* after step 0; its first [1-3] of 4 minibatches had"
  with pytest.raises(errors.TrainingDiverged, match=message):
    loop.run()
  told = capsys.readouterr().err
  assert told.count("Going on from the checkpoint of step 0, with other") == 3
  for path in checkpoint.paths(folder.checkpoints):
    assert checkpoint.load(path)[1]["step"] == 0


def _poison(loop, step, index, value, after=False):
  """Set a weight before or after the epoch of a step, and say when it was."""
  epoch, poisoned = loop._trainer.epoch, []
  def set_once():
    if loop.step == step and not poisoned:
      weight = loop._trainer.algorithm.weights[index]
      weight.assign(np.full(weight.shape, value))
      poisoned.append(step)
  def poisonous(*args):
    if not after:
      set_once()
    done = epoch(*args)
    if after:
      set_once()
    return done
  loop._trainer.epoch = poisonous
  return poisoned


def test_divergence_that_does_not_come_again_costs_what_was_not_saved(
    finished, tmp_path, capsys):
  loop, folder = make(tmp_path)
  # Of the value; the last checkpoint is of 80.
  poisoned = _poison(loop, 100, -1, np.nan)
  loop.start()
  loop.run()
  assert poisoned and loop.step == 120
  told = capsys.readouterr().err
  assert "in the update after step 100; its first 0 of 1 minibatches" in told
  assert "Going on from the checkpoint of step 80, with other" in told
  rows, others = command.rows(folder.path), command.rows(finished[1].path)
  assert [row["step"] for row in rows] == [row["step"] for row in others]
  same = [row == other for row, other in zip(rows, others, strict=True)]
  before = [row["step"] <= 80 for row in rows]
  assert same[:sum(before)] == [True] * sum(before)
  assert not same[-1]  # By other random numbers.
  arrays, _ = checkpoint.load(checkpoint.newest(folder.checkpoints))
  assert all(np.isfinite(array).all() for name, array in arrays.items()
             if name.startswith("variable/"))


def test_weights_that_no_metric_has_seen_are_not_acted_with(tmp_path, capsys):
  loop, folder = make(tmp_path)
  poisoned = _poison(loop, 80, 0, np.inf, after=True)  # Of the policy.
  loop.start()
  loop.run()
  assert poisoned and loop.step == 120
  told = capsys.readouterr().err
  assert "A weight became NaN or infinite in the update after step 80" in told
  assert "Not finite are policy/" in told
  assert "Going on from the checkpoint of step 80, with other" in told
  for path in checkpoint.paths(folder.checkpoints):
    arrays, _ = checkpoint.load(path)
    assert all(np.isfinite(array).all() for array in arrays.values()
               if array.dtype.kind == "f")


@pytest.mark.slow
def test_after_a_divergence_a_run_repeats_as_well(tmp_path):
  def train(folder, loop):
    epoch = loop._trainer.epoch
    def diverge(*args):
      done = epoch(*args)
      if loop.step == 20 and not seen:
        seen.append(loop.step)
        return done._replace(metrics={**done.metrics, "kl": float("nan")})
      return done
    loop._trainer.epoch = diverge
    seen = []
    loop.start()
    loop.run()
    assert seen
    return command.rows(folder.path)
  assert train(*reversed(make(tmp_path / "a"))) == train(
      *reversed(make(tmp_path / "b")))


@pytest.mark.parametrize("survived", [0, 3])
def test_failing_environment_leaves_a_checkpoint(survived, tmp_path, capfd):
  loop, folder = make(tmp_path, {
      "env.id": "tests.toy:Faulty", "env.kwargs": {"fault": "raise"},
      "on_env_error": "restart" if survived else "raise",
      "max_env_restarts": survived or 10})
  loop.start()
  error = base.EnvironmentFailure if survived else ValueError
  with pytest.raises(error, match="faulty step") as caught:
    loop.run()
  assert survived or isinstance(
      caught.value.__cause__, base.EnvironmentFailure)
  assert checkpoint.newest(folder.checkpoints).name.endswith("0.npz")
  # What was survived before is told and kept all the same.
  printed = capfd.readouterr().err
  told = re.findall(
      r"Warning, step 0: restart: Environment \d \('Faulty', seed \d+, step 1 "
      r"of its episode\) failed in step\(\): ValueError: faulty step "
      r"\(details: (.*)\)\n", printed)
  assert len(told) == survived
  told += re.findall(r"The failure is saved in (.*)\.\n", printed)
  kept = [str(path) for path in (folder.path / "crashes").glob("*")]
  assert sorted(told) == sorted(kept) and len(told) == survived + 1
  for path in kept:
    crash = crash_folder.load(pathlib.Path(path))
    assert crash.config == folder.config
    assert "faulty step" in crash.failure.text
    broken, = crash.failure.broken
    assert len(broken.action) == 2


def test_broken_episodes_are_counted_and_not_scored(tmp_path):
  loop, folder = make(tmp_path, {
      "env.id": "tests.environments.faulty_envs:Breaks", "env.kwargs": {},
      "max_env_restarts": 10_000, "steps": 60})
  loop.start()
  loop.run()
  rows = command.rows(folder.path)
  restarts = [row["restarts"] for row in rows if row["phase"] == "train"]
  assert restarts == sorted(restarts)
  assert restarts[-1] <= len(list((folder.path / "crashes").iterdir()))
  assert restarts[-1] > 3
  _, facts = checkpoint.load(checkpoint.newest(folder.checkpoints))
  assert facts["restarts"] == len(list((folder.path / "crashes").iterdir()))
  for row in rows:
    assert row["return_mean"] is None or np.isfinite(row["return_mean"])


@pytest.mark.parametrize("in_parts", [False, True])
def test_an_update_without_any_step_is_an_error(in_parts, tmp_path, capsys):
  seed = next(seed for seed in range(1000) if all(
      faulty_envs.Breaks.breaks_at(episodes.episode_seed(seed, index, 0)) == 1
      for index in range(2)))
  loop, folder = make(tmp_path, {
      "env.id": "tests.environments.faulty_envs:Breaks", "env.max_length": 9,
      "algorithm.segment_length": None, "algorithm.update_every": 2,
      "algorithm.minibatch_size": None, "seed": seed})
  loop._trainer._in_parts = in_parts
  loop.start()
  with pytest.raises(errors.EnvironmentsError, match="single step"):
    loop.run()
  assert checkpoint.newest(folder.checkpoints).name.endswith("0.npz")
  assert capsys.readouterr().err.count("ValueError: broken") == 2


def test_stops_between_epochs_and_saves(tmp_path):
  asked = []
  loop, folder = make(tmp_path, stop=lambda: len(asked) >= 2)
  add = loop._add
  loop._add = lambda *args: (asked.append(1), add(*args))
  loop.start()
  loop.run()
  assert loop.step == 40
  _, facts = checkpoint.load(checkpoint.newest(folder.checkpoints))
  assert facts["step"] == 40


def test_a_last_evaluation_that_was_interrupted_is_made_up_for(
    finished, tmp_path):
  asked = []
  loop, folder = make(tmp_path, stop=lambda: bool(asked))
  evaluate = loop._trainer.evaluate
  def interrupted(*args):
    if loop.step == 120:
      asked.append(1)
    return evaluate(*args)
  loop._trainer.evaluate = interrupted
  loop.start()
  loop.run()
  assert loop.step == 120 and not loop.complete
  assert steps(folder, "eval") == [60, 100]
  for _ in range(2):  # What is made up for stays.
    loop = loop_lib.Loop(build.trainer(folder.config, None), folder, bool)
    loop.resume()
    loop.run()
    assert loop.complete
    assert command.rows(folder.path) == command.rows(finished[1].path)
    command.assert_same_checkpoints(folder.path, finished[1].path)


def test_goes_on_from_the_checkpoint_before_a_damaged_one(
    finished, tmp_path, capsys):
  _, folder = finished
  copy = tmp_path / "copy"
  shutil.copytree(folder.path, copy)
  damaged = checkpoint.newest(copy / "checkpoints")
  damaged.write_bytes(damaged.read_bytes()[:-100])
  again = run_folder.RunFolder(copy)
  loop = loop_lib.Loop(build.trainer(again.config, None), again, bool)
  loop.resume()
  assert loop.step < 120 and str(damaged) in capsys.readouterr().err
  loop.run()
  assert command.rows(copy) == command.rows(folder.path)
  command.assert_same_checkpoints(copy, folder.path)


def test_other_networks_than_the_checkpoint_has_are_told(finished, tmp_path):
  _, folder = finished
  copy = tmp_path / "copy"
  shutil.copytree(folder.path, copy)
  text = (copy / "config.yaml").read_text()
  (copy / "config.yaml").write_text(text.replace("- 4", "- 5"))
  changed = run_folder.RunFolder(copy)
  loop = loop_lib.Loop(build.trainer(changed.config, None), changed, bool)
  with pytest.raises(config_lib.ConfigError, match="checkpoint do not fit"):
    loop.resume()


def test_environment_that_fails_in_its_replay_is_blamed_itself(tmp_path):
  loop, folder = make(tmp_path, {
      "env.id": "tests.toy:Faulty", "env.kwargs": {"fault": "none"},
      "algorithm.segment_length": 4, "algorithm.minibatch_size": 8,
      "env.max_length": 50, "steps": 8})
  loop.start()
  loop.run()
  text = (folder.path / "config.yaml").read_text()
  (folder.path / "config.yaml").write_text(
      text.replace("fault: none", "fault: reset"))
  changed = run_folder.RunFolder(folder.path)
  loop = loop_lib.Loop(build.trainer(changed.config, None), changed, bool)
  with pytest.raises(ValueError, match="faulty reset") as caught:
    loop.resume()
  assert isinstance(caught.value.__cause__, base.EnvironmentFailure)
  kept, = (folder.path / "crashes").iterdir()
  assert len(crash_folder.load(kept).failure.broken) == 1


def _changed(finished, tmp_path, change):
  """A loop that resumes from a checkpoint with other facts or arrays."""
  shutil.copytree(finished[1].path, tmp_path / "copy")
  folder = run_folder.RunFolder(tmp_path / "copy")
  arrays, facts = checkpoint.load(checkpoint.newest(folder.checkpoints))
  change(arrays, facts)
  checkpoint.save(folder.checkpoints, facts["step"], arrays, facts)
  return loop_lib.Loop(build.trainer(folder.config, None), folder, bool)


@pytest.mark.parametrize("missing", ["health", "reward_parts", "files"])
def test_checkpoints_of_older_versions_are_told(missing, finished, tmp_path):
  loop = _changed(finished, tmp_path, lambda _, facts: facts.pop(missing))
  with pytest.raises(config_lib.ConfigError,
                     match=f"do not fit: facts lacks {missing}."):
    loop.resume()


@pytest.mark.parametrize("unknown, change", [
    ("moon", lambda _, facts: facts.update(moon=1)),
    ("moon", lambda arrays, _: arrays.update(moon=np.ones(2))),
    ("moon", lambda arrays, _: arrays.update({"episodes/moon": np.ones(2)})),
    ("moon", lambda arrays, _: arrays.update({"variable/moon": np.ones(2)}))])
def test_checkpoints_of_newer_versions_are_told(
    unknown, change, finished, tmp_path):
  loop = _changed(finished, tmp_path, change)
  with pytest.raises(config_lib.ConfigError, match=unknown):
    loop.resume()


@pytest.mark.parametrize("young", ["restarts", "config"])
def test_what_came_later_may_be_missing(young, finished, tmp_path):
  loop = _changed(finished, tmp_path, lambda _, facts: facts.pop(young))
  loop.resume()
  assert loop.step == 120


def test_other_settings_than_the_checkpoint_has_are_told(
    finished, tmp_path, capsys):
  shutil.copytree(finished[1].path, tmp_path / "copy")
  path = tmp_path / "copy" / "config.yaml"
  path.write_text(path.read_text().replace(
      "learning_rate: 0.0003", "learning_rate: 0.1").replace(
          "steps: 110", "steps: 130"))
  folder = run_folder.RunFolder(tmp_path / "copy")
  loop = loop_lib.Loop(build.trainer(folder.config, None), folder, bool)
  loop.resume()
  assert capsys.readouterr().err == (
      "Not the settings that the checkpoint was made with: "
      "algorithm.learning_rate 0.0003 -> 0.1, steps 110 -> 130.\n")
