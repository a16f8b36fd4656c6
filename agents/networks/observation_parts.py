"""Parts of a Dict observation that a network receives."""

import gymnasium
import numpy as np
import tensorflow as tf

from agents import config as config_lib
from agents import config_parsing, spaces
from agents.networks import observation_encoder


class ObservationParts:
  """Keeps the columns and images of some parts of an observation.

  Args:
    space: Observation space.
    leaves: Leaves of the space that the network receives; see `leaves`.
    stack: Number of frames in an observation.
  """

  def __init__(self, space: gymnasium.Space, leaves: list[spaces.Leaf], stack: int) -> None:
    paths = {leaf.path for leaf in leaves}
    columns = observation_encoder.columns(space)
    size = sum(map(len, columns.values()))
    frame = [index for path, indices in columns.items() if path in paths for index in indices]
    self._columns = np.add.outer(size * np.arange(stack), np.array(frame, int)).ravel()
    images = [leaf for leaf in spaces.leaves(space) if leaf.is_image]
    self._images = [index for index, leaf in enumerate(images) if leaf.path in paths]

  def __call__(self, inputs: tuple[tf.Tensor, ...]) -> tuple[tf.Tensor, ...]:
    """Returns a vector of shape [N, D] and images of shape [N, H, W, C].

    Args:
      inputs: Vector and images of the complete observation, see
        `observation_encoder.ObservationEncoder.inputs`.
    """
    vector, *images = inputs
    return tf.gather(vector, self._columns, axis=1), *(images[index] for index in self._images)


def leaves(
  space: gymnasium.Space, names: tuple[str, ...] | None, setting: str
) -> list[spaces.Leaf]:
  """Returns the leaves of the observation space that a network receives.

  Args:
    space: Observation space.
    names: Names of parts: keys of a Dict, joined by "/" if parts are nested. A
      part includes all parts within it. None selects all leaves.
    setting: Setting with the names, for the error message.

  Raises:
    ConfigError: If the space has no part with one of the names.
  """
  all_leaves = spaces.leaves(space)
  if names is None:
    return all_leaves
  parts = {
    "/".join(leaf.path[: depth + 1]): None for leaf in all_leaves for depth in range(len(leaf.path))
  }
  for name in names:
    if name not in parts:
      known = f"The parts are: {', '.join(parts)}." if parts else "It has no parts."
      raise config_lib.ConfigError(
        f"{setting}: the observation space has no part {name!r}."
        f"{config_parsing.did_you_mean(name, list(parts))} {known} Received: {space}."
      )
  return [
    leaf
    for leaf in all_leaves
    if any("/".join([*leaf.path, ""]).startswith(f"{name}/") for name in names)
  ]


def policy_leaves(space: gymnasium.Space, config: config_lib.Network) -> list[spaces.Leaf]:
  """Returns the leaves of the observation space that determine actions.

  Args:
    space: Observation space.
    config: Section `network` of the configuration.

  Raises:
    ConfigError: See `leaves`.
  """
  names = config.policy_observ
  if names and config.action_mask:
    names = *names, config.action_mask
  return leaves(space, names, "network.policy_observ")
