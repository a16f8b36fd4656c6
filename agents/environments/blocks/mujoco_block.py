"""Steps Gymnasium's MuJoCo tasks with vectorized observations and rewards.

MuJoCo simulates one environment after the other. A few NumPy calls then compute
the observations, rewards and infos of all environments. The results are
bit-equal to those of Gymnasium's own `step`.
"""

import sys
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np

from agents import spaces
from agents.environments.blocks import gymnasium_block, mujoco_tasks
from agents.environments.data import episode_data
from agents.environments.making import domain_randomization, wrappers

# Attributes of environments that change during an episode.
_CHANGING = ("_np_random_seed", "memory")
_TRIAL_STEPS = 50  # Steps that are compared with Gymnasium's own `step`.
# Wrappers that only count steps. The block counts the steps itself.
_COUNTING_WRAPPERS = (
  gymnasium.wrappers.OrderEnforcing,
  gymnasium.wrappers.TimeLimit,
  wrappers.DefaultTimeLimit,
  wrappers.StaggeredTimeLimit,
)


def supports(env: gymnasium.Env) -> bool:
  """Returns whether `MujocoBlock` can vectorize the steps of an environment.

  Args:
    env: Environment with its wrappers.
  """
  # Vectorized steps neither call the wrappers' `step` nor draw to a window.
  return (
    _task_class(env) is not None
    and env.unwrapped.render_mode != "human"
    and all(
      type(wrapper) in _COUNTING_WRAPPERS or _changes_only_model(wrapper)
      for wrapper in wrappers.chain(env)
    )
  )


def _changes_only_model(wrapper: gymnasium.Wrapper) -> bool:
  return (
    isinstance(wrapper, domain_randomization.DomainRandomization) and wrapper.changes_only_model
  )


class MujocoBlock(gymnasium_block.GymnasiumBlock):
  """Vectorizes the steps of environments with the same task and settings.

  The block steps the environments separately, like `GymnasiumBlock`, in three
  cases: if their settings differ, if a trial shows that Gymnasium's formulas
  have changed, and after `call`, `get` or `set`, because these methods may
  change single environments.

  Args:
    args: See `GymnasiumBlock`.
    kwargs: See `GymnasiumBlock`.
  """

  def __init__(self, *args: Any, **kwargs: Any) -> None:
    self._task: mujoco_tasks.VectorizedMujocoTask | None = None
    super().__init__(*args, **kwargs)
    self._task = _vectorize(self._envs)
    if self._task and not spaces.composite(self._spaces[0]):
      # Skips shape checks, as MuJoCo's shapes are always right.
      self._write_observ = self._arrays["observ"].__setitem__
    # Time limit of each running episode in steps, and whether the limit comes
    # from `StaggeredTimeLimit`.
    self._limits = np.full(len(self._envs), sys.maxsize)
    self._staggered = np.zeros(len(self._envs), bool)
    self._limit_wrappers = list(map(_limit_wrappers, self._envs))
    # Values that domain randomization has drawn for each running episode.
    self._randomization: list[dict[str, float]] = [{} for _ in self._envs]

  def replay(
    self, episode: Sequence[int], seeds: Sequence[int], actions: Sequence[np.ndarray]
  ) -> list[float | str]:
    """See `GymnasiumBlock.replay`."""
    results = super().replay(episode, seeds, actions)
    if self._task:
      for offset, parts in enumerate(self._reward_parts):
        self._task.begin_episode(offset, parts)
    return results

  def _step_active(self, offsets: list[int], actions: np.ndarray) -> gymnasium_block.Outcomes:
    task = self._task
    if task is None or not offsets:
      return super()._step_active(offsets, actions)
    outcomes: gymnasium_block.Outcomes = {}
    rows = self._rows(offsets)
    task.set_actions(rows, actions[rows])
    for offset in offsets:
      try:
        task.simulate(offset)
      except BaseException as error:
        outcomes[offset] = self._tolerate(error, offset)
    # Also computes the rows of failed environments, which `step` overwrites.
    result = task.compute_step(rows, actions[rows])
    self._lengths[rows] += 1
    staggered = self._staggered[rows]
    at_limit = self._lengths[rows] >= self._limits[rows]
    truncated = (at_limit & ~(staggered & result.terminated)) | result.truncated
    arrays = self._arrays
    arrays["observ"][rows] = result.observ
    arrays["reward"][rows] = result.reward
    arrays["terminated"][rows] = result.terminated
    arrays["truncated"][rows] = truncated
    for row in np.flatnonzero(result.terminated | truncated).tolist():
      offset = offsets[row]
      outcome: dict[str, Any] = {
        **episode_data.numbers(result.info(row)),
        **({"cut_short": True} if staggered[row] and at_limit[row] and truncated[row] else {}),
        **self._randomization[offset],
        "reward_parts": task.reward_sums(offset),
      }
      outcomes.setdefault(offset, outcome)  # Keeps failures.
    return outcomes

  def _rows(self, offsets: list[int]) -> Any:
    """Returns an index of rows; a slice of all rows copies no array."""
    return slice(None) if len(offsets) == len(self._envs) else np.array(offsets, int)

  def _record_reset(self, offset: int, info: dict[str, Any]) -> None:
    if self._task:
      self._task.begin_episode(offset, {})
      limits = [
        (wrapper._max_episode_steps, isinstance(wrapper, wrappers.StaggeredTimeLimit))
        for wrapper in self._limit_wrappers[offset]
      ]
      self._randomization[offset] = {
        key: value
        for key, value in info.items()
        if isinstance(key, str) and key.startswith(domain_randomization.PREFIX)
      }
      self._limits[offset], self._staggered[offset] = min(limits, default=(sys.maxsize, False))

  def _build(self, offset: int) -> None:
    super()._build(offset)
    if self._task:
      self._limit_wrappers[offset] = _limit_wrappers(self._envs[offset])
      self._task.replace(offset, self._envs[offset].unwrapped)

  def _access(self, *args: Any) -> list[Any]:
    if self._task:
      # The wrappers did not count the vectorized steps, but count later steps.
      for offset, limit_wrappers in enumerate(self._limit_wrappers):
        for wrapper in limit_wrappers:
          wrapper._elapsed_steps = int(self._lengths[offset])
        self._reward_parts[offset] = self._task.reward_sums(offset)
        self._task.update_env(offset)
      self._task = None
      self._write_observ = spaces.writer(self._spaces[0], self._arrays["observ"])
    return super()._access(*args)


def _vectorize(envs: Sequence[gymnasium.Env]) -> mujoco_tasks.VectorizedMujocoTask | None:
  """Returns the vectorized task of environments, or None if there is none.

  Must be called between episodes, because the comparison with Gymnasium's
  formulas resets and steps the first environment.
  """
  task, robots = _task_class(envs[0]), [env.unwrapped for env in envs]
  if not (task and all(map(supports, envs))):
    return None
  settings = [_settings(robot) for robot in robots]
  is_exact = settings.count(settings[0]) == len(envs) and _equals_gymnasium(task, robots[0])
  share_models = not any(map(_changes_only_model, wrappers.chain(envs[0])))
  return task(robots, share_models) if is_exact else None


def _task_class(env: gymnasium.Env) -> type[mujoco_tasks.VectorizedMujocoTask] | None:
  """Returns the vectorized task of an environment's class, or None."""
  robot = type(env.unwrapped)
  found = mujoco_tasks.TASKS_BY_CLASS.get(f"{robot.__module__}:{robot.__qualname__}")
  return found or vars(robot).get("vectorized_task")


def _limit_wrappers(env: gymnasium.Env) -> list[Any]:
  return [
    wrapper for wrapper in wrappers.chain(env) if isinstance(wrapper, gymnasium.wrappers.TimeLimit)
  ]


def _settings(robot: Any) -> dict[str, Any]:
  """Returns the settings that determine the results of a robot's steps.

  Excludes objects that cannot be compared, such as MuJoCo's `model` and `data`.
  """
  settings = {
    name: np.asarray(value, dtype=object).tolist()
    for name, value in vars(robot).items()
    if isinstance(value, (bool, int, float, str, tuple, list, np.ndarray))
    and name not in _CHANGING
    and not name.startswith("_ezpickle")
  }
  return {**settings, "class": type(robot), "dt": robot.dt}


def _equals_gymnasium(task_class: type[mujoco_tasks.VectorizedMujocoTask], robot: Any) -> bool:
  """Returns whether vectorized steps equal Gymnasium's for random actions."""
  space = robot.action_space
  actions = (
    np.random.default_rng(0)
    .uniform(space.low, space.high, (_TRIAL_STEPS, *space.shape))
    .astype(space.dtype)
  )
  robot.reset(seed=0)
  expected = [
    (spaces.values(robot.observation_space, observ), reward, terminated, episode_data.numbers(info))
    for observ, reward, terminated, _, info in map(robot.step, actions)
  ]
  robot.reset(seed=0)
  task = task_class([robot, robot])
  for action, (observ, *others) in zip(actions, expected, strict=True):
    task.set_actions(np.arange(2), np.stack((action, -action)))
    task.simulate(0)
    task.simulate(1)  # Must not change the next step of row 0.
    step = task.compute_step(np.zeros(1, int), action[None])
    vectorized = step.reward[0], step.terminated[0], episode_data.numbers(step.info(0))
    if tuple(others) != vectorized or not all(
      np.array_equal(column[0], np.asarray(part, column.dtype))
      for column, part in zip(spaces.columns(step.observ), observ, strict=True)
    ):
      return False
  return True
