"""Environments of one batch can have different arguments."""

import numpy as np
import pytest

from agents import build
from agents import config as config_lib
from agents.environments import batch_env
from agents.environments.making import make
from agents.environments.workers import pool
from agents.videos import renderer, video

_CONFIG = config_lib.Config().override(
  {
    "env.id": "tests.videos.canvas:Canvas",
    "env.kwargs": {"length": {"each": [3, 5, 9]}},
    "num_envs": 6,
    "seed": 4,
    "stagger": False,
    "algorithm.segment_length": 20,
    "algorithm.minibatch_size": None,
    "algorithm.update_epochs": 1,
    "eval_episodes": 4,
  }
)


def _lengths(episodes):
  """Returns the set of lengths of the episodes of each environment."""
  lengths = {}
  for episode in episodes:
    lengths.setdefault(episode.environment, set()).add(episode.length)
  return lengths


@pytest.mark.parametrize("num_workers", [0, 2])
def test_each_environment_has_its_own_arguments(num_workers):
  workers = pool.WorkerPool(num_workers) if num_workers else None
  constructors = make.constructors(_CONFIG.env, 6, _CONFIG.seed)
  with batch_env.BatchEnv(constructors, workers) as env:
    env.reset()
    for _ in range(20):
      env.step(np.zeros((6, 1), np.float32))
    episodes = env.take_finished()
  if workers:
    workers.close()
  assert _lengths(episodes) == {0: {3}, 1: {5}, 2: {9}, 3: {3}, 4: {5}, 5: {9}}


def test_films_show_episodes_in_their_environments():
  constructor = make.MakeEnv(_CONFIG.env, "rgb_array", seed=_CONFIG.seed)
  with batch_env.BatchEnv(make.constructors(_CONFIG.env, 3, _CONFIG.seed)) as env:
    env.reset()
    for _ in range(9):
      env.step(np.full((3, 1), 0.5, np.float32))
    episodes = env.take_finished()
  tiles = tuple(video.Tile(episode) for episode in episodes)
  film = renderer.VideoRenderer(video.Video("", tiles), constructor, None)
  assert len(list(film.frames())) == 9 and film.problem() == ""


@pytest.mark.slow
@pytest.mark.usefixtures("eagerly")
def test_training_and_evaluation_continue_from_a_checkpoint():
  trainers = [build.trainer(_CONFIG, None) for _ in range(2)]
  trainers[0].start()
  assert len(_lengths(trainers[0].epoch(0.0).episodes)) == 6
  trainers[1].load(trainers[0].state())
  first, second = (trainer.epoch(0.5) for trainer in trainers)
  assert first.episodes == second.episodes and first.metrics == second.metrics
  # Evaluations have environments with the same arguments.
  assert sorted(trainers[0].evaluate(4, lambda: False).lengths) == [3, 3, 5, 9]
  for trainer in trainers:
    trainer.close()


def test_invalid_arguments_are_errors():
  env = config_lib.Env("tests.toy:Counter", {"length": {"uniform": [3, 2]}})
  with pytest.raises(config_lib.ConfigError, match=r"(?s)length: `uniform` needs \[low, high\]"):
    make.check(env)
