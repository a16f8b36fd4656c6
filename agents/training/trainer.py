"""The compiled epoch, evaluation, and all the state there is to keep."""

from __future__ import annotations

import itertools
import pickle
import time
import zlib
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any
from typing import Protocol

import numpy as np
import tensorflow as tf

from agents import errors
from agents import spaces
from agents import types
from agents.distributed import rollout_status
from agents.environments.data import episodes
from agents.environments.data import failure_budget
from agents.simulation import evaluator
from agents.simulation import frame_stack
from agents.simulation import in_graph_batch_env
from agents.simulation import rollout
from agents.simulation import simulate
from agents.training import epoch_result

_MANY_STEPS = 2 ** 40  # More than any run takes.
_NOTHING = "No environment has made a single step that can be learned from."


class Algorithm(simulate.Actor, Protocol):
  """What training knows of an algorithm; docs/extending.md has an example."""

  @property
  def weights(self) -> list[Any]:
    """Trainable variables of all networks."""

  def variables(self) -> dict[str, Any]:
    """Return all that a checkpoint must hold, by name."""

  def assign(self, values: dict[str, np.ndarray]):
    """Set all variables."""

  def learn(self, memory: types.Experience, clock: tf.Tensor,
            progress: tf.Tensor) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
    """Learn from all of a memory.

    Returns:
      Scalars to log, with "gradient_steps" and how many of these were
      "finite_steps", and the advantages, of shape [N].
    """

  def encode(self, observ: tf.Tensor) -> tf.Tensor:
    """Returns normalized vectors, [N, D], for observations [N, ...]."""


class Trainer:
  """Trains and evaluates an algorithm on batches of environments.

  Args:
    algorithm: What acts and learns.
    train_env: Environments to learn from, B.
    eval_env: Environments to evaluate in; None if only other machines do.
    memory: What one update learns from.
    in_parts: Learn in several graph calls, as one would take too long.
  """

  def __init__(self, algorithm: Algorithm,
               train_env: in_graph_batch_env.InGraphBatchEnv,
               eval_env: in_graph_batch_env.InGraphBatchEnv | None,
               memory: rollout.RolloutSpec, in_parts: bool = False):
    self.algorithm = algorithm
    self.train_env = train_env
    self._eval_env = eval_env
    self._player = evaluator.Evaluator(
        eval_env, algorithm, explore=False, machines=train_env.machines)
    self.memory = memory
    self._in_parts = in_parts
    self._machines = train_env.machines
    self.fingerprint = b""  # Of the last update, alike on all machines.
    self.train_env.news = lambda: pickle.dumps(self._news())
    self._stop: Callable[[], bool] = bool  # Whether to end the run.
    self._began = 0.0  # Of the epoch.
    self.collecting_seconds: list[float] = []  # Of each machine, last time.
    self.stop_elsewhere = False  # Whether another machine was asked to.
    self._carry: types.Carry | None = None
    self._running: episodes.EpisodeState | None = None

  def start(self):
    """Begin all training episodes."""
    self.train_env.batch_env.reset()
    self._running = self._heard(self._machines.hear(self._news())).running
    with tf.device("CPU:0"):
      self._carry = simulate.initial_carry(
          self._running.observ,
          state=self.algorithm.initial_state(self.train_env.whole))

  def epoch(self, progress: float, stop: Callable[[], bool] = lambda: False
            ) -> epoch_result.Epoch | None:
    """Fill the memory and learn from it.

    Args:
      progress: Share of the budget that is done, in [0, 1].
      stop: Asked during a long update whether to give it up.
    Returns:
      What was done; or None after giving up, as if nothing had been learned.
    Raises:
      EnvironmentsError: If all steps have failed, as far as that is survived.
    """
    env = self.train_env.batch_env
    env.finished.clear()
    self._stop, self._began = stop, time.perf_counter()
    stepping, least = env.step_seconds, env.least_seconds
    share = tf.constant(progress, tf.float32)
    several = self._machines.amount > 1
    before = self._values() if several and (
        self._in_parts or self._machines.share_updates) else []
    try:
      with (self._machines.lost_machines(),
            self.train_env.original_errors()):
        done = (self._epoch_in_parts(share, stop) if self._in_parts else
                self.train_epoch(self._carry, share))
    except errors.MachineLost:  # Perhaps in the middle of an update.
      if before:
        self.algorithm.assign(dict(zip(
            self.algorithm.variables(), before, strict=True)))
      raise
    except tf.errors.InvalidArgumentError as error:
      for text in (_NOTHING, frame_stack.FULL):
        if text in error.message:
          raise errors.EnvironmentsError(text) from None
      raise
    if done is None:
      return None
    carry, metrics, samples, seconds, news_told = done
    heard = self._heard([pickle.loads(told.numpy().tobytes())
                         for told in news_told if told.shape[0]], samples)
    # Assigned together: a failure above leaves the epoch's beginning in place.
    self._carry, self._running = carry, heard.running
    stepping = env.step_seconds - stepping
    in_env, exchanging, collecting, learning = seconds.numpy().tolist()
    numbers = {name: float(value) for name, value in metrics.items()}
    self.fingerprint = np.array([*numbers.values()]).tobytes()
    steps, finite = (int(numbers.pop(name)) for name in (
        "gradient_steps", "finite_steps"))
    return epoch_result.Epoch(
        numbers, steps, finite, heard.finished,
        int(np.count_nonzero(samples.valid.numpy())), {
            "stepping": stepping, "crossing": in_env - stepping,
            "inference": collecting - in_env - exchanging,
            "exchange": exchanging, "learning": learning},
        env.least_seconds - least, samples)

  def _news(self) -> rollout_status.RolloutStatus:
    return rollout_status.latest(self.train_env.batch_env, self._machines, self._stop(),
                       time.perf_counter() - self._began)

  def _heard(self, told: list[rollout_status.RolloutStatus],
             samples: epoch_result.Samples | None = None) -> rollout_status.Heard:
    """Return what all machines together know.

    Args:
      told: By each of them; by this one alone if it is.
      samples: Of what has been done since they told the last time.
    """
    heard = rollout_status.heard(
        self.train_env.batch_env, self._machines, told, samples)
    self.stop_elsewhere |= heard.stop
    self.collecting_seconds = heard.seconds
    return heard

  @tf.function(autograph=False)
  def train_epoch(self, carry: types.Carry, progress: tf.Tensor):
    """Simulate, then learn: one graph, and no way back to Python between."""
    with tf.device("CPU:0"):  # Where the environments are.
      collected, memory, start, middle = self._collect(carry)
      metrics, advantage = self.algorithm.learn(
          memory, carry.step_counter, progress)
      with tf.control_dependencies(list(metrics.values())):
        end = tf.timestamp()
      seconds = tf.stack([collected.env_seconds, collected.exchange_seconds,
                          middle - start, end - middle])
      return (collected.carry, metrics,
              epoch_result.samples(collected, memory, advantage), seconds,
              collected.news)

  def _epoch_in_parts(self, progress: tf.Tensor, stop: Callable[[], bool]):
    """The same in more graph calls, or None after giving up."""
    before = self._variables()
    assert self._carry is not None
    collected, memory, start, middle = self._collect_alone(self._carry)
    for learned in self.algorithm.learn_in_parts(
        memory, self._carry.step_counter, progress):
      if learned is None and stop() and self._machines.amount == 1:
        self.algorithm.assign(before)
        return None
    assert learned is not None
    metrics, advantage = learned
    seconds = tf.stack([collected.env_seconds, collected.exchange_seconds,
                        middle - start, tf.timestamp() - middle])
    return (collected.carry, metrics,
            epoch_result.samples(collected, memory, advantage), seconds,
            collected.news)

  @tf.function(autograph=False)
  def _collect_alone(self, carry: types.Carry):
    with tf.device("CPU:0"):
      return self._collect(carry)

  def _collect(self, carry: types.Carry):
    """Simulate, and return what came of it, also as a memory, and when it
    began and ended."""
    start = tf.timestamp()
    quota = self.memory.quota
    # One thread alone might look at the clock when all else is done.
    with tf.control_dependencies([start]):
      collected = simulate.simulate(
          self.train_env, self.algorithm, carry, self.memory.steps,
          explore=True, quota=None if quota is None else tf.constant(quota))
    transitions = collected.transitions
    with tf.control_dependencies(
        [transitions.reward, transitions.final_observ]):
      middle = tf.timestamp()
    some = tf.debugging.Assert(tf.reduce_any(transitions.valid), [_NOTHING])
    with tf.control_dependencies([middle, *([some] if some is not None else [])]
                                 ):
      valid = tf.identity(transitions.valid)
    memory = self.memory.flatten(
        transitions._replace(valid=valid), carry.state, collected.carry.observ)
    return collected, memory, start, middle

  def histograms(self, samples: epoch_result.Samples) -> dict[str, np.ndarray]:
    """Return numbers whose distribution is worth seeing, by name."""
    observ, action, valid, _, advantage, learned = samples
    seen = self.algorithm.encode(tf.boolean_mask(observ, valid)).numpy()
    found = {"observations": seen,
             "advantages": advantage.numpy()[learned.numpy()]}
    if not spaces.composite(self.train_env.batch_env.action_space):
      found["actions"] = action.numpy()[valid.numpy()]
    return {name: array.ravel() for name, array in found.items() if array.size}

  def evaluate(self, amount: int, stop: Callable[[], bool]
               ) -> tuple[list[float], list[int]] | None:
    """Play episodes with the mean action, the same seeds every time.

    Args:
      amount: Number of episodes.
      stop: Asked now and then whether to give up.
    Returns:
      Scores and lengths, the lowest score first, or None after giving up.
    """
    played = self._player.play(amount, stop)
    if played is None:
      self.stop_elsewhere |= not stop()
      return None
    told = self._machines.hear((
        [(episode.score, episode.length) for episode in played],
        self.checksum() if self._machines.amount > 1 else 0))
    rollout_status.check_equal([checksum for _, checksum in told])
    results = sorted(itertools.chain(*(part for part, _ in told)))
    return [score for score, _ in results], [length for _, length in results]

  @property
  def incidents(self) -> failure_budget.FailureBudget:
    """What has failed in the environments, of training and of evaluation."""
    return self.train_env.batch_env.incidents

  def change_random_numbers(self, number: int):
    """Use others from here on than without this call, or another `number`."""
    assert self._carry is not None
    clock = self._carry.step_counter + number * _MANY_STEPS
    self._carry = self._carry._replace(step_counter=clock)

  def state(self) -> dict[str, np.ndarray]:
    """Return everything of the last completed epoch, as arrays by name."""
    return self.remember()()

  def remember(self) -> Callable[[], dict[str, np.ndarray]]:
    """Return what returns the `state` of now at any later time."""
    assert self._carry is not None and self._running is not None
    carry, running = self._carry, self._running
    names, values = self.algorithm.variables().keys(), self._values()
    def state():
      arrays = {f"variable/{name}": value.numpy()
                for name, value in zip(names, values, strict=True)}
      arrays["clock"] = carry.step_counter.numpy()
      for index, tensor in enumerate(tf.nest.flatten(carry.state)):
        arrays[f"state/{index}"] = tensor.numpy()
      for name, array in running.arrays().items():
        arrays[f"episodes/{name}"] = array
      return arrays
    return state

  def checksum(self) -> int:
    """Return a number that differs if any bit of the variables does."""
    value = 0
    for array in self._variables().values():
      value = zlib.crc32(array.tobytes(), value)
    return value

  @tf.function(autograph=False)
  def _values(self) -> list[tf.Tensor]:
    """Return the values of all variables, which stay what they are."""
    return [tf.identity(tf.convert_to_tensor(variable))
            for variable in self.algorithm.variables().values()]

  def _variables(self) -> dict[str, np.ndarray]:
    return {name: np.asarray(variable)
            for name, variable in self.algorithm.variables().items()}

  def load(self, arrays: dict[str, np.ndarray]):
    """Continue from what `state` returned.

    Raises:
      KeyError: If some are missing.
      ValueError: If the arrays are of another model or version.
    """
    others = [name for name in arrays if name != "clock" and (
        not name.startswith((
            "episodes/", "variable/", "recorded/", "state/")))]
    if others:
      raise ValueError(f"Nobody knows what {', '.join(others)} would be.")
    running = episodes.EpisodeState.from_arrays({
        name.removeprefix("episodes/"): array
        for name, array in arrays.items() if name.startswith("episodes/")})
    clock = arrays["clock"]
    state = self.algorithm.initial_state(self.train_env.whole)
    remembered = [tf.constant(arrays[f"state/{index}"])
                  for index in range(len(tf.nest.flatten(state)))]
    if self.train_env.batch_env.restore(running):
      state = tf.nest.pack_sequence_as(state, remembered)
    load_variables(self.algorithm, arrays)
    self._running = self._heard(self._machines.hear(self._news())).running
    with tf.device("CPU:0"):
      self._carry = simulate.initial_carry(
          self._running.observ, clock, state)

  def end(self, finished: bool):
    """Be told that no more is asked.

    Args:
      finished: Whether the budget is used up, and what came of it evaluated.
    """

  def close(self):
    """Close all environments. Can be repeated."""
    self.train_env.batch_env.close()
    if self._eval_env:
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
