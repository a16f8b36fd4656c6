"""Logs of episodes that end by chance, and what they should have kept."""

from typing import NamedTuple

import numpy as np
import pytest

from agents.environments.data import episode_log
from agents.environments.data import episodes

pauses = pytest.mark.parametrize("chance", [0.0, 0.6], ids=["busy", "pauses"])


class Logged(NamedTuple):
  """A log after some steps, and all there was to keep, row by row."""

  log: episode_log.EpisodeLog
  observ: np.ndarray  # [B, 1], that the log was given.
  actions: list[list[list[float]]]  # Of the running episode.
  rewards: list[list[np.float32]]  # Likewise.
  episode: list[int]
  ended: dict[int, episodes.Episode]  # What the last step should have told.
  told: dict[int, episodes.Episode]  # And did.

  @property
  def scores(self):
    return [added(rewards) for rewards in self.rewards]


def added(rewards):
  """Add numbers up one after the other, in float32."""
  total = np.float32(0)
  for reward in rewards:
    total = np.float32(total + reward)
  return float(total)


def play(chance=0.0, steps=60, batch=4, seed=0):
  """Log episodes that end by chance; yield the log and all there was to keep.

  Actions are 100 * row + time, observations -action. Rows wait with a chance,
  wherever they can. Every other step is logged in two parts.
  """
  random = np.random.default_rng(seed)
  observ = np.zeros((batch, 1), np.float32)
  log = episode_log.EpisodeLog(7, batch)
  log.begin()
  played = Logged(log, observ, [[] for _ in range(batch)],
                   [[] for _ in range(batch)], [0] * batch, {}, {})
  yield played
  for time in range(steps):
    action = (100 * np.arange(batch) + time)[:, None].astype(np.float32)
    begun = np.array([bool(actions) for actions in played.actions])
    active = begun | (random.random(batch) >= chance)
    ended = active & (random.random(batch) < 0.15)
    reward = np.where(active, random.normal(0, 9, batch), 0).astype(np.float32)
    observ[:] = -action
    told = {}
    bounds = (0, batch // 2, batch) if time % 2 else (0, batch)
    for first, end in zip(bounds, bounds[1:]):
      told.update(log.append(first, *(
          array[first:end] for array in (action, active, reward, ended))))
    played = played._replace(ended={}, told=told)
    for row in np.flatnonzero(active):
      played.actions[row].append([100.0 * row + time])
      played.rewards[row].append(reward[row])
      if ended[row]:
        played.ended[row] = episodes.Episode(
            episodes.episode_seed(7, int(row), played.episode[row]),
            np.array(played.actions[row], np.float32), played.scores[row], {})
        played.actions[row], played.rewards[row] = [], []
        played.episode[row] += 1
    yield played
