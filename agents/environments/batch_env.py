"""Many environments as one, with a batch dimension."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

import numpy as np

from agents import errors
from agents.environments import block as block_lib
from agents.environments import episodes
from agents.environments import layout
from agents.environments import memory
from agents.environments import mujoco_log
from agents.environments import workers as workers_lib


class Step(NamedTuple):
  """One step of all B environments."""

  observ: np.ndarray  # [B, ...], to act on; a reset one where an episode ended.
  next_observ: np.ndarray  # [B, ...], the true successor, never a reset.
  reward: np.ndarray  # [B] float32
  terminated: np.ndarray  # [B] bool, no future reward exists.
  truncated: np.ndarray  # [B] bool, stopped although it could go on.
  valid: np.ndarray  # [B] bool, false where the row must not be learned from.


class Finished(NamedTuple):
  """An episode that was played to its end."""

  score: float  # Sum of its rewards.
  length: int  # Steps.
  info: dict[str, Any]  # Of its last step; sums of the parts of the reward
                        # that the environment reports are "reward_parts".


class ReplayError(errors.RunError):
  """Replaying an episode's actions did not lead to its state again."""


class BatchEnv:
  """Environments that start, step and end their episodes side by side.

  Every episode begins with a seed derived from (run seed, index, episode
  number), so nothing depends on how the environments share the workers. The
  actions of running episodes are kept; `restore` rebuilds a `snapshot` of them.

  Args:
    constructors: Functions without arguments that return environments whose
      spaces are alike.
    workers: Processes to step them in; None steps them in this process.
    seed: Run seed.
  """

  def __init__(self, constructors: Sequence[block_lib.Constructor],
               workers: workers_lib.Workers | None = None, seed: int = 0):
    if not constructors:
      raise ValueError("A batch needs at least one environment.")
    self._name = str(constructors[0])
    self._size = len(constructors)
    mujoco_log.capture()
    probe = constructors[0]()
    try:
      self.observation_space = probe.observation_space
      self.action_space = probe.action_space
    finally:
      probe.close()
    spaces = self.observation_space, self.action_space
    layout.check_spaces(*spaces)
    self.action_layout = layout.action_layout(self._size, self.action_space)
    self.step_layout = layout.step_layout(self._size, self.observation_space)
    begin = self.action_layout.num_bytes
    end = begin + self.step_layout.num_bytes
    final = layout.final_layout(self._size, self.observation_space)
    descriptor = memory.create(end + final.num_bytes)
    buffer = memory.attach(os.dup(descriptor))
    self._answers = buffer[begin:end]
    self._arrays = layout.batch_views(buffer, self._size, *spaces)
    self._log = episodes.EpisodeLog(seed, self._arrays["observ"])
    self._halfway = False
    self._infos: dict[int, dict[str, Any]] = {}
    # Of episodes that ended, in order of time; yours to empty.
    self.finished: list[Finished] = []
    self.final_observ: list[np.ndarray] = []  # Each [...].
    self.step_seconds = 0.0  # Time spent waiting for the environments.
    # What it would have been, had all workers been stepping all the time.
    self.least_seconds = 0.0
    self._parallel = 1 if workers is None else min(len(workers), self._size)
    self._block: block_lib.Block | workers_lib.RemoteBlock | None = None
    try:
      if workers is None:
        self._block = block_lib.Block(
            list(constructors), 0, spaces, self._arrays, seed)
      else:
        self._block = workers.open(
            list(constructors), spaces, descriptor, seed)
    finally:
      os.close(descriptor)

  def __len__(self) -> int:
    return self._size

  def reset(self, seeds: Sequence[int] | None = None) -> np.ndarray:
    """Begin episode 0 of every environment.

    Args:
      seeds: One for each of these episodes; derived from the run seed by
        default, as those of all later episodes are.
    Returns:
      Observations of shape [B, ...].
    """
    if seeds is not None and len(seeds) != self._size:
      raise ValueError(f"`seeds` must hold {self._size} numbers, one for each "
                       f"environment. Received: {len(seeds)}.")
    self.final_observ.clear()
    self._open_block.reset(self._log.begin(seeds))
    self._halfway = False
    return self._arrays["observ"].copy()

  def step(self, action: np.ndarray, active: np.ndarray | None = None) -> Step:
    """Step the environments, and begin a new episode where one ended.

    Args:
      action: Array of shape [B, ...]; floats in [-1, 1] or integers from 0.
      active: Bool array of shape [B], by default all true. The others wait,
        which they can only before the first step of an episode.
    """
    fields = self.step_layout.views(self.step_packed(action, active))
    ended = fields["terminated"] | fields["truncated"]
    next_observ = fields["observ"].copy()
    next_observ[ended] = self._arrays["final_observ"][ended]
    return Step(next_observ=next_observ, **fields)

  def step_packed(self, action: np.ndarray, active: np.ndarray | None = None
                  ) -> np.ndarray:
    """Step and return the bytes of `step_layout`, a new array.

    True successors are the observations, and `final_observ` where an episode
    ended.
    """
    expected = self._arrays["action"]
    action = np.array(action, expected.dtype)
    if action.shape != expected.shape:
      raise ValueError(f"`action` must have shape {expected.shape}. "
                       f"Received: {action.shape}.")
    if not self._log.begun:
      raise RuntimeError("Call reset() before step().")
    active = self._checked(active)
    expected[...] = action
    self._arrays["active"][...] = active
    start = time.perf_counter()
    try:
      self._infos = self._open_block.step()
    except BaseException:
      self._halfway = True  # Some environments have gone on, others haven't.
      raise
    self.step_seconds += time.perf_counter() - start
    arrays = self._arrays
    self.least_seconds += float(arrays["seconds"].sum()) / self._parallel
    ended = self._log.append(action, active, arrays["reward"],
                             arrays["terminated"] | arrays["truncated"])
    for index, (score, length) in ended.items():
      self.finished.append(Finished(score, length, self._infos[index]))
      self.final_observ.append(arrays["final_observ"][index].copy())
    return self._answers.copy()

  def _checked(self, active: np.ndarray | None) -> np.ndarray:
    """Return a bool array of shape [B], which environments to step."""
    if active is None:
      return np.ones(self._size, bool)
    active = np.array(active, bool)
    if active.shape != (self._size,):
      raise ValueError(f"`active` must have shape {(self._size,)}. "
                       f"Received: {active.shape}.")
    running = self._log.running
    inside = ~active & (running.first < len(running.actions))
    if inside.any():
      raise ValueError(
          f"Environment {np.flatnonzero(inside)[0]} can't wait in the middle "
          "of an episode, only before its first step.")
    return active

  @property
  def infos(self) -> dict[int, dict[str, Any]]:
    """Infos of the episodes that the last step finished, by index.

    Sums of what the environment reports as `reward_...` at every step are
    under "reward_parts".
    """
    return self._infos

  def snapshot(self) -> episodes.Running:
    """Return seeds and actions of the running episodes.

    Raises:
      RuntimeError: If a step has failed, so that some environments have gone on
        and others haven't.
    """
    if self._halfway:
      raise RuntimeError("There is no snapshot of half a step.")
    return self._log.snapshot()

  def restore(self, running: episodes.Running):
    """Rebuild running episodes by replaying them.

    Raises:
      ReplayError: If the last observations are not the same bits as before.
    """
    if len(running.seed) != self._size:
      raise ValueError(f"The episodes are of {len(running.seed)} "
                       f"environments, the batch has {self._size}.")
    self.final_observ.clear()
    shape = self._arrays["action"].shape[1:]
    actions = [running.episode_actions(index).reshape((-1, *shape))
               for index in range(self._size)]
    self._open_block.replay(
        running.episode.tolist(), running.seed.tolist(), actions)
    for index, observ in enumerate(self._arrays["observ"]):
      if observ.tobytes() != running.observ[index].tobytes():
        raise ReplayError(
            f"Environment {index} ('{self._name}') is not deterministic: seed "
            f"{running.seed[index]} and the same {len(actions[index])} "
            "actions led to another observation, so its episodes can't be "
            "continued in another process.")
    self._log.load(running)
    self._halfway = False

  def call(self, name: str, *args, **kwargs) -> list[Any]:
    """Call a method of every environment and return the results."""
    return self._open_block.call(name, args, kwargs)

  def get(self, name: str) -> list[Any]:
    """Return an attribute of every environment."""
    return self._open_block.get(name)

  def close(self):
    """Close every environment. Can be repeated."""
    block, self._block = self._block, None
    if block:
      block.close()

  def __enter__(self) -> BatchEnv:
    return self

  def __exit__(self, *_):
    self.close()

  @property
  def _open_block(self) -> block_lib.Block | workers_lib.RemoteBlock:
    if not self._block:
      raise RuntimeError("The environments are closed.")
    return self._block
