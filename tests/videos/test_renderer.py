"""Episodes are replayed as they were played, and rendered with captions."""

import functools

import gymnasium
import numpy as np
import pytest

from agents import config as config_lib
from agents.environments import batch_env
from agents.environments.making import make as make_lib
from agents.videos import renderer
from agents.videos import video as video_lib
from tests.videos import canvas

_MAKE = canvas.make


def _tile(episode, height=None, make=_MAKE, caption=""):
  return renderer.TileRenderer(make, video_lib.Tile(episode, caption), height)


def test_episode_is_replayed_step_by_step():
  tile = _tile(canvas.episode(0.5, -0.25, 1.0))
  states = []
  for num_steps in range(5):
    tile.advance(num_steps)
    states.append((tile.num_steps, tile.score, canvas.brightness(tile.frame())))
  assert states == [
    (0, 0, 0),
    (1, 0.5, 10),
    (2, 0.25, 20),
    (3, 1.25, 30),
    (3, 1.25, 30),
  ]  # The episode has three steps.


def test_actions_are_rescaled_as_in_training():
  class Wide(canvas.Canvas):
    action_space = gymnasium.spaces.Box(0, 8, (1,), np.float32)

  tile = _tile(canvas.episode(0.5, 7.0), make=functools.partial(canvas.make, kind=Wide))
  tile.advance(2)
  assert tile.score == 6 + 8


def test_replay_stops_at_the_end_of_the_episode():
  tile = _tile(canvas.episode(*[1.0] * 6), make=functools.partial(_MAKE, length=4))
  tile.advance(6)
  assert (tile.num_steps, tile.score) == (4, 4)


@pytest.mark.parametrize(
  "kwargs, problem",
  [
    ({}, ""),
    ({"reward_noise": 1.0}, "is not deterministic: the replay of episode"),
    (
      {"length": 3},
      "episode 1, seed 3, has return 1.5 in 3 steps, but the "
      "recorded episode has return 2.0 in 4 steps.",
    ),
  ],
)
def test_problem_names_different_score_or_length(kwargs, problem):
  tiles = tuple(video_lib.Tile(canvas.episode(*[0.5] * length)) for length in (2, 4))
  video_renderer = renderer.VideoRenderer(
    video_lib.Video("", tiles), functools.partial(_MAKE, **kwargs), None
  )
  assert len(list(video_renderer.frames())) == 4
  assert problem in video_renderer.problem()
  assert bool(problem) == bool(video_renderer.problem())


@pytest.mark.parametrize(
  "height, shape", [(None, (64, 96, 3)), (32, (32, 48, 3)), (128, (128, 192, 3))]
)
def test_frames_have_the_requested_height(height, shape):
  frame = _tile(canvas.episode(0.0), height).frame()
  assert frame.shape == shape and frame.dtype == np.uint8


def test_frame_shows_step_score_and_caption():
  plain, captioned = (
    _tile(canvas.episode(0.5, 0.5), 128, caption=caption) for caption in ("", "after 10 steps")
  )
  for tile in (plain, captioned):
    tile.advance(1)
  first, other = plain.frame(), captioned.frame()
  assert (first[:40] != 10).any() and (first[-40:] == 10).all()
  assert (first != other).any()
  before = first.copy()
  plain.advance(2)
  # Not only the background changes, but also the text at the top.
  change = plain.frame().astype(int) - before
  assert len(np.unique(change[:40])) > 2 and np.unique(change[-40:]) == [10]


@pytest.mark.parametrize(
  "fault, received", [("text", "a str"), ("float", r"an array of shape \(64, 96, 3\) and type")]
)
def test_error_describes_what_render_returned(fault, received):
  tile = _tile(canvas.episode(0.0), make=functools.partial(_MAKE, render_fault=fault))
  with pytest.raises(ValueError, match=f"RGB image.*returned {received}"):
    tile.frame()


@pytest.mark.parametrize("repeat", [1, 3])
def test_discrete_and_repeated_actions_are_replayed(repeat):
  config = config_lib.Env("CartPole-v1", action_repeat=repeat)
  constructor = make_lib.MakeEnv(config)
  with batch_env.BatchEnv([constructor], seed=4) as batch:
    batch.reset()
    finished = []
    while not finished:
      batch.step(np.array([len(batch.snapshot().actions) % 2]))
      finished = batch.take_finished()
    (episode,) = finished
  tile = _tile(episode, make=make_lib.MakeEnv(config, "rgb_array"))
  assert tile.frame().shape == (400, 600, 3)
  tile.advance(10_000)
  assert (tile.num_steps, tile.score) == (episode.length, episode.score)
  assert make_lib.fps(config) == 50 / repeat
