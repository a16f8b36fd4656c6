"""Films are decoded again and looked at."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from agents import config as config_lib
from agents.commands import replay
from agents.training.monitoring import episode_recorder
from agents.training.run_folder import checkpoint
from agents.training.run_folder import run_folder
from tests import command
from tests.videos import decoding
from tests.videos import gl_support


def check_film(path, length):
  frames, meta = decoding.decode(path)
  assert meta["codec"].startswith("h264")
  assert len(frames) == length
  assert frames.std() > 5, "There is nothing to see."
  moving = np.abs(np.diff(frames.astype(int), axis=0)).mean((1, 2, 3))
  assert np.median(moving) > 0, "Nothing moves."
  return meta


def check_seen(folder, played):
  """Check that the evaluation has seen this episode, one of a few, too."""
  evaluated = command.rows(folder)[-1]
  assert (evaluated["return_min"] - 1 <= played["return"]
          <= evaluated["return_max"] + 1)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["mean", "sampled"])
def test_films_of_a_run(finished, policy, tmp_path):
  outdir = tmp_path / "films"
  done = command.run(
      "visualize.py", "--logdir", finished[0], "--outdir", outdir,
      "--num_episodes", "2", "--policy", policy, cwd=tmp_path)
  assert done.returncode == 0, done.stdout
  episodes = json.loads((outdir / "episodes.json").read_text())
  assert [episode["length"] for episode in episodes] == [200, 200]
  for episode in episodes:
    meta = check_film(outdir / episode["file"], 200)
    assert meta["fps"] == 30
    assert f"return {episode['return']:.1f}, 200 steps" in done.stdout
  if policy == "mean":
    check_seen(finished[0], episodes[0])
  assert {path.name for path in outdir.iterdir()} == {
      "episodes.json", *(episode["file"] for episode in episodes)}


@pytest.mark.slow
def test_plays_the_episodes_of_the_evaluation(finished_paper, tmp_path):
  """Rebuilt from the folder alone, the policy scores what training saw."""
  folder = tmp_path / "elsewhere"
  shutil.copytree(finished_paper[0], folder)
  # What learned may be missing here.
  config = (folder / "config.yaml").read_text()
  assert "device: auto" in config
  (folder / "config.yaml").write_text(
      config.replace("device: auto", "device: gpu"))
  done = command.run(
      "visualize.py", "--logdir", folder, "--outdir", tmp_path / "films",
      "--num_episodes", "1", cwd=tmp_path)
  assert done.returncode == 0, done.stdout
  played, = json.loads((tmp_path / "films" / "episodes.json").read_text())
  assert played["length"] == 20
  check_seen(folder, played)


def _visualize(folder, tmp_path, *args):
  """Film, and return what episodes.json and the console say."""
  done = command.run(
      "visualize.py", "--logdir", folder, "--outdir", tmp_path / "films", *args,
      cwd=tmp_path)
  assert done.returncode == 0, done.stdout
  return json.loads((tmp_path / "films" / "episodes.json").read_text()), (
      done.stdout)


@pytest.mark.slow
def test_grid_shows_all_episodes_at_once(finished, tmp_path):
  told, _ = _visualize(finished[0], tmp_path, "--num_episodes", "3",
                       "--num_agents", "2", "--grid", "--size", "101")
  name, = {episode["file"] for episode in told}
  assert name == f"step-{command.SMALL_STEPS}-grid.mp4"
  assert len({episode["return"] for episode in told}) == 3
  frames, _ = decoding.decode(tmp_path / "films" / name)
  assert frames.shape == (200, 202, 202, 3)
  moving = np.abs(np.diff(frames.astype(int), axis=0)).sum(0).sum(-1)
  for rows, columns, there in ((0, 0, True), (0, 1, True), (1, 0, True),
                               (1, 1, False)):
    tile = moving[101 * rows + 60:101 * rows + 98,
                  101 * columns:101 * columns + 98]
    assert (tile.mean() > 1) == there


@pytest.mark.slow
def test_timeline_shows_the_policy_of_each_checkpoint(finished, tmp_path):
  told, _ = _visualize(finished[0], tmp_path, "--checkpoint", "all")
  steps = [checkpoint.step_of(path) for path in
           checkpoint.paths(finished[0] / "checkpoints")]
  assert len(steps) == 9 and steps[0] == 0
  assert [episode["caption"] for episode in told] == [
      f"after {step:,} steps" for step in steps]
  assert {episode["file"] for episode in told} == {"timeline-episode-0.mp4"}
  frames, _ = decoding.decode(tmp_path / "films" / "timeline-episode-0.mp4")
  assert frames.shape == (200, 960, 960, 3)
  # The same episode for all, and the last policy is the newest one's.
  check_seen(finished[0], told[-1])
  policy_and_value, _ = _visualize(finished[0], tmp_path, "--checkpoint", str(steps[2]),
                       "--num_episodes", "1", "--size", "64")
  # What was told of other films stays.
  assert policy_and_value[:-1] == told and policy_and_value[-1]["return"] == told[2]["return"]
  assert policy_and_value[-1]["file"] == f"step-{steps[2]}-episode-0.mp4"


@pytest.mark.slow
def test_episode_of_training_is_filmed_after_the_fact(finished, tmp_path):
  folder = finished[0]
  told, output = _visualize(folder, tmp_path, "--episode", "-1", "--size", "64")
  last = episode_recorder.find(folder / "checkpoints", -1)
  episode, = told
  assert episode == {
      "file": f"training-episode-{last.number}.mp4", "length": 200,
      "caption": f"training, episode {last.number}, step {last.step:,}",
      "return": last.episode.score}
  assert "does not repeat" not in output
  frames, _ = decoding.decode(tmp_path / "films" / episode["file"])
  assert frames.shape == (200, 64, 64, 3)
  # Training has told of the same episodes.
  rows = [row for row in command.rows(folder) if row["phase"] == "train"]
  assert last.number + 1 == sum(row["episodes"] for row in rows)
  scores = [episode_recorder.find(folder / "checkpoints", number).episode.score
            for number in range(last.number - 3, last.number + 1)]
  row = [row for row in rows if row["episodes"]][-1]
  assert np.mean(scores) == pytest.approx(row["return_mean"])


@pytest.mark.parametrize("args, message", [
    (["--logdir", "/no/such/run"], "is not a run folder"),
    (["--logdir", "/no/such/run", "--num_episodes", "0"],
     "--num_episodes must be at least 1"),
    (["--logdir", "/no/such/run", "--size", "-1"],
     "--size must be at least 1"),
    (["--logdir", "/no/such/run", "--policy", "best"], "invalid choice"),
    (["--logdir", "/x", "--episode", "3", "--grid"],
     "--grid can't change that"),
    (["--logdir", "/x", "--episode", "3", "--checkpoint", "all"],
     "--checkpoint can't change that"),
    (["--logdir", "/x", "--checkpoint", "all", "--grid"], "without --grid"),
])
def test_user_errors_exit_2(args, message, tmp_path):
  done = command.run(
      "visualize.py", *args, "--outdir", tmp_path / "films", cwd=tmp_path)
  assert done.returncode == 2
  assert message in done.stdout
  assert "Traceback" not in done.stdout


@pytest.mark.parametrize("args, message", [
    (["--checkpoint", "77"], "--checkpoint 77: no checkpoint in"),
    (["--episode", "7777"], "--episode 7777: no checkpoint")])
def test_what_is_not_there_is_said(args, message, finished, tmp_path):
  done = command.run(
      "visualize.py", "--logdir", finished[0].parent, *args, "--outdir",
      tmp_path / "films", cwd=tmp_path)
  assert done.returncode == 2
  assert message in done.stdout and "Available" in done.stdout


def test_environment_that_can_not_draw(tmp_path):
  folder = run_folder.create(
      str(tmp_path / "logdir"), "counter",
      config_lib.Config(env=config_lib.Env("tests.toy:Counter")))
  done = command.run(
      "visualize.py", "--logdir", folder.path, "--outdir", tmp_path / "films",
      cwd=command.ROOT)
  assert done.returncode == 2
  assert "tests.toy:Counter can't be filmed" in done.stdout


@pytest.mark.slow
def test_nested_actions_and_a_memory_are_filmed_and_played_again(tmp_path):
  """Mean actions, an episode of training, and one in which it failed."""
  done = command.run(
      "train.py", "--config", "default", "--preset", "recurrent", "--logdir",
      tmp_path / "logdir", "--steps", "8000", "--video_every", "4000", "--set",
      "env.id=tests.videos.painted:Painted", "--set", "num_envs=16", "--set",
      "network.frame_stack=2", "--set", "max_env_restarts=1000", cwd=tmp_path)
  assert done.returncode == 0, done.stdout
  folder = command.run_folder(tmp_path / "logdir")
  decoding.decode(sorted((folder / "videos").glob("*.mp4"))[-1])
  played, _ = _visualize(folder, tmp_path, "--num_episodes", "2")
  check_seen(folder, played[0])
  told, output = _visualize(folder, tmp_path, "--episode", "-1")
  last = episode_recorder.find(folder / "checkpoints", -1)
  assert told[-1]["return"] == last.episode.score
  assert "does not repeat" not in output
  for episode in *played, told[-1]:
    frames, _ = decoding.decode(tmp_path / "films" / episode["file"])
    assert len(frames) == 20 and frames.std() > 5
  crash = sorted((folder / "crashes").iterdir())[-1]
  film = tmp_path / "crash.mp4"
  assert replay.main([str(crash), "--film", str(film)]) == 0
  assert len(decoding.decode(film)[0]) == 5
  with pytest.raises(ValueError, match="No paint left"):
    replay.main([str(crash)])


@pytest.mark.slow
def test_mujoco_is_drawn_or_says_what_is_missing(tmp_path):
  done = command.run(
      "train.py", "--config", "reacher", "--steps", "2048", "--logdir",
      tmp_path / "logdir", cwd=tmp_path)
  assert done.returncode == 0, done.stdout
  done = command.run(
      "visualize.py", "--logdir", command.run_folder(tmp_path / "logdir"),
      "--outdir", tmp_path / "films", "--num_episodes", "1", cwd=tmp_path)
  if gl_support.egl_works():
    assert done.returncode == 0, done.stdout
    check_film(tmp_path / "films" / "step-2048-episode-0.mp4", 50)
  else:
    assert done.returncode == 1
    assert "apt-get install libegl1" in done.stdout
  assert not (tmp_path / "MUJOCO_LOG.TXT").exists()
