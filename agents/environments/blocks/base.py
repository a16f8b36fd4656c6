"""The environments of a block; whatever fails is told by its own name."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any
from typing import NoReturn

import gymnasium
import numpy as np

from agents import errors
from agents.environments.data import mujoco_warnings

Constructor = Callable[[], gymnasium.Env]


class EnvironmentFailure(errors.EnvironmentsError):
  """Says which environment failed where; the cause of the error itself.

  Args:
    message: For people.
    environment: Its index within its batch, if that is known.
    seed: Of its episode, if there is one.
  """

  def __init__(self, message: str, environment: int | None = None,
               seed: int | None = None):
    super().__init__(message)
    self.environment = environment
    self.seed = seed


class BlockBase:
  """Builds and closes environments, and reaches into those that are chosen.

  Args:
    constructors: Functions without arguments that return environments.
    first: Index of the first one within its batch.
    spaces: Observation and action space that all must have.
    alive: Called after each environment that was built.
  """

  # From a buffer, the size of the batch and the spaces to its fields.
  views: Callable[..., dict[str, np.ndarray]]

  def __init__(self, constructors: Sequence[Constructor], first: int,
               spaces: tuple[gymnasium.Space, gymnasium.Space],
               alive: Callable[[], None] = lambda: None):
    self._constructors = constructors
    self._first = first
    self._spaces = spaces
    self._alive = alive
    self._names = [str(constructor) for constructor in constructors]
    # Of the running episodes, for what there is to say of a failure.
    self._seeds: list[int | None] = [None] * len(constructors)
    self._lengths = [0] * len(constructors)
    self._envs: list[gymnasium.Env] = []
    mujoco_warnings.capture()
    try:
      for offset, constructor in enumerate(constructors):
        with self._explained(offset, "its constructor"):
          self._envs.append(constructor())
          self._check_env(offset)
        alive()
    except BaseException:
      self.close()
      raise

  def call(self, name: str, args: tuple, kwargs: dict, chosen: Sequence[bool]
           ) -> list[Any]:
    """Call a method of every chosen environment."""
    results = []
    for offset, env in self._chosen(chosen):
      with self._explained(offset, f"{name}()"):
        results.append(env.get_wrapper_attr(name)(*args, **kwargs))
    return results

  def get(self, name: str, chosen: Sequence[bool]) -> list[Any]:
    """Return an attribute of every chosen environment."""
    results = []
    for offset, env in self._chosen(chosen):
      with self._explained(offset, f"attribute '{name}'"):
        results.append(env.get_wrapper_attr(name))
    return results

  def set(self, name: str, values: Sequence[Any], chosen: Sequence[bool]):
    """Set an attribute of every chosen environment, each to its own value."""
    for offset, env in self._chosen(chosen):
      with self._explained(offset, f"attribute '{name}'"):
        env.set_wrapper_attr(name, values[offset])

  def close(self):
    """Close every environment, also when one of them fails to."""
    envs, self._envs = self._envs, []
    with contextlib.ExitStack() as stack:
      for offset, env in enumerate(envs):
        stack.callback(self._close, offset, env)

  def _chosen(self, chosen: Sequence[bool]) -> list[tuple[int, gymnasium.Env]]:
    return [(offset, env) for offset, env in enumerate(self._envs)
            if chosen[offset]]

  def _check_env(self, offset: int):
    env, spaces = self._envs[offset], self._spaces
    self._names[offset] = (
        env.spec.id if env.spec else type(env.unwrapped).__name__)
    if (env.observation_space, env.action_space) != spaces:
      raise ValueError(
          f"Its spaces are {env.observation_space} and {env.action_space}, "
          f"those of environment 0 are {spaces[0]} and {spaces[1]}; "
          "environments of a batch must be alike.")

  def _close(self, offset: int, env: gymnasium.Env):
    with self._explained(offset, "close()"):
      env.close()

  def _replace(self, offset: int):
    """Build an environment in place of a broken one."""
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
    """Raise the error, with an EnvironmentFailure as its cause."""
    if isinstance(error.__cause__, EnvironmentFailure):
      raise error
    failure = self._failure(error, offset, where)
    # An environment that exits must not end the trainer without a word.
    if isinstance(error, (Exception, KeyboardInterrupt)):
      raise error from failure
    raise failure

  def _failure(self, error: BaseException, offset: int, where: str
               ) -> EnvironmentFailure:
    begun = (f", seed {self._seeds[offset]}, step {self._lengths[offset]} of "
             "its episode") if self._seeds[offset] is not None else ""
    index = self._first + offset
    return EnvironmentFailure(
        f"Environment {index} ('{self._names[offset]}'{begun}) failed in "
        f"{where}:\n\n{''.join(traceback.format_exception(error))}",
        index, self._seeds[offset])
