"""Recurrent policies and frame stacks solve tasks that need memory."""

import contextlib

import numpy as np
import pytest
from agents.configs import presets

from agents import build
from agents import config as config_lib

_CARTPOLE = "tests.behaviour.runs.memory_tasks:masked_cartpole"
_MAZE = "tests.behaviour.runs.memory_tasks:TMaze"


def _config(env, steps, **changes):
  return config_lib.Config().override(
    {
      "env.id": env,
      "steps": steps,
      "env_processes": False,
      "algorithm.minibatch_size": 512,
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
    scores, _ = trainer.evaluate(30, lambda: False)
  return np.mean(scores)


@pytest.mark.slow
@pytest.mark.parametrize(
  "env, steps, changes, max_without, min_with",
  [
    (_MAZE, 60_000, {"network.recurrent": "lstm"}, 0.75, 0.95),
    (_CARTPOLE, 150_000, {"network.recurrent": "gru"}, None, 450),
    (_CARTPOLE, 80_000, {"network.frame_stack": 3}, None, 450),
  ],
)
def test_memory_raises_the_score(env, steps, changes, max_without, min_with):
  config = _config(env, steps, **changes)
  without = config.override({"network.recurrent": None, "network.frame_stack": 1})
  if max_without is not None:
    assert _score(without) < max_without
  assert _score(config) > min_with


def test_recurrent_preset_has_minibatches_of_complete_segments():
  config = presets.apply("recurrent", config_lib.Config())
  assert config.network.recurrent == "gru"
  assert config.algorithm.minibatch_size % config.algorithm.segment_length == 0


@pytest.mark.slow
@pytest.mark.usefixtures("eagerly")
def test_state_of_recurrent_policies_is_saved():
  config = _config(
    _CARTPOLE,
    3000,
    **{
      "network.recurrent": "gru",
      "network.frame_stack": 2,
      "network.recurrent_units": 8,
      "num_envs": 4,
      "algorithm.segment_length": 16,
      "algorithm.minibatch_size": 64,
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
  config = _config(_MAZE, 30_000, **{"env.max_length": 15})
  for name in ("paper", "recurrent"):
    config = presets.apply(name, config)
  config = config.override({"algorithm.update_every": 60, "algorithm.learning_rate": 3e-3})
  assert _score(config) > 0.9
