"""Real runs enter the zoo, play from it, and are verified."""

import dataclasses
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from agents import config as config_lib
from agents import configs
from agents.commands import train, visualize, zoo
from agents.training.run_folder import checkpoint, run_folder
from agents.zoo import add, entries, score, verify
from tests.support import command
from tests.videos import decoding, gl_support

_SCORES = "900,950,1000"


def test_list_shows_task_score_and_size_of_each_entry(capsys):
  assert zoo.main([]) == 0
  table = capsys.readouterr().out
  zoo.main(["list"])
  assert capsys.readouterr().out == table
  entry = entries.read(entries.find("cartpole"))
  (row,) = (line for line in table.splitlines() if line.startswith("cartpole "))
  assert re.search(rf"CartPole-v1 +100,\d+ +{entry.score:.4g} ± .* KB", row)


@pytest.mark.parametrize(
  "args, message",
  [
    (["play", "nothing"], "no policy in the zoo has this name"),
    (["play", "cartpole", "--out", "film.gif"], "--out must end in .mp4"),
    (["play", "cartpole", "--out", "no/film.mp4"], "there is no folder"),
    (["play", "cartpole", "--size", "0"], "--size must be at least 1"),
    (["verify", "nothing"], "no policy in the zoo has this name"),
    (["add", "run", "--scores", "1,x"], "--scores must be numbers"),
    (["add", "run"], "is not a run folder"),
  ],
)
def test_invalid_arguments_are_explained(args, message, capsys, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  with pytest.raises(SystemExit) as error:
    zoo.main(args)
  assert error.value.code == 2
  assert message in capsys.readouterr().err
  assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
  "changes, name, step, message",
  [
    ({}, "default", 100_352, "other settings than the config default: env.id  -> CartPole-v1"),
    ({"num_envs": 2}, "cartpole", 100_352, "other settings than .*: num_envs 16 -> 2"),
    ({}, "cartpole", 50_000, "has not finished: 50,000 of 100,000 steps"),
    ({}, "cartpol", 100_352, "'cartpol' is not a named config. Did you mean 'cartpole'"),
  ],
)
def test_run_that_is_not_that_of_a_named_config_is_rejected(changes, name, step, message, tmp_path):
  _, config = configs.load("cartpole")
  run = run_folder.create(str(tmp_path), "cartpole", config.override({"seed": 3, **changes}))
  checkpoint.save(run.checkpoints, step, {}, {"step": step, "done": {"eval_every": step}})
  with pytest.raises(config_lib.ConfigError, match=message):
    add.add(run, name, tmp_path / "entry")
  assert not (tmp_path / "entry").exists()


def test_entry_cannot_be_resumed_and_the_error_names_the_alternative(capsys):
  path = str(entries.find("cartpole"))
  with pytest.raises(SystemExit) as error:
    train.main([path])
  assert error.value.code == 2
  assert f"Start a new run with its policy: --from {path}." in capsys.readouterr().err


@pytest.mark.parametrize("args", [["--pretrained", "cartpole", "run"], []])
def test_film_needs_either_a_run_or_a_pretrained_policy(args, capsys):
  with pytest.raises(SystemExit) as error:
    visualize.main(args)
  assert error.value.code == 2
  assert "name a run folder, such as ~/logdir, or a --pretrained policy" in capsys.readouterr().err


@pytest.mark.slow
def test_policy_plays_without_tensorflow(tmp_path):
  code = (
    "import sys; from agents.commands import zoo; "
    "assert zoo.main(['play', 'cartpole', '--seconds', '1']) == 0; "
    "print('tensorflow' in sys.modules)"
  )
  done = subprocess.run(
    [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60
  )
  assert done.returncode == 0, done.stderr
  assert "cartpole.mp4: the first 1.0 seconds" in done.stdout
  assert done.stdout.splitlines()[-1] == "False"
  frames, meta = decoding.decode(tmp_path / "cartpole.mp4")
  assert (len(frames), frames.shape[1], meta["fps"]) == (25, 200, 25)
  assert np.abs(np.diff(frames.astype(int), axis=0)).mean() > 0, "The frames are equal."


@pytest.fixture(scope="module")
def verified(tmp_path_factory):
  """Returns the result of `zoo verify debug`, and the run that it trained."""
  folder = tmp_path_factory.mktemp("verified")
  done = command.run_agents("zoo", "verify", "debug", "--logdir", folder / "logdir", cwd=folder)
  return done, run_folder.find(folder / "logdir")


@pytest.fixture(scope="module")
def entry(verified, tmp_path_factory):
  """Returns the folder of an entry that was made on this machine."""
  if not gl_support.egl_works():
    pytest.skip("Films need EGL.")
  folder = tmp_path_factory.mktemp("added")
  _, run = verified
  done = command.run_agents(
    "zoo", "add", run.path, "--out", folder / "debug", "--scores", _SCORES, cwd=folder
  )
  assert done.returncode == 0, done.stdout
  return folder / "debug"


@pytest.mark.slow
def test_policy_of_the_zoo_is_verified_by_training_it_again(verified):
  done, _ = verified
  assert done.returncode == 0, done.stdout
  assert "\nVerified: " in done.stdout


@pytest.mark.slow
def test_added_entry_contains_score_digest_and_film(entry, verified):
  data, (_, run) = entries.read(entry), verified
  assert (data.config, data.task, data.seed) == ("debug", "InvertedPendulum-v5", 0)
  assert data.steps == 8192 and data.episodes == 100
  evaluated = command.rows(run.path)[-1]
  assert abs(data.score - evaluated["return_mean"]) < 150
  assert data.seed_scores == (900, 950, 1000)
  saved, _ = checkpoint.load(checkpoint.newest(entry / "checkpoints"))
  trained, _ = checkpoint.load(checkpoint.newest(run.checkpoints))
  assert all(np.array_equal(array, trained[name]) for name, array in saved.items())
  assert not [name for name in saved if not name.startswith("variable/") or "/adam/" in name]
  frames, _ = decoding.decode(entry / "film.mp4")
  assert frames.shape[1] == 160 and frames.std() > 5
  assert entries.num_bytes(entry) < 150_000


@pytest.mark.slow
def test_equal_machine_needs_equal_bits(entry, verified, tmp_path):
  _, run = verified
  verdict = verify.compare(entry, run)
  assert verdict.verified and "equal bits" in verdict.text
  corrupted = _changed(entry, tmp_path, digest="0" * 64)
  verdict = verify.compare(corrupted, run)
  assert not verdict.verified and "although machine, packages and code are" in verdict.text


@pytest.mark.slow
@pytest.mark.parametrize(
  "interval, verified_by_score, reason",
  [
    ((500.0, 1000.0), True, "the score is in the interval"),
    ((1.0, 2.0), False, "the score is outside of the interval"),
    (None, False, "the entry has no interval"),
  ],
)
def test_other_machine_needs_a_score_in_the_interval(
  interval, verified_by_score, reason, entry, verified, tmp_path, monkeypatch
):
  monkeypatch.setattr(score, "NUM_EPISODES", 4)  # 100 episodes take more time.
  platform = {**entries.read(entry).platform, "processor": "Other 9000"}
  other = _changed(entry, tmp_path, digest="0" * 64, platform=platform, interval=interval)
  verdict = verify.compare(other, verified[1])
  assert "processor Other 9000 -> " in verdict.text
  assert verdict.verified == verified_by_score and reason in verdict.text


def _changed(entry, tmp_path, **changes):
  """Returns a copy of an entry with changes in entry.yaml."""
  copy = shutil.copytree(entry, tmp_path / "copy")
  entries.write(copy, dataclasses.replace(entries.read(copy), **changes))
  return copy
