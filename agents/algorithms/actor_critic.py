"""What algorithms that learn a policy and a value have in common."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import tensorflow as tf

from agents import config as config_lib
from agents import types
from agents.algorithms import chunks
from agents.algorithms import minibatches
from agents.algorithms import models
from agents.networks import observation_encoder
from agents.ops import loops
from agents.ops import masked
from agents.ops import random
from agents.simulation import frame_stack as frame_stack_lib


class ActorCritic:
  """All of an algorithm but how it learns, which is for `learn` to say.

  docs/extending.md has an example.

  Args:
    config: Hyper-parameters.
    observation_space: Of any kind that `agents.spaces` can keep.
    networks: Of policy and value, not built yet.
    seed: Seed of everything random.
    frame_stack: How many observations networks see at a time.
  """

  def __init__(self, config: config_lib.Algorithm,
               observation_space: gymnasium.Space, networks: models.Networks,
               seed: int, frame_stack: int = 1):
    self.config = config
    self.head = networks.policy.head
    self.features = observation_encoder.ObservationEncoder(
        observation_space, config.normalize_observ, config.observ_clip,
        frame_stack, by_frames=bool(config.segment_length))
    self.model = models.make(self.features, networks)
    self.weights = networks.weights  # As they are trained.
    self.others: list[Any] = []  # Variables to be kept, as of an optimizer.
    self._act_seed = random.stream(seed, "act")

  def noise(self, clock: tf.Tensor, amount: int) -> tf.Tensor:
    """Random numbers to sample actions by.

    Args:
      clock: Counter of the random numbers, int64.
      amount: Number of environments.
    Returns:
      Noise of shape [amount, ...].
    """
    return self.head.noise(amount, random.key(self._act_seed, clock))

  def initial_state(self, amount: int) -> types.PolicyState:
    """What is remembered where `amount` episodes begin: zeros or nothing."""
    stack, size = self.features.stack, self.model.size
    return types.PolicyState(
        frame_stack_lib.nothing(self.features.example, amount, stack)
        if stack else (),
        tf.zeros([amount, size]) if size else ())

  def act(self, observ: tf.Tensor, state: types.PolicyState,
          noise: tf.Tensor | None) -> tuple[tf.Tensor, types.PolicyState]:
    """Choose actions.

    Args:
      observ: Observations of shape [N, ...].
      state: What is remembered of these episodes.
      noise: To sample by, of shape [N, ...]; None for the distribution's mode.
    Returns:
      Actions of shape [N, ...], not clipped to the space, and the next state.
    """
    recent, cell = state
    if recent:
      observ, recent = frame_stack_lib.stack(observ, recent)
    parameters, cell = self.model.act(observ, cell)
    state = types.PolicyState(recent, cell)
    if noise is None:
      return self.head.mode(parameters), state
    return self.head.sample(parameters, noise), state

  def learn_in_parts(self, memory: types.Experience, clock: tf.Tensor,
                     progress: tf.Tensor) -> Iterator[
                         tuple[dict[str, tf.Tensor], tf.Tensor] | None]:
    """Learn in one part, unless an algorithm has several graph calls for it.

    Args:
      memory, clock, progress: See `learn`.
    Yields:
      None between the calls, and at last what `learn` returns.
    """
    yield self.learn(memory, clock, progress)  # type: ignore[attr-defined]

  def values(self, memory: types.Experience) -> tuple[tf.Tensor, tf.Tensor]:
    """Return the values of each step's state and of its true successor, [N].
    """
    value, final_value = self.model.values(memory)
    next_value = tf.where(
        memory.last, tf.gather(final_value, memory.sequence),
        tf.roll(value, -1, 0))
    return value, next_value

  def update_features(self, memory: types.Experience
                      ) -> dict[str, tf.Tensor]:
    """Add a memory's observations to the moments, and say what these are."""
    moments = self.features.moments
    if not moments:
      return {}
    observ, look = memory.observ, models.look(memory)
    if self.features.stack:
      observ = observ[:, -1]  # Each frame once.
    batch = minibatches.everything(observ, memory.valid)
    def clipped(chunk):
      observ, weight = chunk
      return masked.mean(self.features.clipped(look(observ)), weight)
    metrics = {"observ_clipped": chunks.total(
        clipped, (batch.data, batch.weight), batch.amount)}
    def update(index, state):
      observ, seen = chunks.take((batch.data, batch.weight > 0), index)
      self.features.update(look(observ), seen)
      return state
    loops.repeat(batch.amount, update, ())
    return {**metrics, "observ_mean": tf.reduce_mean(moments.mean),
            "observ_std": tf.reduce_mean(moments.std)}

  def variables(self) -> dict[str, Any]:
    """Return all that a checkpoint must hold, by name."""
    moments = self.features.moments
    variables = [*self.weights, *self.others,
                 *(moments.variables if moments else [])]
    named = {getattr(v, "path", v.name): v for v in variables}
    assert len(named) == len(variables), "Two variables share a name."
    return named

  def assign(self, values: dict[str, np.ndarray]):
    """Set all variables."""
    for name, variable in self.variables().items():
      variable.assign(values[name])
