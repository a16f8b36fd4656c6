"""Result of one training epoch."""

from typing import NamedTuple

import tensorflow as tf

from agents import types
from agents.environments.data import episodes as episodes_lib
from agents.simulation import simulate


class Samples(NamedTuple):
  """Steps that an update learned from."""

  observ: tf.Tensor  # [T, B, ...]
  action: tf.Tensor  # [T, B, ...]
  valid: tf.Tensor  # [T, B] bool
  ended: tf.Tensor  # [T, B] bool, last step of an episode.
  advantage: tf.Tensor  # [N], in units of scaled reward.
  learned: tf.Tensor  # [N] bool, false for padding.


class Epoch(NamedTuple):
  """Metrics, episodes and times of one epoch of collecting and learning."""

  metrics: dict[str, float]
  gradient_steps: int
  finite_steps: int  # Gradient steps with finite gradients.
  episodes: list[episodes_lib.Episode]  # Ended episodes, in order of time.
  steps: int  # Summed over all environments.
  seconds: dict[str, float]  # Wall-clock time, see `time_budget.PARTS`.
  least_seconds: float  # Stepping time if no worker had waited.
  samples: Samples

  @property
  def scored_episodes(self) -> list[episodes_lib.Episode]:
    """Episodes without those truncated to stagger the environments."""
    return [episode for episode in self.episodes
            if not episode.info.get("cut_short")]

  @property
  def scores(self) -> list[float]:
    """Undiscounted return of each scored episode."""
    return [episode.score for episode in self.scored_episodes]

  @property
  def lengths(self) -> list[int]:
    """Steps of each scored episode."""
    return [episode.length for episode in self.scored_episodes]

  @property
  def reward_parts(self) -> list[dict[str, float]]:
    """Sums of the reward parts of each scored episode."""
    return [episode.info["reward_parts"] for episode in self.scored_episodes]


def samples(collected: simulate.Simulation, batch: types.Experience,
            advantage: tf.Tensor) -> Samples:
  """Return the steps that an update learned from.

  Args:
    collected: Simulated steps of all environments, [T, B, ...].
    batch: The same steps as a batch of N rows.
    advantage: Tensor of shape [N], in units of scaled reward.
  Returns:
    Samples of the update.
  """
  transitions = collected.transitions
  return Samples(transitions.observ, transitions.action, transitions.valid,
                 transitions.terminated | transitions.truncated, advantage,
                 batch.valid)
