"""Epochs of unequal numbers of steps: what comes due, and when."""

import itertools

import numpy as np
import pytest

from agents import build
from agents import config as config_lib
from agents.environments.data import episodes
from agents.training import loop as loop_lib
from agents.training.run_folder import checkpoint
from agents.training.run_folder import run_folder
from tests import command
from tests import modes
from tests import toy

_MOST = 9
CONFIG = config_lib.Config().override({
    "env.id": "tests.toy:Uneven", "env.kwargs.most": _MOST,
    "env.max_length": _MOST, "env_processes": False, "num_envs": 2,
    "algorithm.segment_length": None, "algorithm.update_every": 3,
    "algorithm.minibatch_size": None, "algorithm.update_epochs": 1,
    "algorithm.lr_schedule": "linear", "network.policy_layers": [4],
    "network.value_layers": [4], "steps": 200, "report_every": 30,
    "eval_every": 50, "eval_episodes": 1, "checkpoint_every": 70})


def make(folder, stop=lambda: False):
  return loop_lib.Loop(build.trainer(folder.config, None), folder, stop)


@pytest.fixture(scope="module", autouse=True)
def eagerly():
  with modes.functions_run_eagerly():
    yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
  folder = run_folder.create(
      str(tmp_path_factory.mktemp("logdir")), "test", CONFIG)
  loop = make(folder)
  loop.start()
  loop.run()
  return loop, folder


def steps_after_each_epoch():
  """Return them as the seeds of the episodes say."""
  total, steps = 0, []
  for epoch in itertools.count():
    for index, amount in enumerate((2, 1)):
      total += sum(toy.Uneven.lasts(
          episodes.episode_seed(CONFIG.seed, index, epoch * amount + number),
          _MOST) for number in range(amount))
    steps.append(total)
    if total >= CONFIG.steps:
      return steps


def due(every):
  """Return the first step count at or after each multiple, and the last."""
  steps = steps_after_each_epoch()
  first = {next(x for x in steps if x >= goal)
           for goal in range(every, steps[-1] + 1, every)}
  return sorted(first | {steps[-1]})


def test_epochs_are_unequal():
  assert len(set(np.diff(steps_after_each_epoch()))) > 3


def test_steps_are_those_that_were_taken(finished):
  assert finished[0].step == steps_after_each_epoch()[-1]


def test_intervals_count_steps(finished):
  rows = command.rows(finished[1].path)
  for phase, every in (("train", 30), ("eval", 50)):
    assert [row["step"] for row in rows if row["phase"] == phase] == due(every)
  saved = [checkpoint.load(path)[1]["step"]
           for path in checkpoint.paths(finished[1].checkpoints)]
  assert saved == [0] + due(70)


def test_every_training_episode_is_counted_once(finished):
  rows = [row for row in command.rows(finished[1].path)
          if row["phase"] == "train"]
  epochs = len(steps_after_each_epoch())
  assert sum(row["episodes"] for row in rows) == 3 * epochs
  # No step is outside of an episode.
  total = 0
  for row in rows:
    total += row["episodes"] * row["length_mean"]
    assert round(total) == row["step"]


@pytest.mark.slow
def test_stopped_and_resumed_equals_uninterrupted(finished, tmp_path):
  folder = run_folder.create(str(tmp_path), "test", CONFIG)
  asked = []
  loop = make(folder, stop=lambda: len(asked) >= 4)
  add = loop._add
  loop._add = lambda *args: (asked.append(None), add(*args))
  loop.start()
  loop.run()
  assert loop.step == steps_after_each_epoch()[3]
  loop = make(run_folder.RunFolder(folder.path))
  loop.resume()
  loop.run()
  assert command.rows(folder.path) == command.rows(finished[1].path)
  ours, theirs = (checkpoint.load(checkpoint.newest(x.checkpoints))
                  for x in (folder, finished[1]))
  assert ours[0].keys() == theirs[0].keys()
  for name, array in ours[0].items():
    assert array.tobytes() == theirs[0][name].tobytes(), name
  for name in ("step", "done", "scores", "lengths", "reward_parts"):
    assert ours[1][name] == theirs[1][name]
