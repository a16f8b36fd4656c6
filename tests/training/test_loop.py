"""Complete runs: intervals, divergence, failures, interrupts and resuming."""

import contextlib
import pathlib
import re
import shutil
import threading
import tracemalloc

import numpy as np
import pytest
import tensorflow as tf

from agents import build, errors, trained_policy
from agents import config as config_lib
from agents.commands.shared import rollout_policy
from agents.environments.blocks import base
from agents.environments.data import episode_data
from agents.training import loop as loop_lib
from agents.training.faults import crash_folder
from agents.training.run_folder import checkpoint, run_folder
from tests.environments import faulty_envs
from tests.support import command, modes

# An epoch has 2 * 10 steps. No interval is a multiple of 20.
CONFIG = config_lib.Config().override(
  {
    "env.id": "tests.toy:Target",
    "env_processes": False,
    "num_envs": 2,
    "algorithm.segment_length": 10,
    "algorithm.minibatch_size": 20,
    "algorithm.update_epochs": 1,
    "network.policy_layers": [4],
    "network.value_layers": [4],
    "steps": 110,
    "report_every": 30,
    "eval_every": 50,
    "eval_episodes": 1,
    "checkpoint_every": 70,
  }
)


def make(tmp_path, changes=None, **kwargs):
  """Returns the loop of a new run, and its folder."""
  config = CONFIG.override(changes or {})
  folder = run_folder.create(str(tmp_path), "test", config)
  return _loop(folder, **kwargs), folder


def _loop(folder, stop=lambda: False, **kwargs):
  return loop_lib.Loop(build.trainer(folder.config, None), folder, stop, **kwargs)


def _copied_folder(folder, tmp_path):
  shutil.copytree(folder.path, tmp_path / "copy")
  return run_folder.RunFolder(tmp_path / "copy")


def steps(folder, phase):
  return [row["step"] for row in command.rows(folder.path) if row["phase"] == phase]


@pytest.fixture(scope="module", autouse=True)
def eagerly():
  """Runs functions eagerly, because compilation takes longer than the tests."""
  with modes.functions_run_eagerly():
    yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
  loop, folder = make(tmp_path_factory.mktemp("logdir"))
  loop.start()
  loop.run()
  return loop, folder


@pytest.mark.parametrize(
  "name, text",
  [
    ("variable/policy/output/kernel", "The variables of the checkpoint have 100,0"),
    ("recorded/action", "The episodes in the checkpoint have 100,0"),
  ],
)
def test_arrays_that_do_not_fit_the_model_are_refused_before_they_are_read(
  name, text, finished, tmp_path
):
  path = _copied_folder(finished[1], tmp_path).path
  config = CONFIG.override({"env.max_length": 1000})
  (path / "config.yaml").write_text(config_lib.dump(config))
  folder = run_folder.RunFolder(path)
  arrays, metadata = checkpoint.load(checkpoint.newest(folder.checkpoints))
  checkpoint.save(
    folder.checkpoints, 1000, {**arrays, name: np.zeros(100_000_000, np.uint8)}, metadata
  )
  loop = _loop(folder)
  tracemalloc.start()
  try:
    with pytest.raises(config_lib.ConfigError, match=text):
      loop.resume()
    if name.startswith("variable/"):
      with pytest.raises(config_lib.ConfigError, match=text):
        trained_policy.load(folder.path)
      with pytest.raises(config_lib.ConfigError, match=text):
        rollout_policy.play(folder, [checkpoint.newest(folder.checkpoints)], 1, 1, False)
    else:
      assert trained_policy.load(folder.path).step == 1000
    _, peak = tracemalloc.get_traced_memory()
  finally:
    tracemalloc.stop()
  assert peak < 20_000_000


def test_last_epoch_may_exceed_the_budget(finished):
  assert finished[0].step == 120


def test_intervals_are_rounded_up_to_epochs(finished):
  _, folder = finished
  assert steps(folder, "train") == [40, 60, 100, 120]
  assert steps(folder, "eval") == [60, 100, 120]
  saved = [checkpoint.load(path)[1]["step"] for path in checkpoint.paths(folder.checkpoints)]
  assert saved == [0, 80, 120]


def test_policy_with_the_best_evaluation_is_kept(finished):
  loop, folder = finished
  evaluations = {
    row["return_mean"]: row["step"]
    for row in reversed(command.rows(folder.path))
    if row["phase"] == "eval"
  }
  path = checkpoint.find(folder.checkpoints, "best")
  assert checkpoint.step_of(path) == evaluations[max(evaluations)]
  arrays, _ = checkpoint.load(path)
  assert arrays.keys() == {name for name in loop._trainer.state() if name.startswith("variable/")}
  assert loop.metadata()["best_score"] == max(evaluations)


def test_every_training_episode_is_counted_once(finished):
  rows = command.rows(finished[1].path)
  # Each of the 2 environments takes 60 steps, in episodes of 5 steps.
  assert sum(row["episodes"] for row in rows if row["phase"] == "train") == 24


def test_resumed_finished_run_changes_nothing(finished, tmp_path):
  folder = _copied_folder(finished[1], tmp_path)
  before = checkpoint.newest(folder.checkpoints).read_bytes()
  loop = _loop(folder)
  loop.resume()
  loop.run()
  assert loop.step == finished[0].step
  assert command.rows(folder.path) == command.rows(finished[1].path)
  assert checkpoint.newest(folder.checkpoints).read_bytes() == before


@pytest.mark.slow
def test_repeated_divergence_ends_the_run(tmp_path, capsys):
  loop, folder = make(
    tmp_path,
    {
      "algorithm.learning_rate": 1e30,
      "algorithm.update_epochs": 4,
      "algorithm.max_grad_norm": 1e30,
    },
  )
  loop.start()
  message = r"became .* after step 0; its first [1-3] of 4 minibatches had"
  with pytest.raises(errors.TrainingDiverged, match=message):
    loop.run()
  assert (
    capsys.readouterr()
    .err.replace("\n", " ")
    .count("Training continues from the checkpoint of step 0, with other")
    == 3
  )
  for path in checkpoint.paths(folder.checkpoints):
    assert checkpoint.load(path)[1]["step"] == 0


def _corrupt(loop, step, index, value):
  """Sets a weight once, before the epoch that begins at `step`.

  Returns:
    List that is empty until the weight is set.
  """
  epoch, corrupted = loop._trainer.epoch, []

  def set_once():
    if loop.step == step and not corrupted:
      weight = loop._trainer.algorithm.weights[index]
      weight.assign(np.full(weight.shape, value))
      corrupted.append(step)

  def corrupted_epoch(*args):
    set_once()
    return epoch(*args)

  loop._trainer.epoch = corrupted_epoch
  return corrupted


@pytest.mark.slow
def test_single_divergence_repeats_only_steps_after_the_checkpoint(finished, tmp_path, capsys):
  loop, folder = make(tmp_path)
  # Index -1 is a weight of the value network. The last checkpoint has step 80.
  corrupted = _corrupt(loop, 100, -1, np.nan)
  loop.start()
  loop.run()
  assert corrupted and loop.step == 120
  printed = capsys.readouterr().err.replace("\n", " ")
  assert "in the update after step 100; its first 0 of 1 mini" in printed
  assert "continues from the checkpoint of step 80, with other" in printed
  rows, others = command.rows(folder.path), command.rows(finished[1].path)
  assert [row["step"] for row in rows] == [row["step"] for row in others]
  num_before = sum(row["step"] <= 80 for row in rows)
  assert rows[:num_before] == others[:num_before]
  assert rows[-1] != others[-1]  # The random numbers have changed.
  arrays, _ = checkpoint.load(checkpoint.newest(folder.checkpoints))
  assert all(
    np.isfinite(array).all() for name, array in arrays.items() if name.startswith("variable/")
  )


@pytest.mark.slow
def test_infinite_weights_are_never_saved_although_metrics_are_finite(tmp_path, capsys):
  loop, folder = make(tmp_path)
  algorithm, epoch = loop._trainer.algorithm, loop._trainer.epoch
  learn, weight = algorithm.learn, algorithm.weights[0]
  corrupts, corrupted = tf.Variable(False), []

  def corrupting_learn(*args):
    metrics, advantage = learn(*args)
    with tf.control_dependencies(list(metrics.values())):
      weight.assign(tf.where(corrupts, np.inf, weight))
    return metrics, advantage

  def corrupted_epoch(*args):
    corrupts.assign(loop.step == 80 and not corrupted)
    if corrupts.numpy():
      corrupted.append(loop.step)
    return epoch(*args)

  algorithm.learn, loop._trainer.epoch = corrupting_learn, corrupted_epoch
  loop.start()
  loop.run()
  assert corrupted and loop.step == 120
  printed = capsys.readouterr().err.replace("\n", " ")
  assert "A weight became NaN or infinite in the update after step 80" in printed
  assert "Non-finite variables: policy/" in printed
  assert "continues from the checkpoint of step 80, with other" in printed
  for path in checkpoint.paths(folder.checkpoints):
    arrays, _ = checkpoint.load(path)
    assert all(np.isfinite(array).all() for array in arrays.values() if array.dtype.kind == "f")


@pytest.mark.slow
def test_run_with_a_divergence_is_reproducible(tmp_path):
  def train(folder, loop):
    epoch, diverged = loop._trainer.epoch, []

    def diverge(*args):
      result = epoch(*args)
      if loop.step == 20 and not diverged:
        diverged.append(loop.step)
        return result._replace(metrics={**result.metrics, "kl": float("nan")})
      return result

    loop._trainer.epoch = diverge
    loop.start()
    loop.run()
    assert diverged
    return command.rows(folder.path)

  assert train(*reversed(make(tmp_path / "a"))) == train(*reversed(make(tmp_path / "b")))


@pytest.mark.parametrize("num_tolerated", [0, 3])
def test_failing_environment_leaves_checkpoint_and_crash_folders(num_tolerated, tmp_path, capfd):
  loop, folder = make(
    tmp_path,
    {
      "env.id": "tests.toy:Faulty",
      "env.kwargs": {"fault": "raise"},
      "on_env_error": "restart" if num_tolerated else "raise",
      "max_env_restarts": num_tolerated or 10,
    },
  )
  loop.start()
  error = base.EnvironmentFailure if num_tolerated else ValueError
  with pytest.raises(error, match="faulty step") as caught:
    loop.run()
  assert num_tolerated or isinstance(caught.value.__cause__, base.EnvironmentFailure)
  assert checkpoint.newest(folder.checkpoints).name.endswith("0.npz")
  # Tolerated failures are also printed and recorded.
  printed = capfd.readouterr().err.replace("\n", " ")
  reported = re.findall(
    r"Warning, step 0: restart: Environment \d \('Faulty', seed \d+, step 1 "
    r"of its episode\) failed in step\(\): ValueError: faulty step "
    r"\(details: (\S*)\) ",
    printed,
  )
  assert len(reported) == num_tolerated
  reported += re.findall(r"The failure is saved in (\S*)\. ", printed)
  folders = [str(path) for path in (folder.path / "crashes").glob("*")]
  assert sorted(reported) == sorted(folders)
  assert len(reported) == num_tolerated + 1
  for path in folders:
    crash = crash_folder.load(pathlib.Path(path))
    assert crash.config == folder.config
    assert "faulty step" in crash.failure.text
    (failed,) = crash.failure.episodes
    assert len(failed.action) == 2


@pytest.mark.slow
def test_failed_episodes_are_counted_and_not_scored(tmp_path):
  loop, folder = make(
    tmp_path,
    {
      "env.id": "tests.environments.faulty_envs:Breaks",
      "env.kwargs": {},
      "max_env_restarts": 10_000,
      "steps": 60,
    },
  )
  loop.start()
  loop.run()
  rows = command.rows(folder.path)
  restarts = [row["restarts"] for row in rows if row["phase"] == "train"]
  assert restarts == sorted(restarts)
  assert restarts[-1] <= len(list((folder.path / "crashes").iterdir()))
  assert restarts[-1] > 3
  _, metadata = checkpoint.load(checkpoint.newest(folder.checkpoints))
  assert metadata["restarts"] == len(list((folder.path / "crashes").iterdir()))
  for row in rows:
    assert row["return_mean"] is None or np.isfinite(row["return_mean"])


def test_epoch_without_a_valid_step_is_an_error(tmp_path, capsys):
  seed = next(
    seed
    for seed in range(1000)
    if all(
      faulty_envs.Breaks.breaks_at(episode_data.episode_seed(seed, index, 0)) == 1
      for index in range(2)
    )
  )
  loop, folder = make(
    tmp_path,
    {
      "env.id": "tests.environments.faulty_envs:Breaks",
      "env.max_length": 9,
      "algorithm.segment_length": None,
      "algorithm.update_every": 2,
      "algorithm.minibatch_size": None,
      "seed": seed,
    },
  )
  loop.start()
  with pytest.raises(errors.EnvironmentsError, match="All steps of all"):
    loop.run()
  assert checkpoint.newest(folder.checkpoints).name.endswith("0.npz")
  assert capsys.readouterr().err.count("ValueError: broken") == 2


def test_stop_ends_the_run_between_epochs_and_saves(tmp_path):
  epochs = []
  loop, folder = make(tmp_path, stop=lambda: len(epochs) >= 2)
  add = loop._add
  loop._add = lambda *args: (epochs.append(1), add(*args))
  loop.start()
  loop.run()
  assert loop.step == 40
  _, metadata = checkpoint.load(checkpoint.newest(folder.checkpoints))
  assert metadata["step"] == 40


class _SaveDuringEpoch:
  """Context of an epoch that saves in another thread, after the update."""

  def __init__(self):
    self.num_saved = 0

  def attach(self, loop):
    algorithm = loop._trainer.algorithm
    learn = algorithm.learn

    def learn_and_save(*args):
      result = learn(*args)
      thread = threading.Thread(target=self._save)
      thread.start()
      thread.join()
      self.num_saved += 1
      return result

    algorithm.learn = learn_and_save

  @contextlib.contextmanager
  def __call__(self, save):
    self._save = save
    yield


@pytest.mark.slow
def test_save_during_an_epoch_writes_the_state_before_the_epoch(tmp_path):
  changes = {"checkpoint_every": 20}
  undisturbed, expected_folder = make(tmp_path / "undisturbed", changes)
  undisturbed.start()
  undisturbed.run()
  save = _SaveDuringEpoch()
  loop, folder = make(tmp_path / "saved", {"checkpoint_every": 1000}, save_on_timeout=save)
  save.attach(loop)
  loop.start()
  loop.run()
  assert save.num_saved == 6
  assert command.rows(folder.path) == command.rows(expected_folder.path)
  paths = checkpoint.paths(folder.checkpoints)
  assert [checkpoint.step_of(path) for path in paths] == [0, 20, 40, 60, 80, 100, 120]
  for path in paths:
    arrays, metadata = checkpoint.load(path)
    expected, expected_metadata = checkpoint.load(expected_folder.checkpoints / path.name)
    assert arrays.keys() == expected.keys()
    for name, array in arrays.items():
      assert array.tobytes() == expected[name].tobytes(), name
    for name in ("step", "scores", "lengths", "reward_parts", "health"):
      assert metadata[name] == expected_metadata[name]
    for name in ("report_every", "eval_every"):
      assert metadata["done"][name] == expected_metadata["done"][name]


@pytest.mark.slow
def test_resumed_run_repeats_an_interrupted_last_evaluation(finished, tmp_path):
  interrupted = []
  loop, folder = make(tmp_path, stop=lambda: bool(interrupted))
  evaluate = loop._trainer.evaluate

  def interrupt_last(*args):
    if loop.step == 120:
      interrupted.append(1)
    return evaluate(*args)

  loop._trainer.evaluate = interrupt_last
  loop.start()
  loop.run()
  assert loop.step == 120 and not loop.complete
  assert steps(folder, "eval") == [60, 100]
  for _ in range(2):  # The second resume has nothing left to do.
    loop = _loop(folder)
    loop.resume()
    loop.run()
    assert loop.complete
    assert command.rows(folder.path) == command.rows(finished[1].path)
    command.assert_same_checkpoints(folder.path, finished[1].path)


def test_resume_skips_a_damaged_checkpoint(finished, tmp_path, capsys):
  copy = _copied_folder(finished[1], tmp_path)
  damaged = checkpoint.newest(copy.checkpoints)
  damaged.write_bytes(damaged.read_bytes()[:-100])
  loop = _loop(copy)
  loop.resume()
  assert loop.step < 120 and str(damaged) in capsys.readouterr().err
  loop.run()
  assert command.rows(copy.path) == command.rows(finished[1].path)
  command.assert_same_checkpoints(copy.path, finished[1].path)


def test_resume_rejects_other_networks_than_those_of_the_checkpoint(finished, tmp_path):
  path = _copied_folder(finished[1], tmp_path).path
  text = (path / "config.yaml").read_text()
  (path / "config.yaml").write_text(text.replace("- 4", "- 5"))
  with pytest.raises(config_lib.ConfigError, match="checkpoint do not fit"):
    _loop(run_folder.RunFolder(path)).resume()


def test_environment_failure_in_a_replay_raises_the_original_error(tmp_path):
  loop, folder = make(
    tmp_path,
    {
      "env.id": "tests.toy:Faulty",
      "env.kwargs": {"fault": "none"},
      "algorithm.segment_length": 4,
      "algorithm.minibatch_size": 8,
      "env.max_length": 50,
      "steps": 8,
    },
  )
  loop.start()
  loop.run()
  text = (folder.path / "config.yaml").read_text()
  (folder.path / "config.yaml").write_text(text.replace("fault: none", "fault: reset"))
  with pytest.raises(ValueError, match="faulty reset") as caught:
    _loop(run_folder.RunFolder(folder.path)).resume()
  assert isinstance(caught.value.__cause__, base.EnvironmentFailure)
  (crash,) = (folder.path / "crashes").iterdir()
  assert len(crash_folder.load(crash).failure.episodes) == 1


def _changed(finished, tmp_path, change):
  """Copies the run and changes its newest checkpoint; returns the new loop."""
  folder = _copied_folder(finished[1], tmp_path)
  arrays, metadata = checkpoint.load(checkpoint.newest(folder.checkpoints))
  change(arrays, metadata)
  checkpoint.save(folder.checkpoints, metadata["step"], arrays, metadata)
  return _loop(folder)


@pytest.mark.parametrize("missing", ["health", "reward_parts", "files"])
def test_missing_metadata_is_an_error(missing, finished, tmp_path):
  loop = _changed(finished, tmp_path, lambda _, metadata: metadata.pop(missing))
  with pytest.raises(config_lib.ConfigError, match=f"do not fit: metadata lacks {missing}."):
    loop.resume()


@pytest.mark.parametrize(
  "change",
  [
    lambda _, metadata: metadata.update(surplus=1),
    lambda arrays, _: arrays.update(surplus=np.ones(2)),
    lambda arrays, _: arrays.update({"episodes/surplus": np.ones(2)}),
    lambda arrays, _: arrays.update({"variable/surplus": np.ones(2)}),
  ],
)
def test_unknown_arrays_and_metadata_are_errors(change, finished, tmp_path):
  loop = _changed(finished, tmp_path, change)
  with pytest.raises(config_lib.ConfigError, match="surplus"):
    loop.resume()


@pytest.mark.parametrize("optional", ["restarts", "config"])
def test_metadata_added_by_later_versions_may_be_missing(optional, finished, tmp_path):
  loop = _changed(finished, tmp_path, lambda _, metadata: metadata.pop(optional))
  loop.resume()
  assert loop.step == 120


def _replace_settings(folder, *replacements):
  """Changes the text of config.yaml, and returns the changed run folder."""
  path = folder.path / "config.yaml"
  text = path.read_text()
  for before, after in replacements:
    assert before in text
    text = text.replace(before, after)
  path.write_text(text)
  return run_folder.RunFolder(folder.path)


def test_resume_prints_settings_that_differ_from_the_checkpoint(finished, tmp_path, capsys):
  folder = _replace_settings(
    _copied_folder(finished[1], tmp_path),
    ("steps: 110", "steps: 130"),
    ("learning_rate: 0.0003", "learning_rate: 0.1"),
  )
  _loop(folder).resume()
  assert capsys.readouterr().err == (
    "Settings that differ from those of the checkpoint: algorithm.learning_rate 0.0003 -> 0.1.\n"
  )


def test_resumed_run_begins_new_episodes_where_replays_differ(finished, tmp_path, capsys):
  folder = _replace_settings(
    _copied_folder(finished[1], tmp_path),
    ("steps: 110", "steps: 130"),
    ("extended_from: []", "extended_from: [110]"),
  )
  arrays, metadata = checkpoint.load(checkpoint.newest(folder.checkpoints))
  arrays["episodes/score"][1] += 1
  checkpoint.save(folder.checkpoints, 120, arrays, metadata)
  loop = _loop(folder)
  loop.resume()
  printed = capsys.readouterr().err.replace("\n", " ")
  assert printed.startswith("Warning, step 120: restart: New episodes begin in 1 of 2 environments")
  assert "'tests.toy:Target', index 1), because replays of their episodes led to other" in printed
  (crash,) = (folder.path / "crashes").iterdir()
  assert crash_folder.load(crash).failure.episodes[0].environment == 1
  loop.run()
  assert loop.complete and loop.step == 140


def test_extension_of_a_run_prints_no_settings(finished, tmp_path, capsys):
  folder = _replace_settings(
    _copied_folder(finished[1], tmp_path),
    ("steps: 110", "steps: 130"),
    ("extended_from: []", "extended_from: [110]"),
  )
  _loop(folder).resume()
  assert not capsys.readouterr().err


def test_settings_added_by_later_versions_are_no_differences(finished, tmp_path, capsys):
  loop = _changed(finished, tmp_path, lambda _, metadata: metadata["config"].pop("forked_from"))
  loop.resume()
  assert not capsys.readouterr().err
