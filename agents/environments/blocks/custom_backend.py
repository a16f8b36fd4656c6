"""Base class of custom backends; docs/extending.md contains an example.

A backend steps all training environments as one object.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np

from agents import class_loader
from agents import config as config_lib
from agents.environments.blocks import base
from agents.environments.making import action_scaling, make, varied_kwargs


@dataclasses.dataclass(eq=False, repr=False)
class Backend:
  """A block of environments; subclasses implement `reset` and `step_wait`.

  Args:
    constructors: Constructors of the Gymnasium environments that evaluations
      use. A backend reads their settings, such as
      `constructors[0].config.kwargs`, and does not call them.
    first: Index of the first environment within the batch.
    spaces: Observation and action space of the Gymnasium environments.
    arrays: Fields of `buffer_layout.batch_layout` for these environments.
    run_seed: Seed of the run, from which seeds of episodes can be derived.
    tolerant: Whether failures end an episode instead of raising an error.
  """

  # Whether `replay` can rebuild running episodes from seeds and actions.
  deterministic = False
  # Whether the backend truncates episodes as the constructors require: every
  # episode after `config.max_length` steps, and the episode whose seed is
  # `short[0]` after `short[1]` steps.
  limits = False

  constructors: Sequence[make.MakeEnv]
  first: int
  spaces: tuple[gymnasium.Space, gymnasium.Space]
  arrays: dict[str, np.ndarray]
  run_seed: int
  tolerant: bool = False

  def __post_init__(self) -> None:
    self.to_env = action_scaling.action_converter(self.spaces[1])

  def __init_subclass__(cls, **kwargs: Any) -> None:
    super().__init_subclass__(**kwargs)
    if "repeats" in vars(cls):  # The former name of `deterministic`.
      cls.deterministic = vars(cls)["repeats"]

  def reset(self, seeds: Sequence[int]) -> list[dict[str, Any]]:
    """Begins episode 0 of every environment and writes the field "observ".

    Args:
      seeds: Seed of each environment.

    Returns:
      An empty dict for each environment.
    """
    raise NotImplementedError

  def step_async(self) -> None:
    """Begins a step if the backend can run it in the background."""

  def step_wait(self) -> dict[int, base.StepReport]:
    """Ends the step, and begins the next episode where one ended.

    Reads the fields "action" and "active" and writes all others. The
    observations of inactive environments stay unchanged.

    Returns:
      Reports of the episodes that ended, by index in the batch.
    """
    raise NotImplementedError

  def step(self) -> dict[int, base.StepReport]:
    """Steps the active environments; see `step_wait`."""
    self.step_async()
    return self.step_wait()

  def close(self) -> None:
    """Closes all environments. Repeated calls have no effect."""

  def _unsupported(self, *_: Any) -> Any:
    """Raises an error; subclasses may implement methods of `GymnasiumBlock`."""
    raise NotImplementedError(
      f"{type(self).__name__} steps all environments as one object, so it "
      "cannot rebuild or end episodes, or access single environments."
    )

  replay = begin_next = call = get = set = _unsupported


def find(name: str) -> type[Backend]:
  """Returns the user's backend class that `env.backend` names.

  Args:
    name: Name of the class, `module:Class`.

  Raises:
    ConfigError: If the class does not exist or is not a backend.
  """
  return class_loader.find_class("env.backend", name, Backend)


def check(
  config: config_lib.Config, backend_class: type[Backend], evaluator: str = "Gymnasium"
) -> list[str]:
  """Checks whether a backend supports the settings of a config.

  Args:
    config: Config of the run.
    backend_class: Class of the backend.
    evaluator: Library whose environments evaluate the policy.

  Returns:
    Notes for the user about the limits of the backend.

  Raises:
    ConfigError: If the backend does not support a setting.
  """
  name = config.env.backend
  if config.video_every:
    raise config_lib.ConfigError(
      f"video_every needs replays of episodes, but env.backend={name} can't "
      "repeat an episode. Remove it; `visualize` renders the policy."
    )
  for setting in ("action_repeat", "random_start", "frame_delta", "wrappers"):
    if getattr(config.env, setting) != getattr(config_lib.Env, setting):
      raise config_lib.ConfigError(
        f"env.{setting} needs env.backend=gymnasium: {name} does not apply "
        "wrappers to its environments."
      )
  if varied := [key for key, value in config.env.kwargs.items() if varied_kwargs.varies(value)]:
    raise config_lib.ConfigError(
      f"env.kwargs.{varied[0]} differs between environments, which needs env.backend=gymnasium: "
      f"{name} gives all environments the same arguments."
    )
  if config.env.max_length and not backend_class.limits:
    raise config_lib.ConfigError(
      f"env.max_length={config.env.max_length}: {name} does not declare by "
      "`limits = True` that it supports time limits. Remove the setting; "
      "then the backend decides when episodes end."
    )
  notes = [
    f"{name} can't repeat an episode. A resumed run begins new episodes "
    "and is not bit-identical, and episodes of training can't be "
    f"rendered; evaluations and videos of the policy use {evaluator}."
  ]
  if config.stagger and not backend_class.limits:
    notes.append(
      f"{name} does not stagger its first episodes: episodes of equal length end together."
    )
  return notes
