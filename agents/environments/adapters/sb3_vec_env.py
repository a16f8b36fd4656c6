"""Stable-Baselines3's `VecEnv` interface over a few worker processes.

Needs `pip install stable-baselines3`.
"""

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import vector
from stable_baselines3.common.vec_env import base_vec_env

from agents.environments.adapters import sb3_info_wrapper, vector_env
from agents.environments.blocks import base
from agents.environments.workers import pool


class SB3VecEnv(base_vec_env.VecEnv):
  """Returns the same results as Stable-Baselines3's `DummyVecEnv`.

      PPO("MlpPolicy", SB3VecEnv([lambda: gymnasium.make("Hopper-v5")] * 64))

  Args:
    constructors: Functions without arguments that return environments with
      equal spaces. A function may occur several times.
    workers: See `vector_env.VectorEnv`.
  """

  def __init__(
    self, constructors: Sequence[base.Constructor], workers: pool.WorkerPool | int | None = None
  ) -> None:
    self._envs = vector_env.VectorEnv(
      [sb3_info_wrapper.wrap(constructor) for constructor in constructors],
      workers,
      vector.AutoresetMode.SAME_STEP,
    )
    super().__init__(
      len(constructors), self._envs.single_observation_space, self._envs.single_action_space
    )

  def reset(self) -> base_vec_env.VecEnvObs:
    """Begins an episode in every environment.

    Returns:
      First observation of each environment.

    Raises:
      ValueError: If the environments have different options.
    """
    options = self._options[0]
    if any(other != options for other in self._options):
      raise ValueError(
        "All environments must have the same options: call `set_options` with one dict."
      )
    observ, infos = self._envs.reset(seed=self._seeds, options=options or None)
    self.reset_infos = [info for (info,) in infos["info"]]
    self._reset_seeds()
    self._reset_options()
    return observ

  def step_async(self, actions: np.ndarray) -> None:
    """Begins a step of all environments in the worker processes.

    Args:
      actions: Action of each environment.
    """
    self._envs.step_async(actions)

  def step_wait(self) -> base_vec_env.VecEnvStepReturn:
    """Ends the step; environments whose episode ended begin the next one.

    Returns:
      Observations, rewards, ends and infos. The info of an ended episode
      contains its last observation as "terminal_observation".
    """
    observ, reward, terminated, truncated, infos = self._envs.step_wait()
    done = terminated | truncated
    step_infos = [info for (info,) in infos["info"]]
    for index in np.flatnonzero(done).tolist():
      self.reset_infos[index] = step_infos[index]
      (final_info,) = infos["final_info"]["info"][index]
      step_infos[index] = {**final_info, "terminal_observation": infos["final_obs"][index]}
    for index, info in enumerate(step_infos):
      info["TimeLimit.truncated"] = bool(truncated[index] & ~terminated[index])
    return observ, reward.astype(np.float32), done, step_infos

  def close(self) -> None:
    """Closes all environments, and ends processes that this object started."""
    self._envs.close()

  def get_attr(self, attr_name: str, indices: base_vec_env.VecEnvIndices = None) -> list[Any]:
    """Returns an attribute of selected environments or of their wrappers.

    Args:
      attr_name: Name of the attribute.
      indices: Selected environments; all by default.
    """
    return self.env_method(attr_name, indices=indices)

  def set_attr(
    self, attr_name: str, value: Any, indices: base_vec_env.VecEnvIndices = None
  ) -> None:
    """Sets an attribute where a wrapper or the environment already has it.

    Args:
      attr_name: Name of the attribute.
      value: New value, the same for all selected environments.
      indices: Selected environments; all by default.
    """
    self.env_method("set_wrapper_attr", attr_name, value, indices=indices)

  def env_method(
    self,
    method_name: str,
    *method_args: Any,
    indices: base_vec_env.VecEnvIndices = None,
    **method_kwargs: Any,
  ) -> list[Any]:
    """Calls a method of selected environments.

    Args:
      method_name: Name of a method of the environments or of their wrappers.
      method_args: Positional arguments of the method.
      indices: Selected environments; all by default.
      method_kwargs: Keyword arguments of the method.

    Returns:
      Result of each selected environment, in the order of `indices`.
    """
    order = list(self._get_indices(indices))
    selected = [index in order for index in range(self.num_envs)]
    results = dict(
      zip(
        sorted(set(order)),
        self._envs.block.call(method_name, method_args, method_kwargs, selected),
        strict=True,
      )
    )
    return [results[index] for index in order]

  def env_is_wrapped(
    self, wrapper_class: type[gymnasium.Wrapper], indices: base_vec_env.VecEnvIndices = None
  ) -> list[bool]:
    """Returns whether each selected environment has a wrapper.

    Args:
      wrapper_class: Class of the wrapper.
      indices: Selected environments; all by default.
    """
    return self.env_method("_is_wrapped", wrapper_class, indices=indices)

  def get_images(self) -> Sequence[np.ndarray | None]:
    """Returns the rendered frame of each environment."""
    return self._envs.render()
