"""Trainer: epochs in one graph, evaluation, and the state for checkpoints."""

import math
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from agents import config as config_lib
from agents import errors, spaces, types
from agents.environments.data import episode_data
from agents.simulation import evaluator as evaluator_lib
from agents.simulation import frame_stack, in_graph_batch_env, rollout_to_batch, simulate
from agents.training import epoch_result

_MAX_STEPS = 2**40  # More batched steps than any run takes.
# Prefixes of array names in a checkpoint.
_PREFIXES = ("clock", "episodes/", "variable/", "recorded/", "state/")
_SLACK_BYTES = 2**20
_NO_VALID_STEP = "All steps of all environments in this epoch have failed."


class Algorithm(simulate.Actor, Protocol):
  """The methods of an algorithm; docs/extending.md has an example."""

  @property
  def weights(self) -> list[Any]:
    """Trainable variables of all networks."""

  def variables(self) -> dict[str, Any]:
    """Returns all variables that a checkpoint stores, by name."""

  def assign(self, values: dict[str, np.ndarray]) -> None:
    """Sets all variables.

    Args:
      values: New values by name, for all names in `variables`.
    """

  def learn(
    self, batch: types.Experience, step_counter: tf.Tensor, progress: tf.Tensor
  ) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
    """Learns from a batch of steps.

    Args:
      batch: Tensors of shape [N, ...].
      step_counter: Batched steps so far, int64; seeds the random numbers.
      progress: Completed share of the budget, in [0, 1].

    Returns:
      Scalars to log by name, and advantages of shape [N]. Required scalars are
      "gradient_steps", the number of gradient steps, and "finite_steps", the
      number of gradient steps with finite gradients.
    """

  def encode(self, observ: tf.Tensor) -> tf.Tensor:
    """Returns the inputs of the networks, [N, D], for observations [N, ...]."""


class Trainer:
  """Trains and evaluates an algorithm on batches of environments.

  Args:
    algorithm: Selects actions, and learns from batches.
    train_env: The B training environments.
    evaluator: Plays the evaluation episodes; None if another machine plays them
      all.
    rollout_spec: Size and layout of the batch of one update.
  """

  def __init__(
    self,
    algorithm: Algorithm,
    train_env: in_graph_batch_env.InGraphBatchEnv,
    evaluator: evaluator_lib.Evaluator | None,
    rollout_spec: rollout_to_batch.RolloutSpec,
  ) -> None:
    self.algorithm = algorithm
    self.train_env = train_env
    self.rollout_spec = rollout_spec
    self.evaluator = evaluator
    self._actor: simulate.Actor = algorithm
    self._carry: types.Carry | None = None
    self._episodes: episode_data.EpisodeState | None = None

  @tf.function(autograph=False)
  def train_epoch(
    self, carry: types.Carry, progress: tf.Tensor
  ) -> tuple[types.Carry, dict[str, tf.Tensor], epoch_result.Samples, dict[str, tf.Tensor]]:
    """Collects one batch and learns from it, in one graph.

    Args:
      carry: Latest observations and state of the policy.
      progress: Completed share of the budget, in [0, 1].

    Returns:
      The next carry, metrics by name, samples for histograms, and durations in
      seconds by name.
    """
    with tf.device("CPU:0"):  # The device of the environments.
      start = tf.timestamp()
      with tf.control_dependencies([start]):
        simulation = self.collect(carry)
      transitions = simulation.transitions
      with tf.control_dependencies([transitions.reward, transitions.final_observ]):
        middle = tf.timestamp()
      check = tf.debugging.Assert(tf.reduce_any(transitions.valid), [_NO_VALID_STEP])
      with tf.control_dependencies([middle, check]):
        rollout = transitions._replace(valid=tf.identity(transitions.valid))
      batch = self.rollout_spec.flatten(rollout, carry.state, simulation.carry.observ)
      metrics, advantage = self.algorithm.learn(batch, carry.step_counter, progress)
      with tf.control_dependencies(list(metrics.values())):
        end = tf.timestamp()
        metrics = {**metrics, "finite_weights": self._finite_weights()}
      ended = transitions.terminated | transitions.truncated
      samples = epoch_result.Samples(
        transitions.observ, transitions.action, transitions.valid, ended, advantage, batch.valid
      )
      seconds = {**simulation.seconds, "collect": middle - start, "learn": end - middle}
      return simulation.carry, metrics, samples, seconds

  def collect(self, carry: types.Carry) -> simulate.Simulation:
    """Steps the environments; `train_epoch` calls this method in its graph.

    Args:
      carry: Latest observations and state of the policy.

    Returns:
      The next carry, transitions of shape [T, B, ...], and durations.
    """
    spec = self.rollout_spec
    arguments = self.train_env, self._actor, carry, spec.steps
    if spec.quota is None:
      return simulate.simulate(*arguments)
    simulation, _ = simulate.simulate_episodes(
      *arguments, explore=True, episodes_left=tf.constant(spec.quota)
    )
    return simulation

  def start(self) -> None:
    """Begins all training episodes."""
    self.train_env.batch_env.reset()
    self._begin(self._episode_state())

  def epoch(self, progress: float) -> epoch_result.Epoch | None:
    """Collects one batch and learns from it.

    Args:
      progress: Completed share of the budget, in [0, 1].

    Returns:
      Metrics, episodes and seconds of the epoch. Subclasses return None if
      training ends before the epoch.

    Raises:
      EnvironmentsError: If all steps have failed, too many episodes were
        truncated, or failures exceed the failure budget. An environment's own
        error may be raised instead, with an EnvironmentsError as its cause. The
        trainer still has the state from before the epoch.
    """
    env = self.train_env.batch_env
    env.take_finished()
    step_seconds, busy_seconds = env.step_seconds, env.busy_seconds
    try:
      with self.train_env.original_errors():
        results = self.train_epoch(self._carry, tf.constant(progress, tf.float32))
    except tf.errors.InvalidArgumentError as error:
      _raise_explained(error)
      raise
    carry, metrics, samples, seconds = results
    finished, state = self._collected(samples)
    # Sets the state last, so that an error above does not change the state.
    self._carry, self._episodes = carry, state
    numbers = {name: float(value) for name, value in metrics.items()}
    seconds = {name: float(value) for name, value in seconds.items()}
    gradient_steps = int(numbers.pop("gradient_steps"))
    finite_steps = int(numbers.pop("finite_steps"))
    finite_weights = bool(numbers.pop("finite_weights"))
    stepping = env.step_seconds - step_seconds
    # Only trainers of several machines measure "exchange".
    exchange = seconds.get("exchange", 0.0)
    durations = {
      "stepping": stepping,
      "crossing": seconds["env"] - stepping,
      "inference": seconds["collect"] - seconds["env"] - exchange,
      "exchange": exchange,
      "learning": seconds["learn"],
    }
    num_steps = int(np.count_nonzero(samples.valid.numpy()))
    busy = env.busy_seconds - busy_seconds
    return epoch_result.Epoch(
      numbers,
      gradient_steps,
      finite_steps,
      finite_weights,
      finished,
      num_steps,
      durations,
      busy,
      samples,
    )

  def evaluate(self, num_episodes: int, stop: Callable[[], bool]) -> epoch_result.Statistics | None:
    """Plays episodes without exploration, with the same seeds in every call.

    Args:
      num_episodes: Number of episodes.
      stop: Returns whether to abort; called repeatedly.

    Returns:
      Statistics of the episodes in ascending order of scores, or None if
      aborted.
    """
    assert self.evaluator
    finished = self.evaluator.play(num_episodes, stop)
    if finished is None:
      return None
    return epoch_result.merged([epoch_result.statistics(finished)])

  def histograms(self, samples: epoch_result.Samples) -> dict[str, np.ndarray]:
    """Returns the values for the histograms in TensorBoard.

    Args:
      samples: Samples of the latest epoch.

    Returns:
      Flat arrays by name.
    """
    observ, action, valid, _, advantage, learned = samples
    inputs = self.algorithm.encode(tf.boolean_mask(observ, valid)).numpy()
    values = {"observations": inputs, "advantages": advantage.numpy()[learned.numpy()]}
    if not spaces.composite(self.train_env.batch_env.action_space):
      values["actions"] = action.numpy()[valid.numpy()]
    return {name: array.ravel() for name, array in values.items() if array.size}

  def graph(self) -> tf.Graph:
    """Returns the graph of `train_epoch`, which contains all its functions."""
    return self.train_epoch.get_concrete_function(self._carry, tf.constant(0.0)).graph

  @property
  def worker_pids(self) -> list[int]:
    """Process ids of the workers of training and evaluation environments."""
    envs = [self.train_env, *([self.evaluator.env] if self.evaluator else [])]
    return sorted({pid for env in envs for pid in env.batch_env.worker_pids})

  def change_random_numbers(self, number: int) -> None:
    """Uses other random numbers in all further epochs.

    Args:
      number: Positive integer; different integers select different random
        numbers.
    """
    assert self._carry is not None
    self._carry = self._carry._replace(step_counter=self._carry.step_counter + number * _MAX_STEPS)

  def state(self) -> dict[str, np.ndarray]:
    """Returns the state after the latest epoch, as arrays by name."""
    return self.capture()()

  def capture(self) -> Callable[[], dict[str, np.ndarray]]:
    """Copies the state to tensors in host memory.

    Returns:
      Function that returns the copy as arrays by name, like `state`. Any
      thread may call the function, even while an epoch runs.
    """
    assert self._carry is not None and self._episodes is not None
    carry, episodes = self._carry, self._episodes
    names, values = self.algorithm.variables().keys(), self._copy_variables()

    def arrays() -> dict[str, np.ndarray]:
      state = {f"variable/{name}": value.numpy() for name, value in zip(names, values, strict=True)}
      state["clock"] = carry.step_counter.numpy()
      for index, tensor in enumerate(tf.nest.flatten(carry.state)):
        state[f"state/{index}"] = tensor.numpy()
      for name, array in episodes.arrays().items():
        state[f"episodes/{name}"] = array
      return state

    return arrays

  def load(self, arrays: dict[str, np.ndarray]) -> None:
    """Restores the state of a trainer.

    Args:
      arrays: Result of `state`.

    Raises:
      KeyError: If an array is missing.
      ValueError: If the arrays belong to another model or version.
    """
    if unknown := [name for name in arrays if not name.startswith(_PREFIXES)]:
      raise ValueError(f"Unknown arrays in the checkpoint: {', '.join(unknown)}.")
    episodes = episode_data.EpisodeState.from_arrays(_select(arrays, "episodes/"))
    state = self.algorithm.initial_state(len(episodes.seed))
    saved = [tf.constant(arrays[f"state/{index}"]) for index in range(len(tf.nest.flatten(state)))]
    self._restore(episodes)
    load_variables(self.algorithm, arrays)
    running = self._episode_state()
    # Environments have begun other episodes if theirs could not be rebuilt.
    continues = tf.constant(running.episode == episodes.episode)
    state = simulate.reset_state(tf.nest.pack_sequence_as(state, saved), continues)
    self._begin(running, arrays["clock"], state)

  def end(self, finished: bool) -> None:
    """Called once when training ends; subclasses may override this method.

    Args:
      finished: Whether the budget is used up and the final policy is evaluated.
    """

  def close(self) -> None:
    """Closes all environments. Repeated calls have no effect."""
    self.train_env.batch_env.close()
    if self.evaluator:
      self.evaluator.close()

  def _begin(
    self, episodes: episode_data.EpisodeState, step_counter: Any = 0, state: Any = None
  ) -> None:
    """Sets the carry to the latest observations of the running episodes."""
    self._episodes = episodes
    if state is None:
      state = self.algorithm.initial_state(len(episodes.seed))
    with tf.device("CPU:0"):
      self._carry = simulate.initial_carry(episodes.observ, step_counter, state)

  def _collected(
    self, samples: epoch_result.Samples
  ) -> tuple[list[episode_data.Episode], episode_data.EpisodeState]:
    """Returns the episodes that ended in an epoch, and the running episodes."""
    env = self.train_env.batch_env
    return env.take_finished(), env.snapshot()

  def _episode_state(self) -> episode_data.EpisodeState:
    return self.train_env.batch_env.snapshot()

  def _restore(self, episodes: episode_data.EpisodeState) -> None:
    """Rebuilds running episodes, or begins other ones."""
    self.train_env.batch_env.restore(episodes)

  def _finite_weights(self) -> tf.Tensor:
    """Returns whether all weights are finite, 1.0 or 0.0."""
    weights = map(tf.convert_to_tensor, self.algorithm.weights)
    finite = [tf.reduce_all(tf.math.is_finite(weight)) for weight in weights]
    return tf.cast(tf.reduce_all(finite), tf.float32)

  @tf.function(autograph=False)
  def _copy_variables(self) -> list[tf.Tensor]:
    """Returns copies of all variables, which later epochs do not change."""
    with tf.device("CPU:0"):
      return [
        tf.identity(tf.convert_to_tensor(variable))
        for variable in self.algorithm.variables().values()
      ]


def check_sizes(algorithm: Algorithm, sizes: Mapping[str, int]) -> None:
  """Checks the sizes of variables in a checkpoint before they are read.

  `load_variables` explains smaller differences.

  Args:
    algorithm: Algorithm with the same configuration as the saved algorithm.
    sizes: Number of bytes of each array by name.

  Raises:
    ConfigError: If the variables have more than twice the bytes of the model.
  """
  expected = sum(
    math.prod(variable.shape) * tf.as_dtype(variable.dtype).size
    for variable in algorithm.variables().values()
  )
  received = sum(size for name, size in sizes.items() if name.startswith("variable/"))
  if received > 2 * expected + _SLACK_BYTES:
    raise config_lib.ConfigError(
      f"The variables of the checkpoint have {received:,} bytes, but those of the model of "
      f"config.yaml have {expected:,}."
    )


def load_variables(algorithm: Algorithm, arrays: dict[str, np.ndarray]) -> None:
  """Sets the variables of an algorithm.

  Args:
    algorithm: Algorithm with the same configuration as the saved algorithm.
    arrays: Result of `Trainer.state`; arrays other than variables are ignored.

  Raises:
    ValueError: If names or shapes differ.
  """
  saved, variables = _select(arrays, "variable/"), algorithm.variables()

  def shapes(arrays: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(array.shape) for name, array in arrays.items()}

  if differing := shapes(saved).items() ^ shapes(variables).items():
    raise ValueError(
      "The checkpoint is of another model; these variables differ: "
      f"{sorted({name for name, _ in differing})}."
    )
  algorithm.assign(saved)


def _raise_explained(error: tf.errors.InvalidArgumentError) -> None:
  """Raises EnvironmentsError if an assertion of the graph has failed."""
  for text in (_NO_VALID_STEP, frame_stack.TOO_MANY_TRUNCATIONS):
    if text in error.message:
      raise errors.EnvironmentsError(text) from None


def _select(arrays: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
  """Returns the arrays with a prefix in their names, without the prefix."""
  return {
    name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)
  }
