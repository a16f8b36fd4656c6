"""Decodes rendered videos, and checks their frames."""

import json
import shutil
import sys

import numpy as np
import pytest

from agents import config as config_lib
from agents.commands import replay, visualize
from agents.training.monitoring import recent_episodes
from agents.training.run_folder import checkpoint, run_folder
from tests.support import command
from tests.videos import decoding, gl_support


def check_video(path, num_frames):
  """Checks that a video shows motion; returns the metadata of the file."""
  frames, meta = decoding.decode(path)
  assert meta["codec"].startswith("h264")
  assert len(frames) == num_frames
  assert frames.std() > 5, "The frames are uniform."
  moving = np.abs(np.diff(frames.astype(int), axis=0)).mean((1, 2, 3))
  assert np.median(moving) > 0, "The frames are equal."
  return meta


def check_evaluated(folder, episode):
  """Checks that an episode's return is in the range of the last evaluation."""
  evaluated = command.rows(folder)[-1]
  assert evaluated["return_min"] - 1 <= episode["return"] <= evaluated["return_max"] + 1


@pytest.mark.slow
def test_videos_and_episodes_json_of_a_run(finished, tmp_path):
  outdir = tmp_path / "films"
  done = command.run(
    "visualize.py",
    *("--logdir", finished[0], "--outdir", outdir, "--num-episodes", "2", "--size", "64"),
    "--json",
    cwd=tmp_path,
  )
  assert done.returncode == 0, done.stdout
  episodes = json.loads((outdir / "episodes.json").read_text())
  assert [episode["length"] for episode in episodes] == [200, 200]
  for episode in episodes:
    meta = check_video(outdir / episode["file"], 200)
    assert meta["fps"] == 30
    assert f"return {episode['return']:.1f}, 200 steps" in done.stdout
  assert command.document(done.stdout) == {
    "episodes": [{**episode, "file": str(outdir / episode["file"])} for episode in episodes]
  }
  check_evaluated(finished[0], episodes[0])
  assert {path.name for path in outdir.iterdir()} == {
    "episodes.json",
    *(episode["file"] for episode in episodes),
  }


@pytest.mark.slow
def test_policy_rebuilt_from_a_copied_folder_scores_as_in_evaluation(finished_paper, tmp_path):
  folder = tmp_path / "elsewhere"
  shutil.copytree(finished_paper[0], folder)
  # The device of training may not exist on this machine.
  config = (folder / "config.yaml").read_text()
  assert "device: auto" in config
  (folder / "config.yaml").write_text(config.replace("device: auto", "device: gpu"))
  done = command.run(
    "visualize.py",
    "--logdir",
    folder,
    "--outdir",
    tmp_path / "films",
    "--num-episodes",
    "1",
    cwd=tmp_path,
  )
  assert done.returncode == 0, done.stdout
  (played,) = json.loads((tmp_path / "films" / "episodes.json").read_text())
  assert played["length"] == 20
  check_evaluated(folder, played)


def _visualize(folder, tmp_path, *args):
  """Renders videos; returns content of episodes.json and console output."""
  done = command.run(
    "visualize.py", "--logdir", folder, "--outdir", tmp_path / "films", *args, cwd=tmp_path
  )
  assert done.returncode == 0, done.stdout
  return json.loads((tmp_path / "films" / "episodes.json").read_text()), (done.stdout)


@pytest.mark.slow
def test_grid_shows_all_episodes_in_one_video(finished_paper, tmp_path):
  episodes, _ = _visualize(
    finished_paper[0],
    tmp_path,
    "--num-episodes",
    "3",
    "--num-agents",
    "2",
    "--grid",
    "--size",
    "101",
    "--policy",
    "sampled",
  )
  (name,) = {episode["file"] for episode in episodes}
  assert name == "step-600-sampled-grid.mp4"
  assert len({episode["return"] for episode in episodes}) == 3
  frames, _ = decoding.decode(tmp_path / "films" / name)
  assert frames.shape == (20, 202, 202, 3)
  moving = np.abs(np.diff(frames.astype(int), axis=0)).sum(0).sum(-1)
  for row, column, moves in ((0, 0, True), (0, 1, True), (1, 0, True), (1, 1, False)):
    tile = moving[101 * row + 60 : 101 * row + 98, 101 * column : 101 * column + 98]
    assert (tile.mean() > 1) == moves


@pytest.mark.slow
def test_timeline_shows_the_same_episode_for_each_checkpoint(finished_paper, tmp_path):
  folder = finished_paper[0]
  episodes, _ = _visualize(folder, tmp_path, "--checkpoint", "all", "--size", "128")
  steps = [checkpoint.step_of(path) for path in checkpoint.paths(folder / "checkpoints")]
  assert len(steps) == 6 and steps[0] == 0
  assert [episode["caption"] for episode in episodes] == [f"after {step:,} steps" for step in steps]
  assert {episode["file"] for episode in episodes} == {"timeline-episode-0.mp4"}
  frames, _ = decoding.decode(tmp_path / "films" / "timeline-episode-0.mp4")
  assert frames.shape == (20, 256, 384, 3)
  # The last tile shows the newest policy.
  check_evaluated(folder, episodes[-1])
  extended, _ = _visualize(
    folder, tmp_path, "--checkpoint", str(steps[2]), "--num-episodes", "1", "--size", "64"
  )
  # episodes.json keeps the episodes of other videos.
  assert extended[:-1] == episodes
  assert extended[-1]["return"] == episodes[2]["return"]
  assert extended[-1]["file"] == f"step-{steps[2]}-episode-0.mp4"


@pytest.mark.slow
def test_episode_of_training_is_rendered_from_a_checkpoint(finished, tmp_path):
  folder = finished[0]
  episodes, output = _visualize(folder, tmp_path, "--episode", "-1", "--size", "64")
  last = recent_episodes.find(folder / "checkpoints", -1)
  (episode,) = episodes
  assert episode == {
    "file": f"training-episode-{last.number}.mp4",
    "length": 200,
    "caption": f"training, episode {last.number}, step {last.step:,}",
    "return": last.episode.score,
  }
  assert "does not repeat" not in output
  frames, _ = decoding.decode(tmp_path / "films" / episode["file"])
  assert frames.shape == (200, 64, 64, 3)
  # The recorded scores agree with the reports of training.
  rows = [row for row in command.rows(folder) if row["phase"] == "train"]
  assert last.number + 1 == sum(row["episodes"] for row in rows)
  scores = [
    recent_episodes.find(folder / "checkpoints", number).episode.score
    for number in range(last.number - 3, last.number + 1)
  ]
  row = [row for row in rows if row["episodes"]][-1]
  assert np.mean(scores) == pytest.approx(row["return_mean"])


@pytest.mark.parametrize(
  "args, message",
  [
    (["--logdir", "/no/such/run"], "is not a run folder"),
    (["--logdir", "/no/such/run", "--num-episodes", "0"], "--num-episodes must be at least 1"),
    (["--logdir", "/no/such/run", "--size", "-1"], "--size must be at least 1"),
    (["--logdir", "/no/such/run", "--policy", "best"], "invalid choice"),
    (["--logdir", "/x", "--episode", "3", "--grid"], "--grid can't be combined with --episode"),
    (
      ["--logdir", "/x", "--episode", "3", "--checkpoint", "all"],
      "--checkpoint can't be combined with --episode",
    ),
    (["--logdir", "/x", "--checkpoint", "all", "--grid"], "without --grid"),
  ],
)
def test_user_errors_exit_2_without_traceback(args, message, tmp_path, monkeypatch, capsys):
  monkeypatch.setattr(sys, "path", [*sys.path])
  with pytest.raises(SystemExit) as ended:
    visualize.main([*args, "--outdir", str(tmp_path / "films")])
  assert ended.value.code == 2
  error = capsys.readouterr().err
  assert message in error and "Traceback" not in error
  assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize(
  "args, message",
  [
    (["--checkpoint", "77"], "has the name or step 77"),
    (["--episode", "7777"], "--episode 7777: no checkpoint contains this episode"),
  ],
)
def test_missing_checkpoints_and_episodes_are_user_errors(args, message, finished, tmp_path):
  done = command.run(
    "visualize.py",
    "--logdir",
    finished[0].parent,
    *args,
    "--outdir",
    tmp_path / "films",
    cwd=tmp_path,
  )
  assert done.returncode == 2
  assert message in done.stdout and "Available" in done.stdout


def test_unusable_outdir_is_an_error_before_the_policy_plays(tmp_path, monkeypatch, capsys):
  monkeypatch.setattr(sys, "path", [*sys.path])
  folder = run_folder.create(
    str(tmp_path / "logdir"), "pendulum", config_lib.Config(env=config_lib.Env("Pendulum-v1"))
  )
  (tmp_path / "file").touch()
  with pytest.raises(SystemExit) as ended:  # There is no checkpoint to play.
    visualize.main(["--logdir", str(folder.path), "--outdir", str(tmp_path / "file")])
  assert ended.value.code == 2
  assert f"--outdir {tmp_path / 'file'}: " in capsys.readouterr().err


@pytest.mark.slow
def test_environment_without_render_mode_is_a_user_error(tmp_path):
  folder = run_folder.create(
    str(tmp_path / "logdir"), "counter", config_lib.Config(env=config_lib.Env("tests.toy:Counter"))
  )
  done = command.run(
    "visualize.py", "--logdir", folder.path, "--outdir", tmp_path / "films", cwd=command.ROOT
  )
  assert done.returncode == 2
  assert "tests.toy:Counter can't be rendered" in done.stdout


@pytest.mark.slow
def test_recurrent_policy_with_nested_actions_is_rendered_and_replayed(tmp_path):
  done = command.run(
    "train.py",
    "--config",
    "default",
    "--preset",
    "recurrent",
    "--logdir",
    tmp_path / "logdir",
    "--steps",
    "2048",
    "--video-every",
    "1000",
    "--set",
    "env.id=tests.videos.painted:Painted",
    "--set",
    "num_envs=16",
    "--set",
    "network.frame_stack=2",
    "--set",
    "max_env_restarts=1000",
    cwd=tmp_path,
  )
  assert done.returncode == 0, done.stdout
  folder = command.run_folder(tmp_path / "logdir")
  decoding.decode(sorted((folder / "videos").glob("*.mp4"))[-1])
  played, _ = _visualize(folder, tmp_path, "--num-episodes", "2")
  check_evaluated(folder, played[0])
  episodes, output = _visualize(folder, tmp_path, "--episode", "-1")
  last = recent_episodes.find(folder / "checkpoints", -1)
  assert episodes[-1]["return"] == last.episode.score
  assert "does not repeat" not in output
  for episode in *played, episodes[-1]:
    frames, _ = decoding.decode(tmp_path / "films" / episode["file"])
    assert len(frames) == 20 and frames.std() > 5
  crash = sorted((folder / "crashes").iterdir())[-1]
  film = tmp_path / "crash.mp4"
  assert replay.main([str(crash), "--film", str(film)]) == 0
  assert len(decoding.decode(film)[0]) == 5
  with pytest.raises(ValueError, match="No paint left"):
    replay.main([str(crash)])


@pytest.mark.slow
def test_mujoco_is_rendered_or_the_missing_package_is_named(tmp_path):
  done = command.run(
    *command.EAGER_REACHER,
    "--steps",
    "256",
    "--set",
    "eval_episodes=1",
    "--logdir",
    tmp_path / "logdir",
    cwd=tmp_path,
  )
  assert done.returncode == 0, done.stdout
  done = command.run(
    "visualize.py",
    "--logdir",
    command.run_folder(tmp_path / "logdir"),
    "--outdir",
    tmp_path / "films",
    "--num-episodes",
    "1",
    cwd=tmp_path,
  )
  if gl_support.egl_works():
    assert done.returncode == 0, done.stdout
    check_video(tmp_path / "films" / "step-256-episode-0.mp4", 50)
  else:
    assert done.returncode == 1
    assert "apt-get install libegl1" in done.stdout
  assert not (tmp_path / "MUJOCO_LOG.TXT").exists()
