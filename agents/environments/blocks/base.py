"""Base class of blocks; a block steps all or some environments of a batch."""

import contextlib
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn, Protocol

import gymnasium
import numpy as np

from agents import errors
from agents.environments.data import buffer_layout

Constructor = Callable[[], gymnasium.Env]


class EnvironmentFailure(errors.EnvironmentsError):
  """An error of an environment.

  Args:
    message: Text that names the environment and the operation that failed, with
      the traceback.
    environment: Index of the environment within its batch, if known.
    seed: Seed of the environment's running episode, if known.

  The attribute `actions` contains the actions of the episode since the latest
  answer to the trainer, if the failure happened in `GymnasiumBlock.play`.
  """

  def __init__(self, message: str, environment: int | None = None, seed: int | None = None) -> None:
    super().__init__(message)
    self.environment = environment
    self.seed = seed
    self.actions: list[np.ndarray] = []


class Policy(Protocol):
  """Selects actions inside of a block."""

  def act(self, observ: np.ndarray, first: int) -> np.ndarray:
    """Returns actions for observations, both of shape [N, ...].

    Args:
      observ: Observations of the block's environments.
      first: Index of the block's first environment within its batch.
    """


class StepReport(NamedTuple):
  """Report of a step that ended an episode."""

  # If a failure ended the episode: the error message. Otherwise: the numbers of
  # the last info, and under "reward_parts" the sum of each `reward_...` number
  # over the episode.
  outcome: dict[str, Any] | str
  # Error messages of resets that failed after the episode.
  failed_resets: tuple[str, ...] = ()
  # Only with `InfoBatchEnv`, which receives a report for every step: infos of
  # the step and of the reset that followed.
  info: dict[str, Any] | None = None
  reset_info: dict[str, Any] | None = None
  # Seed of the next episode, if the block derived the seed.
  next_seed: int | None = None


class BlockBase:
  """Builds, accesses and closes environments.

  Errors name the environment that failed.

  Args:
    constructors: Functions without arguments that return environments.
    first: Index of the first environment within its batch.
    spaces: Observation and action space that all environments must have.
  """

  # Maps batch size, observation space and action space to the array layout.
  layout: Callable[..., buffer_layout.Layout]
  # Called after each environment is built or reset, and after each replayed
  # step. In a worker process, this callback tells the trainer that the process
  # is alive.
  heartbeat: Callable[[], None] | None = None

  def __init__(
    self,
    constructors: Sequence[Constructor],
    first: int,
    spaces: tuple[gymnasium.Space, gymnasium.Space],
  ) -> None:
    self._constructors = constructors
    self._first = first
    self._spaces = spaces
    self._names = [str(constructor) for constructor in constructors]
    # Seed of each running episode, and its number of steps so far.
    self._seeds: list[int | None] = [None] * len(constructors)
    self._lengths = np.zeros(len(constructors), int)
    self._envs: list[gymnasium.Env] = []
    with contextlib.ExitStack() as stack:
      stack.callback(self.close)
      for offset in range(len(constructors)):
        self._build(offset)
        if self.heartbeat:
          self.heartbeat()
      stack.pop_all()

  def call(self, name: str, args: tuple, kwargs: dict, selected: Sequence[bool]) -> list[Any]:
    """Calls a method of every selected environment.

    Args:
      name: Name of a method of the environment or of one of its wrappers.
      args: Positional arguments of the method.
      kwargs: Keyword arguments of the method.
      selected: For each environment of the block, whether it is selected.

    Returns:
      The results of the selected environments.
    """
    return self._access(
      selected, f"{name}()", lambda _, env: env.get_wrapper_attr(name)(*args, **kwargs)
    )

  def get(self, name: str, selected: Sequence[bool]) -> list[Any]:
    """Returns an attribute of every selected environment.

    Args:
      name: Name of the attribute.
      selected: For each environment of the block, whether it is selected.

    Returns:
      The values of the selected environments.
    """
    return self._access(selected, f"attribute '{name}'", lambda _, env: env.get_wrapper_attr(name))

  def set(self, name: str, values: Sequence[Any], selected: Sequence[bool]) -> None:
    """Sets an attribute of every selected environment.

    Args:
      name: Name of the attribute.
      values: Value for each environment of the block.
      selected: For each environment of the block, whether it is selected.
    """
    self._access(
      selected,
      f"attribute '{name}'",
      lambda offset, env: env.set_wrapper_attr(name, values[offset]),
    )

  def close(self) -> None:
    """Closes every environment, even if one of them raises."""
    envs, self._envs = self._envs, []
    with contextlib.ExitStack() as stack:
      for offset, env in enumerate(envs):
        stack.enter_context(self._explained(offset, "close()"))
        stack.callback(env.close)

  def _access(
    self, selected: Sequence[bool], where: str, access: Callable[[int, gymnasium.Env], Any]
  ) -> list[Any]:
    """Returns `access(offset, env)` of each selected environment."""
    results = []
    for offset in np.flatnonzero(selected).tolist():
      with self._explained(offset, where):
        results.append(access(offset, self._envs[offset]))
    return results

  def _build(self, offset: int) -> None:
    """Builds an environment, after closing an earlier one at this offset."""
    for failed in self._envs[offset : offset + 1]:
      with contextlib.suppress(Exception):
        failed.close()
    with self._explained(offset, "its constructor"):
      env = self._constructors[offset]()
      self._envs[offset : offset + 1] = [env]
      self._names[offset] = env.spec.id if env.spec else type(env.unwrapped).__name__
      if not self._fits(env):
        raise ValueError(
          f"The environment has the spaces {env.observation_space} and "
          f"{env.action_space}, but environment 0 has {self._spaces[0]} and "
          f"{self._spaces[1]}. All environments of a batch must have equal "
          "spaces."
        )

  def _fits(self, env: gymnasium.Env) -> bool:
    """Returns whether an environment has the spaces of this block."""
    return (env.observation_space, env.action_space) == self._spaces

  @contextlib.contextmanager
  def _explained(self, offset: int, where: str) -> Iterator[None]:
    """Adds the environment to errors of the `with` body; see `_fail`."""
    try:
      yield
    except BaseException as error:
      self._fail(error, offset, where)

  def _fail(self, error: BaseException, offset: int, where: str) -> NoReturn:
    """Raises the error, with an EnvironmentFailure as its cause."""
    if EnvironmentFailure in (type(error), type(error.__cause__)):
      raise error
    failure = self._failure(error, offset, where)
    # SystemExit of an environment must not end the trainer without a message.
    if isinstance(error, (Exception, KeyboardInterrupt)):
      raise error from failure
    raise failure

  def _failure(self, error: BaseException, offset: int, where: str) -> EnvironmentFailure:
    episode = (
      (f", seed {self._seeds[offset]}, step {self._lengths[offset]} of its episode")
      if self._seeds[offset] is not None
      else ""
    )
    index = self._first + offset
    return EnvironmentFailure(
      f"Environment {index} ('{self._names[offset]}'{episode}) failed in "
      f"{where}:\n\n{''.join(traceback.format_exception(error))}",
      index,
      self._seeds[offset],
    )
