"""Records random episodes in an `ActionLog` and, for comparison, in lists."""

from typing import NamedTuple

import numpy as np
import pytest

from agents.environments.data import action_log, episode_data

RUN_SEED = 7
# Probability that an environment waits before an episode.
pauses = pytest.mark.parametrize("pause_probability", [0.0, 0.6], ids=["busy", "pauses"])


class Moment(NamedTuple):
  """An `ActionLog` of B environments after a step, and its expected values."""

  log: action_log.ActionLog
  observ: np.ndarray  # [B, 1], latest observations.
  actions: list[list[list[float]]]  # [B][steps][1], of the running episodes.
  rewards: list[list[np.float32]]  # [B][steps], of the running episodes.
  episode: list[int]  # [B], indices of the running episodes, from 0.
  # Episodes that ended in the latest step, by index of the environment.
  expected: dict[int, episode_data.Episode]
  finished: dict[int, episode_data.Episode]  # Result of `ActionLog.record`.

  @property
  def scores(self):
    return [float32_sum(rewards) for rewards in self.rewards]


def float32_sum(numbers):
  """Adds numbers one by one in float32, as the log adds rewards."""
  total = np.float32(0)
  for number in numbers:
    total = np.float32(total + number)
  return float(total)


def play(pause_probability=0.0, num_steps=60, size=4, seed=0):
  """Records random episodes of several environments.

  In each step, environment `row` receives the action 100 * row + time and
  returns the negative action as its observation.

  Args:
    pause_probability: Probability that an environment between two episodes
      waits for one step.
    num_steps: Number of steps of all environments.
    size: Number of environments.
    seed: Seed of pauses, rewards and ends of episodes.

  Yields:
    A `Moment` before the first step and after each step.
  """
  random = np.random.default_rng(seed)
  observ = np.zeros((size, 1), np.float32)
  log = action_log.ActionLog(RUN_SEED, size)
  log.begin()
  moment = Moment(
    log, observ, [[] for _ in range(size)], [[] for _ in range(size)], [0] * size, {}, {}
  )
  yield moment
  for time in range(num_steps):
    action = (100 * np.arange(size) + time)[:, None].astype(np.float32)
    in_episode = np.array([bool(actions) for actions in moment.actions])
    active = in_episode | (random.random(size) >= pause_probability)
    ended = active & (random.random(size) < 0.15)
    reward = np.where(active, random.normal(0, 9, size), 0).astype(np.float32)
    observ[:] = -action
    moment = moment._replace(expected={}, finished=log.record(action, active, reward, ended))
    for row in np.flatnonzero(active):
      moment.actions[row].append([100.0 * row + time])
      moment.rewards[row].append(reward[row])
      if ended[row]:
        moment.expected[row] = episode_data.Episode(
          episode_data.episode_seed(RUN_SEED, int(row), moment.episode[row]),
          np.array(moment.actions[row], np.float32),
          moment.scores[row],
          {},
          int(row),
        )
        moment.actions[row], moment.rewards[row] = [], []
        moment.episode[row] += 1
    yield moment
