"""Names of earlier versions that users' algorithms may still use.

They remain for one release; docs/extending.md has the present names.
"""

from __future__ import annotations

from typing import Any
from typing import NamedTuple

import tensorflow as tf

from agents import types


class AlgorithmNames:
  """Earlier names of attributes of `actor_critic.ActorCritic`."""

  @property
  def head(self) -> Any:
    """Use `distribution`."""
    return self.distribution  # type: ignore[attr-defined]

  @property
  def features(self) -> Any:
    """Use `encode`, or `observation_encoder`."""
    return self.observation_encoder  # type: ignore[attr-defined]

  @property
  def others(self) -> list[Any]:
    """Use `extra_variables`."""
    return self.extra_variables

  @others.setter
  def others(self, variables: list[Any]):
    self.extra_variables = variables

  def update_features(self, batch: types.Experience) -> dict[str, tf.Tensor]:
    """Use `update_normalization`."""
    return self.update_normalization(batch)  # type: ignore[attr-defined]


class ModelNames:
  """Earlier names of methods of models."""

  def both(self, observ: Any, context: Any = ()
           ) -> tuple[tf.Tensor, tf.Tensor]:
    """Use `policy_and_value`."""
    return self.policy_and_value(  # type: ignore[attr-defined]
        observ, context)

  def deal(self, *args) -> Minibatches:
    """Use `shuffle_split`, and `sum` of a minibatch."""
    return Minibatches(self.shuffle_split(  # type: ignore[attr-defined]
        *args))


class Batch(NamedTuple):
  """A minibatch in K chunks of C rows."""

  data: Any  # Structure of tensors of shape [K, C, ...].
  weight: tf.Tensor  # [K, C]
  amount: Any  # Number of chunks with valid rows; the first ones.


class Minibatches(NamedTuple):
  """Minibatches that `take` returns in chunks."""

  minibatches: Any

  @property
  def amount(self) -> Any:
    """Number of minibatches."""
    return self.minibatches.num_minibatches

  def take(self, index: tf.Tensor | int) -> Batch:
    """Returns one minibatch in chunks."""
    minibatch = self.minibatches.take(index)
    if hasattr(minibatch, "num_chunks"):
      return Batch(*minibatch)
    samples, weight = tf.nest.map_structure(
        lambda tensor: tensor[None], tuple(minibatch))
    return Batch(samples, weight, tf.constant(1))
