"""Films are decoded again and looked at."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import imageio_ffmpeg
import numpy as np
import pytest

from agents import config as config_lib
from agents.training import run_folder
from tests import command


def decode(path):
  """Return frames of shape [N, height, width, 3] and frames per second."""
  reader = imageio_ffmpeg.read_frames(str(path))
  meta = next(reader)
  width, height = meta["size"]
  frames = [np.frombuffer(frame, np.uint8).reshape(height, width, 3)
            for frame in reader]
  return np.array(frames), meta


def check_film(path, length):
  frames, meta = decode(path)
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


@pytest.mark.parametrize("args, message", [
    (["--logdir", "/no/such/run"], "is not a run folder"),
    (["--logdir", "/no/such/run", "--num_episodes", "0"],
     "--num_episodes must be at least 1"),
    (["--logdir", "/no/such/run", "--policy", "best"], "invalid choice"),
])
def test_user_errors_exit_2(args, message, tmp_path):
  done = command.run(
      "visualize.py", *args, "--outdir", tmp_path / "films", cwd=tmp_path)
  assert done.returncode == 2
  assert message in done.stdout
  assert "Traceback" not in done.stdout


def test_environment_that_can_not_draw(tmp_path):
  folder = run_folder.create(
      str(tmp_path / "logdir"), "counter",
      config_lib.Config(env=config_lib.Env("tests.toy:Counter")))
  done = command.run(
      "visualize.py", "--logdir", folder.path, "--outdir", tmp_path / "films",
      cwd=command.ROOT)
  assert done.returncode == 2
  assert "tests.toy:Counter can't be filmed" in done.stdout


def egl_works() -> bool:
  """Whether this machine can draw MuJoCo without a display."""
  code = ("import gymnasium; env = gymnasium.make('Reacher-v5', "
          "render_mode='rgb_array'); env.reset(); env.render()")
  return subprocess.run(
      ["env", "MUJOCO_GL=egl", sys.executable, "-c", code],
      capture_output=True, cwd="/tmp").returncode == 0


@pytest.mark.slow
def test_mujoco_is_drawn_or_says_what_is_missing(tmp_path):
  done = command.run(
      "train.py", "--config", "reacher", "--steps", "2048", "--logdir",
      tmp_path / "logdir", cwd=tmp_path)
  assert done.returncode == 0, done.stdout
  done = command.run(
      "visualize.py", "--logdir", command.run_folder(tmp_path / "logdir"),
      "--outdir", tmp_path / "films", "--num_episodes", "1", cwd=tmp_path)
  if egl_works():
    assert done.returncode == 0, done.stdout
    check_film(tmp_path / "films" / "step-2048-episode-0.mp4", 50)
  else:
    assert done.returncode == 1
    assert "apt-get install libegl1" in done.stdout
  assert not (tmp_path / "MUJOCO_LOG.TXT").exists()
