"""Runs with epochs of different lengths report, evaluate and save when due."""

import itertools

import numpy as np
import pytest

from agents import build
from agents import config as config_lib
from agents.environments.data import episode_data
from agents.training import loop as loop_lib
from agents.training.run_folder import checkpoint, run_folder
from tests import toy
from tests.support import command, modes

pytestmark = pytest.mark.slow
_MAX_LENGTH = 9
CONFIG = config_lib.Config().override(
  {
    "env.id": "tests.toy:Uneven",
    "env.kwargs.max_length": _MAX_LENGTH,
    "env.max_length": _MAX_LENGTH,
    "env_processes": False,
    "num_envs": 2,
    "algorithm.segment_length": None,
    "algorithm.update_every": 3,
    "algorithm.minibatch_size": None,
    "algorithm.update_epochs": 1,
    "algorithm.lr_schedule": "linear",
    "network.policy_layers": [4],
    "network.value_layers": [4],
    "steps": 200,
    "report_every": 30,
    "eval_every": 50,
    "eval_episodes": 1,
    "checkpoint_every": 70,
  }
)


def make(folder, stop=lambda: False):
  """Returns the loop of a run folder."""
  return loop_lib.Loop(build.trainer(folder.config, None), folder, stop)


@pytest.fixture(scope="module", autouse=True)
def eagerly():
  with modes.functions_run_eagerly():
    yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
  """Returns the loop and the folder of a finished run."""
  folder = run_folder.create(str(tmp_path_factory.mktemp("logdir")), "test", CONFIG)
  loop = make(folder)
  loop.start()
  loop.run()
  return loop, folder


def steps_after_each_epoch():
  """Returns the steps of all environments after each epoch.

  The lengths of episodes are computed from the seeds of the episodes.
  """
  total, steps = 0, []
  for epoch in itertools.count():
    for index, num_episodes in enumerate((2, 1)):
      first = epoch * num_episodes
      total += sum(
        toy.Uneven.episode_length(
          episode_data.episode_seed(CONFIG.seed, index, episode), _MAX_LENGTH
        )
        for episode in range(first, first + num_episodes)
      )
    steps.append(total)
    if total >= CONFIG.steps:
      return steps


def due(every):
  """Returns the steps at which a periodic action of a run is expected.

  Args:
    every: Interval of the action in steps.

  Returns:
    The first epoch end at or after each multiple of `every`, and the end of the
    run, in steps.
  """
  steps = steps_after_each_epoch()
  first = {next(x for x in steps if x >= goal) for goal in range(every, steps[-1] + 1, every)}
  return sorted(first | {steps[-1]})


def test_epochs_have_different_numbers_of_steps():
  assert len(set(np.diff(steps_after_each_epoch()))) > 3


def test_run_counts_the_steps_of_its_episodes(finished):
  assert finished[0].step == steps_after_each_epoch()[-1]


def test_periodic_actions_take_place_at_the_next_end_of_an_epoch(finished):
  rows = command.rows(finished[1].path)
  for phase, every in (("train", 30), ("eval", 50)):
    assert [row["step"] for row in rows if row["phase"] == phase] == due(every)
  saved = [checkpoint.load(path)[1]["step"] for path in checkpoint.paths(finished[1].checkpoints)]
  assert saved == [0] + due(70)


def test_every_training_episode_is_counted_once(finished):
  rows = [row for row in command.rows(finished[1].path) if row["phase"] == "train"]
  epochs = len(steps_after_each_epoch())
  assert sum(row["episodes"] for row in rows) == 3 * epochs
  # Each step belongs to a completed episode.
  total = 0
  for row in rows:
    total += row["episodes"] * row["length_mean"]
    assert round(total) == row["step"]


def test_resumed_run_equals_uninterrupted_run(finished, tmp_path):
  folder = run_folder.create(str(tmp_path), "test", CONFIG)
  epochs = []
  loop = make(folder, stop=lambda: len(epochs) >= 4)
  add = loop._add
  loop._add = lambda *args: (epochs.append(None), add(*args))
  loop.start()
  loop.run()
  assert loop.step == steps_after_each_epoch()[3]
  loop = make(run_folder.RunFolder(folder.path))
  loop.resume()
  loop.run()
  assert command.rows(folder.path) == command.rows(finished[1].path)
  command.assert_same_checkpoints(folder.path, finished[1].path)
