"""Plays random episodes with an episode log and a naive record beside it."""

from typing import NamedTuple

import numpy as np
import pytest

from agents.environments.data import action_log, episode_data

RUN_SEED = 7
pauses = pytest.mark.parametrize(
    "probability", [0.0, 0.6], ids=["busy", "pauses"])


class Moment(NamedTuple):
  """An episode log after some steps, and the naive record of each row."""

  log: action_log.ActionLog
  observ: np.ndarray  # [B, 1], latest observations.
  actions: list[list[list[float]]]  # Running episodes only.
  rewards: list[list[np.float32]]  # Running episodes only.
  episode: list[int]  # Numbers of the running episodes.
  expected: dict[int, episode_data.Episode]  # Finished by the latest step.
  finished: dict[int, episode_data.Episode]  # Result of `ActionLog.record`.

  @property
  def scores(self):
    return [float32_sum(rewards) for rewards in self.rewards]


def float32_sum(numbers):
  """Adds numbers one after the other in float32."""
  total = np.float32(0)
  for number in numbers:
    total = np.float32(total + number)
  return float(total)


def play(probability=0.0, num_steps=60, size=4, seed=0):
  """Records random episodes; yield a `Moment` at the start and after each step.

  Actions are 100 * row + time, observations -action. Before each episode, rows
  wait with the given probability.
  """
  random = np.random.default_rng(seed)
  observ = np.zeros((size, 1), np.float32)
  log = action_log.ActionLog(RUN_SEED, size)
  log.begin()
  moment = Moment(log, observ, [[] for _ in range(size)],
                  [[] for _ in range(size)], [0] * size, {}, {})
  yield moment
  for time in range(num_steps):
    action = (100 * np.arange(size) + time)[:, None].astype(np.float32)
    inside = np.array([bool(actions) for actions in moment.actions])
    active = inside | (random.random(size) >= probability)
    ended = active & (random.random(size) < 0.15)
    reward = np.where(active, random.normal(0, 9, size), 0).astype(np.float32)
    observ[:] = -action
    moment = moment._replace(
        expected={}, finished=log.record(action, active, reward, ended))
    for row in np.flatnonzero(active):
      moment.actions[row].append([100.0 * row + time])
      moment.rewards[row].append(reward[row])
      if ended[row]:
        moment.expected[row] = episode_data.Episode(
            episode_data.episode_seed(RUN_SEED, int(row), moment.episode[row]),
            np.array(moment.actions[row], np.float32), moment.scores[row], {})
        moment.actions[row], moment.rewards[row] = [], []
        moment.episode[row] += 1
    yield moment
