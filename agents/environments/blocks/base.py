"""Base class of blocks, which hold a share of the environments of a batch."""

import contextlib
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

import gymnasium

from agents import errors
from agents.environments.data import buffer_layout, mujoco_warnings

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


class BlockBase:
  """Builds and closes environments, and accesses selected ones.

  Errors name the environment that failed.

  Args:
    constructors: Functions without arguments that return environments.
    first: Index of the first environment within its batch.
    spaces: Observation and action space that all environments must have.
  """

  # Returns the layout of the shared buffer, given the batch size and spaces.
  layout: Callable[..., buffer_layout.Layout]
  # Called after each environment is built or reset and after each replayed
  # step. Worker processes tell the trainer that they are alive.
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
    mujoco_warnings.capture()
    try:
      for offset, constructor in enumerate(constructors):
        with self._explained(offset, "its constructor"):
          self._envs.append(constructor())
          self._check_env(offset)
        if self.heartbeat:
          self.heartbeat()
    except BaseException:
      self.close()
      raise

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
    results = []
    for offset, env in self._selected(selected):
      with self._explained(offset, f"{name}()"):
        results.append(env.get_wrapper_attr(name)(*args, **kwargs))
    return results

  def get(self, name: str, selected: Sequence[bool]) -> list[Any]:
    """Returns an attribute of every selected environment.

    Args:
      name: Name of the attribute.
      selected: For each environment of the block, whether it is selected.

    Returns:
      The values of the selected environments.
    """
    results = []
    for offset, env in self._selected(selected):
      with self._explained(offset, f"attribute '{name}'"):
        results.append(env.get_wrapper_attr(name))
    return results

  def set(self, name: str, values: Sequence[Any], selected: Sequence[bool]):
    """Sets an attribute of every selected environment.

    Args:
      name: Name of the attribute.
      values: Value for each environment of the block.
      selected: For each environment of the block, whether it is selected.
    """
    for offset, env in self._selected(selected):
      with self._explained(offset, f"attribute '{name}'"):
        env.set_wrapper_attr(name, values[offset])

  def close(self):
    """Closes every environment, even if one of them raises."""
    envs, self._envs = self._envs, []
    with contextlib.ExitStack() as stack:
      for offset, env in enumerate(envs):
        stack.callback(self._close, offset, env)

  def _selected(self, selected: Sequence[bool]
                ) -> list[tuple[int, gymnasium.Env]]:
    return [(offset, env) for offset, env in enumerate(self._envs)
            if selected[offset]]

  def _check_env(self, offset: int):
    env, spaces = self._envs[offset], self._spaces
    self._names[offset] = (
        env.spec.id if env.spec else type(env.unwrapped).__name__)
    if (env.observation_space, env.action_space) != spaces:
      raise ValueError(
          f"Its spaces are {env.observation_space} and {env.action_space}, but "
          f"those of environment 0 are {spaces[0]} and {spaces[1]}. All "
          "environments of a batch must have equal spaces.")

  def _close(self, offset: int, env: gymnasium.Env):
    with self._explained(offset, "close()"):
      env.close()

  def _replace(self, offset: int):
    """Builds a new environment in place of a failed one."""
    with contextlib.suppress(Exception):
      self._envs[offset].close()
    with self._explained(offset, "its constructor"):
      self._envs[offset] = self._constructors[offset]()
      self._check_env(offset)

  @contextlib.contextmanager
  def _explained(self, offset: int, where: str):
    try:
      yield
    except BaseException as error:
      self._fail(error, offset, where)

  def _fail(self, error: BaseException, offset: int, where: str) -> NoReturn:
    """Raises the error, with an EnvironmentFailure as its cause."""
    if isinstance(error.__cause__, EnvironmentFailure):
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
