"""Base class of blocks, which hold a share of the environments of a batch."""

import contextlib
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

import gymnasium
import numpy as np

from agents import errors
from agents.environments.data import buffer_layout

Constructor = Callable[[], gymnasium.Env]


class EnvironmentFailure(errors.EnvironmentsError):
  """An environment failed; the message names the environment and the place.

  Args:
    message: Text with the traceback.
    environment: Index of the environment within its batch, if known.
    seed: Seed of its episode, if one is running.
  """

  def __init__(self, message: str, environment: int | None = None,
               seed: int | None = None):
    super().__init__(message)
    self.environment = environment
    self.seed = seed


class StepReport(NamedTuple):
  """The end of an episode, and the resets that failed after it."""

  # Numbers of the last info, with the sums of the infos' `reward_...` numbers
  # under "reward_parts"; or the text of the failure that ended the episode.
  outcome: dict[str, Any] | str
  failed_resets: tuple[str, ...] = ()  # Texts of the failures.
  # Only with `InfoBatchEnv`: infos of the step and of the reset after it.
  info: dict[str, Any] | None = None
  reset_info: dict[str, Any] | None = None
  next_seed: int | None = None  # Of the next episode, if the block derived it.


class BlockBase:
  """Builds and closes environments, and accesses selected ones.

  Errors name the environment that failed.

  Args:
    constructors: Functions without arguments that return environments.
    first: Index of the first environment within its batch.
    spaces: Observation and action space that all environments must have.
  """

  # Returns the layout of the arrays, given the batch size and spaces.
  layout: Callable[..., buffer_layout.Layout]
  # Called after each environment is built or reset and after each replayed
  # step. Worker processes use it to tell the trainer that they are alive.
  heartbeat: Callable[[], None] | None = None

  def __init__(self, constructors: Sequence[Constructor], first: int,
               spaces: tuple[gymnasium.Space, gymnasium.Space]):
    self._constructors = constructors
    self._first = first
    self._spaces = spaces
    self._names = [str(constructor) for constructor in constructors]
    # Seed and length of the running episodes, for error messages.
    self._seeds: list[int | None] = [None] * len(constructors)
    self._lengths = [0] * len(constructors)
    self._envs: list[gymnasium.Env] = []
    with contextlib.ExitStack() as stack:
      stack.callback(self.close)
      for offset in range(len(constructors)):
        self._build(offset)
        if self.heartbeat:
          self.heartbeat()
      stack.pop_all()

  def call(self, name: str, args: tuple, kwargs: dict,
           selected: Sequence[bool]) -> list[Any]:
    """Calls a method of every selected environment.

    Args:
      name: Name of the method, of the environment or one of its wrappers.
      args: Positional arguments of the method.
      kwargs: Keyword arguments of the method.
      selected: For each environment of the block, whether it is selected.

    Returns:
      The results of the selected environments.
    """
    return self._access(
        selected, f"{name}()",
        lambda _, env: env.get_wrapper_attr(name)(*args, **kwargs))

  def get(self, name: str, selected: Sequence[bool]) -> list[Any]:
    """Returns an attribute of every selected environment.

    Args:
      name: Name of the attribute.
      selected: For each environment of the block, whether it is selected.

    Returns:
      The values of the selected environments.
    """
    return self._access(selected, f"attribute '{name}'",
                        lambda _, env: env.get_wrapper_attr(name))

  def set(self, name: str, values: Sequence[Any], selected: Sequence[bool]):
    """Sets an attribute of every selected environment.

    Args:
      name: Name of the attribute.
      values: Value for each environment of the block.
      selected: For each environment of the block, whether it is selected.
    """
    self._access(
        selected, f"attribute '{name}'",
        lambda offset, env: env.set_wrapper_attr(name, values[offset]))

  def close(self):
    """Closes every environment, even if one of them raises."""
    envs, self._envs = self._envs, []
    with contextlib.ExitStack() as stack:
      for offset, env in enumerate(envs):
        stack.enter_context(self._explained(offset, "close()"))
        stack.callback(env.close)

  def _access(self, selected: Sequence[bool], where: str,
              access: Callable[[int, gymnasium.Env], Any]) -> list[Any]:
    """Calls `access` with offset and environment of each selected one."""
    results = []
    for offset in np.flatnonzero(selected).tolist():
      with self._explained(offset, where):
        results.append(access(offset, self._envs[offset]))
    return results

  def _build(self, offset: int):
    """Builds an environment; replaces the failed one, if there is any."""
    for failed in self._envs[offset:offset + 1]:
      with contextlib.suppress(Exception):
        failed.close()
    with self._explained(offset, "its constructor"):
      env = self._constructors[offset]()
      self._envs[offset:offset + 1] = [env]
      self._names[offset] = (
          env.spec.id if env.spec else type(env.unwrapped).__name__)
      if (env.observation_space, env.action_space) != self._spaces:
        raise ValueError(
            f"Its spaces are {env.observation_space} and {env.action_space}, "
            f"but those of environment 0 are {self._spaces[0]} and "
            f"{self._spaces[1]}. All environments of a batch must have equal "
            "spaces.")

  @contextlib.contextmanager
  def _explained(self, offset: int, where: str):
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

  def _failure(self, error: BaseException, offset: int, where: str
               ) -> EnvironmentFailure:
    episode = (f", seed {self._seeds[offset]}, step {self._lengths[offset]} of "
               "its episode") if self._seeds[offset] is not None else ""
    index = self._first + offset
    return EnvironmentFailure(
        f"Environment {index} ('{self._names[offset]}'{episode}) failed in "
        f"{where}:\n\n{''.join(traceback.format_exception(error))}",
        index, self._seeds[offset])
