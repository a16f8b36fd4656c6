"""Tests training, saving and loading with a small run before a long run."""

import contextlib
import pathlib
import tempfile

import numpy as np

from agents import build, spaces
from agents import config as config_lib
from agents.environments.making import envpool_env
from agents.training.run_folder import checkpoint

_NUM_ENVS = 4
_SEGMENT_LENGTH = 8


def find_problem(config: config_lib.Config) -> str:
  """Trains two epochs, loads a checkpoint and repeats the second epoch.

  The variables must be finite, and the repeated epoch must give the same
  variables. Environments use Gymnasium, even if the config has another backend.
  Tasks that only EnvPool has are the exception; they cannot repeat an epoch.
  Call `build.setup` before this function.

  Args:
    config: Config to test. The test reduces the size of the batch.

  Returns:
    Description of a problem, or "" if there is none.
  """
  is_native = envpool_env.is_native(config.env)
  config = config.override(
    {
      "env.backend": config.env.backend if is_native else "gymnasium",
      "num_envs": _NUM_ENVS,
      "eval_episodes": 1,
      "algorithm.segment_length": _SEGMENT_LENGTH,
      "algorithm.update_every": None,
      "algorithm.minibatch_size": None,
      "algorithm.update_epochs": 2,
    }
  )
  with (
    contextlib.closing(build.trainer(config, None)) as trainer,
    tempfile.TemporaryDirectory() as name,
  ):
    folder = pathlib.Path(name)
    trainer.start()
    trainer.epoch(0.0)
    checkpoint.save(folder, 1, trainer.state(), {})
    trainer.epoch(0.5)
    expected = trainer.state()
    arrays, _ = checkpoint.load(checkpoint.newest(folder))
    trainer.load(arrays)
    trainer.epoch(0.5)
    resumed = trainer.state()
  differing = [
    name for name, array in expected.items() if array.tobytes() != resumed[name].tobytes()
  ]
  if differing and not is_native:
    return (
      f"Training from the loaded checkpoint does not repeat the values of {', '.join(differing)}."
    )
  if not all(
    np.isfinite(column).all() for array in expected.values() for column in spaces.columns(array)
  ):
    return "A trained variable is not finite."
  return ""
