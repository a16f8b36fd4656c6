"""A run in miniature: whether all of it works, before it is worth anything."""

from __future__ import annotations

import pathlib
import tempfile

import numpy as np

from agents import build
from agents import config as config_lib
from agents import spaces
from agents.training import trainer as trainer_lib
from agents.training.run_folder import checkpoint

_ENVS = 4
_LENGTH = 8  # Steps of a segment.


def run_smoke_test(config: config_lib.Config) -> str:
  """Build a small run in Gymnasium, train, save, load and train again.

  TensorFlow must have been prepared by `build.setup`.

  Args:
    config: What is to be trained later.
  Returns:
    What is wrong, or nothing.
  """
  config = config.override({
      "env.backend": "gymnasium",
      "num_envs": _ENVS, "eval_episodes": 1,
      "algorithm.segment_length": _LENGTH, "algorithm.update_every": None,
      "algorithm.minibatch_size": None, "algorithm.update_epochs": 2})
  trainer = build.trainer(config, None)
  with tempfile.TemporaryDirectory() as folder:
    try:
      trainer.start()
      trainer.epoch(0.0)
      checkpoint.save(pathlib.Path(folder), 1, trainer.state(), {})
      expected = _continue(trainer)
      arrays, _ = checkpoint.load(checkpoint.newest(pathlib.Path(folder)))
      trainer.load(arrays)
      states = _continue(trainer), expected
    finally:
      trainer.close()
  differing = [name for name, array in states[1].items()
               if array.tobytes() != states[0][name].tobytes()]
  if differing:
    return f"Resumed, these learn something else: {', '.join(differing)}."
  if not all(np.isfinite(column).all() for array in expected.values()
             for column in spaces.columns(array)):
    return "Something that was learned is not finite."
  return ""


def _continue(trainer: trainer_lib.Trainer) -> dict[str, np.ndarray]:
  """Return the state after another epoch."""
  trainer.epoch(0.5)
  return trainer.state()
