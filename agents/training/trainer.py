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
from agents.environments import incidents as incidents_lib
from agents.parts import memory as memory_lib
from agents.simulation import in_graph_batch_env
from agents.simulation import simulate
from agents.training import player

_MANY_STEPS = 2 ** 40  # More than any run takes.


class Algorithm(simulate.Actor, Protocol):
  """What training knows of an algorithm."""

  @property
  def weights(self) -> list[Any]:
    """Trainable variables of all networks."""

  def variables(self) -> dict[str, Any]:
    """Return all that a checkpoint must hold, by name."""

  def assign(self, values: dict[str, np.ndarray]):
    """Set all variables."""

  def learn(self, memory: structs.Experience, clock: tf.Tensor,
            progress: tf.Tensor) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
    """Learn from all of a memory.

    Returns:
      Scalars to log, with "gradient_steps" and how many of these were
      "finite_steps", and the advantages, of shape [N].
    """

  def features(self, observ: tf.Tensor) -> tf.Tensor:
    """Return what the networks see of observations, [N, ...] to [N, D]."""


class Samples(NamedTuple):
  """What an update learned from."""

  observ: tf.Tensor  # [T, B, ...]
  action: tf.Tensor  # [T, B, ...]
  valid: tf.Tensor  # [T, B] bool
  advantage: tf.Tensor  # [N], in units of scaled reward.
  learned: tf.Tensor  # [N] bool, false for padding.


class Epoch(NamedTuple):
  """What one epoch of collecting and learning reports."""

  metrics: dict[str, float]
  gradient_steps: int
  finite_steps: int  # Gradient steps whose gradients were finite numbers.
  episodes: list[episodes_lib.Episode]  # That ended, in order of time.
  steps: int  # Of all environments together.
  seconds: dict[str, float]  # Stepping, crossing, inference and learning.
  least_seconds: float  # Of stepping, had no worker ever waited.
  samples: Samples

  @property
  def whole(self) -> list[episodes_lib.Episode]:
    """Episodes to be scored; others were only cut to stagger the next ones."""
    return [episode for episode in self.episodes
            if not episode.info.get("cut_short")]

  @property
  def scores(self) -> list[float]:
    """Of the whole episodes."""
    return [episode.score for episode in self.whole]

  @property
  def lengths(self) -> list[int]:
    """Of the whole episodes."""
    return [episode.length for episode in self.whole]

  @property
  def reward_parts(self) -> list[dict[str, float]]:
    """Of the whole episodes."""
    return [episode.info["reward_parts"] for episode in self.whole]


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
    self._player = player.Player(eval_env, algorithm, explore=False)
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
      carry, metrics, samples, seconds = self.train_epoch(
          self._carry, tf.constant(progress, tf.float32))
    # Assigned together: a failure above leaves the epoch's beginning in place.
    self._carry, self._running = carry, env.snapshot()
    stepping = env.step_seconds - stepping
    in_env, collecting, learning = seconds.numpy().tolist()
    numbers = {name: float(value) for name, value in metrics.items()}
    steps, finite = (int(numbers.pop(name)) for name in (
        "gradient_steps", "finite_steps"))
    return Epoch(
        numbers, steps, finite, list(env.finished),
        int(np.count_nonzero(samples.valid.numpy())), {
            "stepping": stepping, "crossing": in_env - stepping,
            "inference": collecting - in_env, "learning": learning},
        env.least_seconds - least, samples)

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
      memory = self.memory.arrange(transitions)
      metrics, advantage = self.algorithm.learn(
          memory, carry.clock, progress)
      with tf.control_dependencies(list(metrics.values())):
        end = tf.timestamp()
      seconds = tf.stack([collected.env_seconds, middle - start, end - middle])
      samples = Samples(
          transitions.observ, transitions.action, transitions.valid, advantage,
          memory.valid)
      return collected.carry, metrics, samples, seconds

  def histograms(self, samples: Samples) -> dict[str, np.ndarray]:
    """Return numbers whose distribution is worth seeing, by name."""
    observ, action, valid, advantage, learned = samples
    seen = self.algorithm.features(tf.boolean_mask(observ, valid))
    return {"observations": seen.numpy().ravel(),
            "actions": action.numpy()[valid.numpy()].ravel(),
            "advantages": advantage.numpy()[learned.numpy()]}

  def evaluate(self, amount: int, stop: Callable[[], bool]
               ) -> tuple[list[float], list[int]] | None:
    """Play episodes with the mean action, the same seeds every time.

    Args:
      amount: Number of episodes.
      stop: Asked now and then whether to give up.
    Returns:
      Scores and lengths, or None after giving up.
    """
    played = self._player.play(amount, stop)
    if played is None:
      return None
    return ([episode.score for episode in played],
            [episode.length for episode in played])

  def incidents(self) -> list[incidents_lib.Incident]:
    """Return what failed since this was asked for the last time, and was
    replaced."""
    return self.train_env.batch_env.incidents.take()  # Of both batches.

  def change_random_numbers(self, number: int):
    """Use others from here on than without this call, or another `number`."""
    assert self._carry is not None
    clock = self._carry.clock + number * _MANY_STEPS
    self._carry = self._carry._replace(clock=clock)

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
