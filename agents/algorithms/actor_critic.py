"""Base class of algorithms with a policy and a value function."""

from typing import Any

import gymnasium
import numpy as np
import tensorflow as tf

from agents import config as config_lib
from agents import types
from agents.algorithms import (
  deprecated,
  feed_forward_model,
  image_model,
  minibatches,
  recurrent_model,
)
from agents.networks import frame_encoder, observation_moments, pink_noise, torso
from agents.ops import masked, random
from agents.simulation import frame_stack as frame_stack_lib


class ActorCritic(deprecated.EarlierNames):
  """Implements acting and normalization; subclasses define `learn`.

  docs/extending.md contains an example.

  Args:
    config: Hyper-parameters.
    observation_space: Observation space, of a type that `agents.spaces` lists.
    networks: Policy and value networks. The constructor creates their
      variables.
    seed: Seed of all random numbers.
    frame_stack: Number of recent observations that the policy receives at each
      step.

  Attributes:
    config: Hyper-parameters.
    distribution: Distribution over actions.
    observation_encoder: Encodes and normalizes observations.
    model: Computes parameters of the distribution, and values.
    weights: Trainable variables of all networks.
    extra_variables: Further variables that checkpoints must contain, such as
      those of the optimizer.
  """

  def __init__(
    self,
    config: config_lib.Algorithm,
    observation_space: gymnasium.Space,
    networks: feed_forward_model.Networks,
    seed: int,
    frame_stack: int = 1,
  ) -> None:
    self.config = config
    self.distribution = networks.policy.distribution
    self.observation_encoder = frame_encoder.make(
      observation_space,
      observation_moments.make(config),
      config.observ_clip,
      frame_stack,
      frame_indices=bool(config.segment_length),
    )
    model: Any = feed_forward_model.FeedForward
    if isinstance(networks.policy_torso, torso.RecurrentTorso):
      model = recurrent_model.RecurrentModel
    elif networks.have_convolutions:
      model = image_model.ImageModel
    self.model = model(self.observation_encoder, networks)
    self.weights = networks.weights
    self.extra_variables: list[Any] = []
    self._act_seed = random.stream(seed, "act")
    self._pink_noise = (
      pink_noise.PinkNoise(self.distribution, seed) if config.action_noise == "pink" else None
    )

  def noise(self, step_counter: tf.Tensor, num_envs: int) -> tf.Tensor:
    """Returns random numbers for sampling actions.

    Args:
      step_counter: Number of batched steps so far, int64; seeds the random
        numbers.
      num_envs: Number of environments.

    Returns:
      Noise of shape [num_envs, ...].
    """
    if self._pink_noise:
      return self._pink_noise(step_counter, num_envs)
    return self.distribution.noise(num_envs, random.key(self._act_seed, step_counter))

  def initial_state(self, num_envs: int) -> types.PolicyState:
    """Returns the state of the policy at the start of episodes.

    Args:
      num_envs: Number of environments.
    """
    encoder, size = self.observation_encoder, self.model.size
    return types.PolicyState(
      frame_stack_lib.initial_recent(encoder.example, num_envs) if encoder.stack else (),
      tf.zeros([num_envs, size]) if size else (),
    )

  def act(
    self, observ: tf.Tensor, state: types.PolicyState, noise: tf.Tensor | None
  ) -> tuple[tf.Tensor, types.PolicyState]:
    """Selects actions.

    Args:
      observ: Observations of shape [N, ...].
      state: State of the policy before this step, of shape [N, ...].
      noise: Random numbers of shape [N, ...] to sample with; None selects the
        mode of the distribution.

    Returns:
      Actions of shape [N, ...], not clipped to the action space, and the state
      of the policy after this step.
    """
    recent, cell = state
    if recent:
      observ, recent = frame_stack_lib.stack_frames(observ, recent)
    # --8<-- [start:act]
    parameters, cell = self.model.act(observ, cell)
    state = types.PolicyState(recent, cell)
    if noise is None:
      return self.distribution.mode(parameters), state
    return self.distribution.sample(parameters, noise), state
    # --8<-- [end:act]

  def encode(self, observ: tf.Tensor) -> tf.Tensor:
    """Returns observations as normalized vectors, without images, [N, D].

    Args:
      observ: Observations of shape [N, ...].
    """
    return self.observation_encoder(observ)

  def values(self, batch: types.Experience) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the values of all states and of their true successors, each [N].

    Args:
      batch: Tensors of shape [N, ...].
    """
    value, final_value = self.model.values(batch)
    return value, self.next_value(batch, value, final_value)

  def next_value(
    self, batch: types.Experience, value: tf.Tensor, final_value: tf.Tensor
  ) -> tf.Tensor:
    """Returns the values of the true successors of all states, [N].

    Args:
      batch: Tensors of shape [N, ...].
      value: Values of all states, [N].
      final_value: Values of the final observations, [S].
    """
    # --8<-- [start:next_value]
    return tf.where(batch.last, tf.gather(final_value, batch.sequence), tf.roll(value, -1, 0))
    # --8<-- [end:next_value]

  def update_normalization(self, batch: types.Experience) -> dict[str, tf.Tensor]:
    """Adds the observations of a batch to the running moments.

    Args:
      batch: Tensors of shape [N, ...].

    Returns:
      Metrics by name; empty if observations are not normalized.
    """
    encoder = self.observation_encoder
    if not encoder.moments:
      return {}
    observations = minibatches.minibatch(batch.observ, masked.weight(batch.valid))
    clipped = observations.sum(lambda observ, weight: masked.mean(encoder.clipped(observ), weight))

    def update(observ: tf.Tensor, weight: tf.Tensor) -> tuple[()]:
      encoder.update(observ, weight > 0)
      return ()

    observations.sum(update)
    return {
      "observ_clipped": clipped,
      "observ_mean": tf.reduce_mean(encoder.moments.mean),
      "observ_std": tf.reduce_mean(encoder.moments.std),
    }

  def variables(self) -> dict[str, Any]:
    """Returns all variables that a checkpoint contains, by name."""
    moments = self.observation_encoder.moments
    variables = [*self.weights, *self.extra_variables, *(moments.variables if moments else [])]
    named = {getattr(v, "path", v.name): v for v in variables}
    assert len(named) == len(variables), "Two variables share a name."
    return named

  def assign(self, values: dict[str, np.ndarray]) -> None:
    """Sets all variables.

    Args:
      values: Arrays by variable name, see `variables`.
    """
    for name, variable in self.variables().items():
      variable.assign(values[name])
