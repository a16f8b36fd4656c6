"""Films while training; they change nothing of it."""

import pytest
from tensorboard.backend.event_processing import event_accumulator

from agents import build
from agents import config as config_lib
from agents.training import loop as loop_lib
from agents.training.run_folder import run_folder
from tests import command

pytestmark = pytest.mark.slow

_CONFIG = config_lib.Config().override({
    "env.id": "tests.videos.canvas:Canvas", "env.kwargs": {"length": 9},
    "steps": 240, "num_envs": 2, "env_processes": False,
    "algorithm.segment_length": 10, "algorithm.minibatch_size": 10,
    "algorithm.update_epochs": 1, "eval_episodes": 1})


def _train(tmp_path, changes, stop=bool):
  folder = run_folder.create(str(tmp_path), "x", _CONFIG.override(changes))
  loop = loop_lib.Loop(build.trainer(folder.config, None), folder, stop)
  loop.start()
  loop.run()
  return folder


def _films(folder):
  """Return the steps of the films in TensorBoard."""
  events = event_accumulator.EventAccumulator(
      str(folder.path / "train"), size_guidance={"tensors": 0}).Reload()
  if "films/training" not in events.Tags()["tensors"]:
    return []
  return [event.step for event in events.Tensors("films/training")]


@pytest.fixture(scope="module")
def filmed(tmp_path_factory):
  return _train(tmp_path_factory.mktemp("films"), {"video_every": 100})


def test_the_last_one_due_is_drawn_and_shown(filmed):
  files = {path.name for path in (filmed.path / "videos").iterdir()}
  shown = _films(filmed)
  # Episodes of 9 steps in two environments: 26 of them in 240 steps.
  assert "training-episode-25.mp4" in files
  assert shown[-1] == 240 and len(files) == len(shown) >= 2


def test_training_is_the_same_as_without(filmed, tmp_path):
  plain = _train(tmp_path, {})
  assert not (plain.path / "videos").exists() and not _films(plain)
  assert command.rows(plain.path) == command.rows(filmed.path)


def test_resuming_keeps_them(filmed):
  before = _films(filmed)
  config = filmed.config.override({"steps": 300, "video_every": None})
  filmed.config = config
  loop = loop_lib.Loop(build.trainer(config, None), filmed, bool)
  loop.resume()
  loop.run()
  assert loop.step == 300
  assert _films(filmed) == before


def test_a_film_is_given_up_where_training_stops(tmp_path):
  asked = []
  def stop():
    asked.append(1)
    return len(asked) > 12
  folder = _train(tmp_path, {"video_every": 20}, stop)
  assert not list((folder.path / "videos").glob("*.part.mp4"))
  assert command.rows(folder.path)[-1]["step"] < 240
