"""Names of the previous release that users' algorithms may still use.

These names remain for one release; docs/extending.md uses the current ones.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from agents import types

_NEW_NAMES = {
  "both": "policy_and_value",
  "features": "observation_encoder",
  "head": "distribution",
  "others": "extra_variables",
  "update_features": "update_normalization",
}


class EarlierNames:
  """Maps earlier names of attributes and methods to the current ones."""

  def __getattr__(self, name: str) -> Any:
    return super().__getattribute__(_NEW_NAMES.get(name, name))

  def __setattr__(self, name: str, value: Any) -> None:
    super().__setattr__(_NEW_NAMES.get(name, name), value)

  def deal(self, *args: Any) -> Minibatches:
    """Calls `shuffle_split` of a model; returns minibatches in chunks."""
    return Minibatches(self.shuffle_split(*args))


class Batch(NamedTuple):
  """A minibatch in K chunks of C rows."""

  data: Any  # Structure of tensors of shape [K, C, ...].
  weight: tf.Tensor  # [K, C]
  amount: Any  # Number of chunks with valid rows.


class Minibatches(NamedTuple):
  """Minibatches that consist of chunks."""

  minibatches: Any

  def take(self, index: tf.Tensor | int) -> Batch:
    """Returns one minibatch in chunks."""
    minibatch = self.minibatches.take(index)
    if hasattr(minibatch, "num_chunks"):
      return Batch(*minibatch)
    data, weight = types.map_tensors(lambda tensor: tensor[None], tuple(minibatch))
    return Batch(data, weight, tf.constant(1))
