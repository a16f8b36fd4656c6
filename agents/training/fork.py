"""Starts a new run with the variables of another run's checkpoint."""

import functools
import os
import pathlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from agents import config as config_lib
from agents.training.run_folder import checkpoint, run_folder

# Coefficients that adapt to the KL divergence start from the new settings.
_NOT_REUSED = {"step_size", "penalty"}
# Meanings of the prefixes of variable names.
_MEANINGS = {
  "adam": "Adam's moments",
  "observ": "observation moments",
  "return": "scale of returns",
  "reward": "scale of rewards",
  "step_size": "adaptive learning rate",
  "penalty": "KL penalty",
}


class Origin(NamedTuple):
  """Checkpoint from which a run starts."""

  run: run_folder.RunFolder
  path: pathlib.Path  # Checkpoint file.

  @property
  def step(self) -> int:
    """Training steps completed before the checkpoint."""
    return checkpoint.step_of(self.path)

  @property
  def name(self) -> str:
    """Folders of the run, and step of the checkpoint, as LOGDIR/RUN@STEP."""
    return f"{'/'.join(self.run.path.parts[-2:])}@{self.step}"

  @property
  def lineage(self) -> list[str]:
    """Value of the setting `forked_from` of the new run."""
    return [*self.run.config.forked_from, self.name]


def find(text: str, code: Sequence[str | os.PathLike] = ()) -> Origin:
  """Finds a checkpoint.

  Args:
    text: RUN or RUN@STEP. RUN is the path of a run folder, or of a folder of
      runs, of which the newest one is used. STEP is a step, a file name or
      "best", see `checkpoint.find`; by default the newest checkpoint.
    code: Folders with modules that the config of the run may name.

  Raises:
    ConfigError: If there is no such run or checkpoint, or the config of the run
      names code without permission.
    CheckpointError: If no checkpoint can be read.
  """
  path, at, step = text.rpartition("@")
  if not at or pathlib.Path(text).expanduser().exists():
    path, step = text, ""
  run = run_folder.find(path, code)
  return Origin(run, checkpoint.find(run.checkpoints, step or None))


def load(algorithm: Any, origin: Origin) -> str:
  """Sets weights, optimizer moments and normalization of a new run.

  Args:
    algorithm: `trainer.Algorithm` of the new run.
    origin: Checkpoint with the variables.

  Returns:
    Text for the user about the variables that are reused or not.

  Raises:
    ConfigError: If the networks of the two runs differ.
    RunError: If the checkpoint cannot be read.
  """
  from agents.training import trainer  # Imports TensorFlow.

  arrays = checkpoint.load_variables(origin.path, functools.partial(trainer.check_sizes, algorithm))
  saved = {name.removeprefix("variable/"): array for name, array in arrays.items()}
  variables = algorithm.variables()
  weights = {id(weight) for weight in algorithm.weights}
  unfit = set(_NOT_REUSED)  # Prefixes of variables that start anew.
  for name, variable in variables.items():
    shape = saved[name].shape if name in saved else None
    if shape == tuple(variable.shape):
      continue
    unfit.add(_prefix(name))
    if id(variable) in weights:
      raise config_lib.ConfigError(
        f"--from {origin.name}: {name} has the shape {tuple(variable.shape)} in the new run, and "
        f"{'is missing' if shape is None else shape} in the checkpoint. Both runs need equal "
        "observation and action spaces, and equal settings of the networks (network.*)."
      )
  reused = {name: saved[name] for name in variables if _prefix(name) not in unfit}
  algorithm.assign({name: variable.numpy() for name, variable in variables.items()} | reused)
  text = f"Starts from {origin.name} with its {_describe(reused)}."
  if new := _describe(variables.keys() - reused.keys()):
    text += f" These start from the new settings: {new}."
  if unused := _describe(saved.keys() - variables.keys()):
    text += f" The new run does not use: {unused}."
  return text


def _describe(names: Any) -> str:
  """Returns the meanings of variable names, each once."""
  prefixes = dict.fromkeys(map(_prefix, sorted(names)))
  return ", ".join(_MEANINGS.get(prefix, prefix) for prefix in prefixes)


def _prefix(name: str) -> str:
  return name.partition("/")[0]
