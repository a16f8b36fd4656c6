"""What steps all environments of training at once, as one object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np

from agents import class_loader
from agents import config as config_lib
from agents.environments.blocks import base
from agents.environments.making import action_scaling
from agents.environments.making import make


class Backend:
  """The same methods as `block.Block`; `reset` and `step_wait` are to be added.

  docs/extending.md has an example.

  Args:
    constructors: Of the environments as Gymnasium has them, for evaluation;
      to be read, and not called: `constructors[0].config.kwargs`.
    first: Index of the first environment within the batch.
    spaces: Observation and action space of Gymnasium's.
    arrays: Fields of `layout.batch_views` for these environments only.
    run_seed: From which each episode's own seed can be derived.
    tolerant: Break off episodes in which something fails, instead of raising
      an error.
  """

  deterministic = False  # Whether `replay` can rebuild running episodes.
  # Whether episodes are truncated as `constructors` say: all of them after
  # `config.max_length` steps, and the one of `short` as that says.
  limits = False

  def __init__(
      self, constructors: Sequence[make.MakeEnv], first: int,
      spaces: tuple[gymnasium.Space, gymnasium.Space],
      arrays: dict[str, np.ndarray], run_seed: int, tolerant: bool = False):
    self.constructors = constructors
    self.first = first
    self.arrays = arrays
    self.run_seed = run_seed
    self.tolerant = tolerant
    self.to_env = action_scaling.action_converter(spaces[1])

  def reset(self, seeds: Sequence[int]) -> list[dict[str, Any]]:
    """Begin episode 0 of every environment, and write "observ".

    Returns:
      Of each an empty dict.
    """
    raise NotImplementedError

  def step_async(self):
    """Begin a step, where that can be done while others act."""

  def step_wait(self) -> dict[int, base.StepReport]:
    """Step by "action", write all else, and reset where an episode ended.

    Environments that are not "active" wait: their observation stays.

    Returns:
      What is to be said of episodes that ended, by index in the batch.
    """
    raise NotImplementedError

  def step(self) -> dict[int, base.StepReport]:
    """Steps the active environments; see `step_wait`."""
    self.step_async()
    return self.step_wait()

  def close(self):
    """Let go of all environments. Can be repeated."""

  def replay(self, *_):
    raise NotImplementedError(f"{self._name} can't rebuild an episode.")

  def begin_next(self, *_):
    raise NotImplementedError(f"{self._name} can't break off an episode.")

  def call(self, *_):
    raise NotImplementedError(f"{self._name} has no single environments.")

  get = set = call

  @property
  def _name(self) -> str:
    return type(self).__name__


def find(name: str) -> type[Backend]:
  """Return the user's own class, which `env.backend` names.

  Raises:
    ConfigError: If there is no such class.
  """
  return class_loader.find_class("env.backend", name, Backend)


def check(config: config_lib.Config, kind: type[Backend]) -> list[str]:
  """Return what the user should know of training with such a backend.

  Args:
    config: All settings.
    kind: Of the backend.
  Raises:
    ConfigError: If it can't do what is asked for.
  """
  if config.video_every:
    raise config_lib.ConfigError(
        f"video_every films episodes of training again, which env.backend="
        f"{config.env.backend} can't repeat; leave it out, and `visualize` "
        "films the policy.")
  for name in ("action_repeat", "random_start", "frame_delta", "wrappers"):
    if getattr(config.env, name) != getattr(config_lib.Env, name):
      raise config_lib.ConfigError(
          f"env.{name} wants env.backend=gymnasium: {config.env.backend} steps "
          "its environments as they are.")
  if config.env.max_length and not kind.limits:
    raise config_lib.ConfigError(
        f"env.max_length={config.env.max_length}: {config.env.backend} does "
        "not say that it heeds it, by `limits = True`. Without it, episodes "
        "end as it likes.")
  notes = [f"{config.env.backend} can't repeat an episode. So resuming begins "
          "new ones and does not repeat bit for bit, and none of training can "
          "be filmed; evaluations and films of the policy are played in "
          "Gymnasium."]
  if config.stagger and not kind.limits:
    notes.append(f"{config.env.backend} does not stagger its first episodes: "
                 "those that last equally long end together.")
  return notes
