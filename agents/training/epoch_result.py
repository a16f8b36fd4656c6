"""What one epoch of training reports."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from agents import types
from agents.environments.data import episodes as episodes_lib
from agents.simulation import simulate


class Samples(NamedTuple):
  """What an update learned from."""

  observ: tf.Tensor  # [T, B, ...]
  action: tf.Tensor  # [T, B, ...]
  valid: tf.Tensor  # [T, B] bool
  ended: tf.Tensor  # [T, B] bool, the episode.
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


def samples(collected: simulate.Simulation, memory: types.Experience,
            advantage: tf.Tensor) -> Samples:
  """Return what was learned from.

  Args:
    collected: Steps of all environments.
    memory: The same, lined up.
    advantage: Tensor of shape [N].
  """
  transitions = collected.transitions
  return Samples(transitions.observ, transitions.action, transitions.valid,
                 transitions.terminated | transitions.truncated, advantage,
                 memory.valid)
