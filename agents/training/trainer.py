"""The compiled epoch, evaluation, and all the state there is to keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from typing import NamedTuple
from typing import Protocol

import numpy as np
import tensorflow as tf

from agents import structs
from agents.environments import episodes as episodes_lib
from agents.ops import masked
from agents.parts import memory as memory_lib
from agents.simulation import in_graph_batch_env
from agents.simulation import simulate

_EVAL_CHUNK = 50  # Steps between two looks at whether to give up.


class Algorithm(simulate.Actor, Protocol):
  """What training knows of an algorithm."""

  def variables(self) -> dict[str, Any]:
    """Return all that a checkpoint must hold, by name."""

  def assign(self, values: dict[str, np.ndarray]):
    """Set all variables."""

  def learn(self, memory: structs.Experience, clock: tf.Tensor,
            progress: tf.Tensor) -> dict[str, tf.Tensor]:
    """Learn from all of a memory and return scalars to log."""


class Epoch(NamedTuple):
  """What one epoch of collecting and learning reports."""

  metrics: dict[str, float]
  scores: list[float]  # Of the episodes that ended, in order of time.
  lengths: list[int]
  reward_parts: list[dict[str, float]]  # Likewise; see `batch_env.Finished`.
  steps: int  # Of all environments together.
  seconds: dict[str, float]  # Stepping, crossing, inference and learning.
  least_seconds: float  # Of stepping, had no worker ever waited.


class Trainer:
  """Trains and evaluates an algorithm on batches of environments.

  Args:
    algorithm: What acts and learns.
    train_env: Environments to learn from, B.
    eval_env: Environments to evaluate in.
    memory: What one update learns from.
  """

  def __init__(self, algorithm: Algorithm,
               train_env: in_graph_batch_env.InGraphBatchEnv,
               eval_env: in_graph_batch_env.InGraphBatchEnv,
               memory: memory_lib.Memory):
    self.algorithm = algorithm
    self.train_env = train_env
    self._eval_env = eval_env
    self.memory = memory
    self._carry: structs.Carry | None = None
    self._running: episodes_lib.Running | None = None

  def start(self):
    """Begin all training episodes."""
    observ = self.train_env.batch_env.reset()
    with tf.device("CPU:0"):
      self._carry = simulate.initial_carry(tf.constant(observ))
    self._running = self.train_env.batch_env.snapshot()

  def epoch(self, progress: float) -> Epoch:
    """Fill the memory and learn from it.

    Args:
      progress: Share of the budget that is done, in [0, 1].
    """
    env = self.train_env.batch_env
    env.finished.clear()
    stepping, least = env.step_seconds, env.least_seconds
    with self.train_env.original_errors():
      carry, metrics, steps, seconds = self.train_epoch(
          self._carry, tf.constant(progress, tf.float32))
    # Assigned together: a failure above leaves the epoch's beginning in place.
    self._carry, self._running = carry, env.snapshot()
    stepping = env.step_seconds - stepping
    in_env, collecting, learning = seconds.numpy().tolist()
    return Epoch(
        {name: float(value) for name, value in metrics.items()},
        [episode.score for episode in env.finished],
        [episode.length for episode in env.finished],
        [episode.info["reward_parts"] for episode in env.finished],
        int(steps), {
            "stepping": stepping, "crossing": in_env - stepping,
            "inference": collecting - in_env, "learning": learning},
        env.least_seconds - least)

  @tf.function(autograph=False)
  def train_epoch(self, carry: structs.Carry, progress: tf.Tensor):
    """Simulate, then learn: one graph, and no way back to Python between."""
    with tf.device("CPU:0"):  # Where the environments are.
      start = tf.timestamp()
      quota = self.memory.quota
      collected = simulate.simulate(
          self.train_env, self.algorithm, carry, self.memory.steps,
          explore=True, quota=None if quota is None else tf.constant(quota))
      transitions = collected.transitions
      with tf.control_dependencies(
          [transitions.reward, transitions.next_observ]):
        middle = tf.timestamp()
      metrics = self.algorithm.learn(
          self.memory.arrange(transitions), carry.clock, progress)
      with tf.control_dependencies(list(metrics.values())):
        end = tf.timestamp()
      seconds = tf.stack([collected.env_seconds, middle - start, end - middle])
      return (collected.carry, metrics, masked.count(transitions.valid),
              seconds)

  def evaluate(self, amount: int, stop: Callable[[], bool]
               ) -> tuple[list[float], list[int]] | None:
    """Play episodes with the mean action, the same seeds every time.

    Every environment plays its share of the episodes, so short ones do not
    come to count more often than long ones.

    Args:
      amount: Number of episodes.
      stop: Asked now and then whether to give up.
    Returns:
      Scores and lengths, or None after giving up.
    """
    batch_env = self._eval_env.batch_env
    batch_env.finished.clear()
    quota = tf.constant(memory_lib.shares(amount, len(self._eval_env)))
    carry = simulate.initial_carry(tf.constant(batch_env.reset()))
    while quota.numpy().any():
      if stop():
        return None
      with self._eval_env.original_errors():
        carry, quota = self._eval_chunk(carry, quota)
    return ([episode.score for episode in batch_env.finished],
            [episode.length for episode in batch_env.finished])

  @tf.function(autograph=False)
  def _eval_chunk(self, carry: structs.Carry, quota: tf.Tensor):
    with tf.device("CPU:0"):
      played = simulate.simulate(
          self._eval_env, self.algorithm, carry, _EVAL_CHUNK, explore=False,
          quota=quota)
    return played.carry, played.left

  def state(self) -> dict[str, np.ndarray]:
    """Return everything of the last completed epoch, as arrays by name."""
    assert self._carry is not None and self._running is not None
    arrays = {f"variable/{name}": np.asarray(variable)
              for name, variable in self.algorithm.variables().items()}
    arrays["clock"] = self._carry.clock.numpy()
    for name, array in self._running.arrays().items():
      arrays[f"episodes/{name}"] = array
    return arrays

  def load(self, arrays: dict[str, np.ndarray]):
    """Continue from what `state` returned.

    Raises:
      ValueError: If the arrays are of another model or version.
    """
    try:
      running = episodes_lib.Running.from_arrays({
          name.removeprefix("episodes/"): array
          for name, array in arrays.items() if name.startswith("episodes/")})
      clock = tf.constant(arrays["clock"])
    except KeyError as error:
      raise ValueError(
          f"The checkpoint lacks {error}; another version of this program "
          "made it.") from None
    self.train_env.batch_env.restore(running)
    load_variables(self.algorithm, arrays)
    self._running = self.train_env.batch_env.snapshot()
    with tf.device("CPU:0"):
      self._carry = structs.Carry(tf.constant(running.observ), clock)

  def close(self):
    """Close all environments. Can be repeated."""
    self.train_env.batch_env.close()
    self._eval_env.batch_env.close()


def load_variables(algorithm: Algorithm, arrays: dict[str, np.ndarray]):
  """Set weights, moments and all other variables from a `Trainer.state`.

  Raises:
    ValueError: If names or shapes differ.
  """
  saved = {name.removeprefix("variable/"): array
           for name, array in arrays.items() if name.startswith("variable/")}
  variables = algorithm.variables()
  def shapes(arrays):
    return {name: tuple(array.shape) for name, array in arrays.items()}
  if shapes(saved) != shapes(variables):
    differing = shapes(saved).items() ^ shapes(variables).items()
    raise ValueError(
        "The checkpoint is of another model; these variables differ: "
        f"{sorted({name for name, _ in differing})}.")
  algorithm.assign(saved)
