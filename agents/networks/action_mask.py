"""Removes forbidden actions from a policy over discrete actions."""

import gymnasium
import numpy as np
import tensorflow as tf

from agents import config as config_lib
from agents import types
from agents.networks import discrete, observation_parts
from agents.ops import tensor_bytes


class ActionMask:
  """Gives actions probability 0 that a part of the observation forbids.

  The part has one number per action; 0 forbids the action. Several choices have
  one number per option, those of the first choice first. If the mask forbids
  all options of a choice, all are equally probable.

  Args:
    observation: Observation space.
    action: Action space; Discrete or MultiDiscrete.
    name: Name of the part, see `observation_parts.leaves`.

  Raises:
    ConfigError: If the part does not exist or is no mask of the actions.
  """

  def __init__(self, observation: gymnasium.Space, action: gymnasium.Space, name: str) -> None:
    (self._leaf, *others) = observation_parts.leaves(observation, (name,), "network.action_mask")
    if isinstance(action, gymnasium.spaces.Discrete):
      sizes = np.array([action.n])
    elif isinstance(action, gymnasium.spaces.MultiDiscrete):
      sizes = action.nvec.ravel()
    else:
      raise config_lib.ConfigError(
        "network.action_mask needs Discrete or MultiDiscrete actions; set it to null. "
        f"Received: {action}."
      )
    if others or self._leaf.shape != (sizes.sum(),) or self._leaf.dtype.kind == "f":
      raise config_lib.ConfigError(
        f"network.action_mask={name}: the mask of {action} must be one MultiBinary space, or a "
        f"Box of integers or bools, with shape ({sizes.sum()},). Received: {self._leaf.space}."
      )
    # Position of each option in the mask; surplus logits have no option, see
    # `discrete.Categorical`.
    options = np.arange(sizes.max()) + (sizes.cumsum() - sizes)[:, None]
    self._positions = np.minimum(options, sizes.sum() - 1).ravel()

  def __call__(self, parameters: tf.Tensor, observ: tf.Tensor | types.FrameIndices) -> tf.Tensor:
    """Returns the logits of a policy without forbidden actions, [N, P].

    Args:
      parameters: Logits, [N, P].
      observ: Observations of shape [N, ...].
    """
    if isinstance(observ, types.FrameIndices):
      observ = tf.gather(observ.frames, observ.index[:, -1])
    elif observ.shape.rank == 3:  # Stacked frames.
      observ = observ[:, -1]
    (mask,) = tensor_bytes.unpack(observ, [self._leaf])
    allowed = tf.gather(tf.cast(mask, tf.bool), self._positions, axis=1)
    return tf.where(allowed, parameters, discrete.MASKED_LOGIT)
