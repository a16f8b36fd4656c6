"""Training records videos, and the videos do not change training."""

import re

import pytest
from tensorboard.backend.event_processing import event_accumulator

from agents import build
from agents import config as config_lib
from agents.training import loop as loop_lib
from agents.training.run_folder import run_folder
from tests.loggers import recorders
from tests.support import command

pytestmark = pytest.mark.slow

_CONFIG = config_lib.Config().override(
  {
    "env.id": "tests.videos.canvas:Canvas",
    "env.kwargs": {"length": 9},
    "steps": 240,
    "num_envs": 2,
    "env_processes": False,
    "algorithm.segment_length": 10,
    "algorithm.minibatch_size": 10,
    "algorithm.update_epochs": 1,
    "eval_episodes": 1,
  }
)


def _train(tmp_path, changes, stop=bool):
  """Trains a run, and returns the run folder."""
  folder = run_folder.create(str(tmp_path), "x", _CONFIG.override(changes))
  loop = loop_lib.Loop(build.trainer(folder.config, None), folder, stop)
  loop.start()
  loop.run()
  return folder


def _video_steps(folder):
  """Returns the steps of the videos in TensorBoard."""
  events = event_accumulator.EventAccumulator(
    str(folder.path / "train"), size_guidance={"tensors": 0}
  ).Reload()
  if "films/training" not in events.Tags()["tensors"]:
    return []
  return [event.step for event in events.Tensors("films/training")]


@pytest.fixture(scope="module")
def with_videos(tmp_path_factory):
  changes = {"video_every": 100, "logger": "tests.loggers.recorders:Recorder"}
  return _train(tmp_path_factory.mktemp("films"), changes)


def test_last_video_is_rendered_and_written_to_tensorboard(with_videos):
  files = {path.name for path in (with_videos.path / "videos").iterdir()}
  steps = _video_steps(with_videos)
  # 240 steps of two environments contain 26 episodes of 9 steps.
  assert "training-episode-25.mp4" in files
  assert steps[-1] == 240 and len(files) == len(steps) >= 2


def test_logger_receives_every_video(with_videos):
  films = recorders.calls(with_videos.path, "film")
  assert [step for _, step in films] == _video_steps(with_videos)
  assert {path for path, _ in films} == set((with_videos.path / "videos").iterdir())


def test_metrics_with_videos_equal_metrics_without_videos(with_videos, tmp_path):
  without_videos = _train(tmp_path, {})
  assert not (without_videos.path / "videos").exists()
  assert not _video_steps(without_videos)
  assert command.rows(without_videos.path) == command.rows(with_videos.path)


def test_resumed_run_keeps_earlier_videos(with_videos):
  before = _video_steps(with_videos)
  config = with_videos.config.override({"steps": 300, "video_every": None})
  with_videos.config = config
  loop = loop_lib.Loop(build.trainer(config, None), with_videos, bool)
  loop.resume()
  loop.run()
  assert loop.step == 300
  assert _video_steps(with_videos) == before


def test_stopped_run_leaves_no_incomplete_video(tmp_path):
  calls = []

  def stop():
    calls.append(1)
    return len(calls) > 12

  folder = _train(tmp_path, {"video_every": 20}, stop)
  files = list((folder.path / "videos").iterdir())
  assert all(re.fullmatch(r"training-episode-\d+\.mp4", path.name) for path in files)
  assert command.rows(folder.path)[-1]["step"] < 240
