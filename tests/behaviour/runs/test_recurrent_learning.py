"""Recurrent policies and frame stacks solve tasks that need memory."""

import contextlib

import numpy as np
import pytest
from agents.configs import presets

from agents import build
from agents import config as config_lib

_STEPS = 15_000


def _config(steps, **changes):
  """Returns a config of a maze whose sign was shown three steps before."""
  return config_lib.Config().override(
    {
      "env.id": "tests.behaviour.runs.memory_tasks:TMaze",
      "env.kwargs.length": 3,
      "steps": steps,
      "env_processes": False,
      "algorithm.minibatch_size": 512,
      "algorithm.learning_rate": 3e-3,
      **changes,
    }
  )


@contextlib.contextmanager
def _trainer(config):
  trainer = build.trainer(config, None)
  try:
    yield trainer
  finally:
    trainer.close()


def _score(config):
  """Trains for the complete budget; returns the mean score of 30 episodes."""
  with _trainer(config) as trainer:
    trainer.start()
    done = 0
    while done < config.steps:
      done += trainer.epoch(done / config.steps).steps
    scores = trainer.evaluate(30, lambda: False).scores
  return np.mean(scores)


@pytest.mark.slow
@pytest.mark.parametrize(
  "changes", [{"network.recurrent": "gru"}, {"network.frame_stack": 4}], ids=str
)
def test_memory_solves_a_task_that_needs_it(changes):
  assert _score(_config(_STEPS, **changes)) > 0.95


@pytest.mark.slow
def test_without_memory_the_score_stays_low():
  # No policy exceeds 0.5 in the mean.
  assert _score(_config(_STEPS)) < 0.75


def test_recurrent_preset_has_minibatches_of_complete_segments():
  config = presets.apply("recurrent", config_lib.Config())
  assert config.network.recurrent == "gru"
  assert config.algorithm.minibatch_size % config.algorithm.segment_length == 0


@pytest.mark.slow
@pytest.mark.usefixtures("eagerly")
def test_state_of_recurrent_policies_is_saved():
  config = _config(
    3000,
    **{
      "network.recurrent": "gru",
      "network.frame_stack": 2,
      "network.recurrent_units": 8,
      "num_envs": 4,
      "algorithm.segment_length": 15,
      "algorithm.minibatch_size": 60,
      "algorithm.update_epochs": 1,
    },
  )
  with _trainer(config) as first, _trainer(config) as second:
    first.start()
    first.epoch(0.0)
    saved = first.state()
    assert saved["state/2"].shape == (4, 8) and saved["state/2"].any()
    second.load(saved)
    for trainer in (first, second):
      trainer.epoch(0.5)
    expected, restored = first.state(), second.state()
  assert expected.keys() == restored.keys()
  for name, array in expected.items():
    np.testing.assert_array_equal(restored[name], array, err_msg=name)


@pytest.mark.slow
def test_the_algorithm_of_2017_solves_a_task_that_needs_memory():
  config = _config(_STEPS, **{"env.max_length": 8})
  for name in ("paper", "recurrent"):
    config = presets.apply(name, config)
  config = config.override({"algorithm.update_every": 60, "algorithm.learning_rate": 3e-3})
  assert _score(config) > 0.9
