"""What PPO is published to score on MuJoCo tasks, to compare with.

The highest scores known for one, three and about ten million steps. Protocols
differ: Tianshou evaluates sampled actions and takes the best of the mean curve,
the zoo of Stable-Baselines3 the mean action of one run's final model, and what
is of rl_games was read off its curves.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class PublishedScore(NamedTuple):
  """A published score."""

  steps: int
  score: float
  source: str


_TIANSHOU = "Tianshou, v3, 10 seeds"
_ZOO = "SB3 zoo, v3, 1 run"
_RL_GAMES = "rl_games, v4, 1 run"
_XUANCE = "XuanCe, v4, protocol unstated"
_MILLION = 1_000_000

_SCORES = {
    "HalfCheetah": [
        PublishedScore(_MILLION, 5819, _ZOO), PublishedScore(3 * _MILLION, 7337, _TIANSHOU),
        PublishedScore(10 * _MILLION, 7136, _RL_GAMES)],
    "Ant": [PublishedScore(_MILLION, 3258, _TIANSHOU),
            PublishedScore(3 * _MILLION, 4079, _TIANSHOU),
            PublishedScore(3 * _MILLION, 4958, _RL_GAMES),
            PublishedScore(8 * _MILLION, 6153, _RL_GAMES)],
    "Hopper": [PublishedScore(_MILLION, 2609, _TIANSHOU),
               PublishedScore(_MILLION, 3450, _XUANCE),
               PublishedScore(3 * _MILLION, 3128, _TIANSHOU)],
    "Walker2d": [PublishedScore(_MILLION, 3589, _TIANSHOU),
                 PublishedScore(_MILLION, 4319, _XUANCE),
                 PublishedScore(3 * _MILLION, 4896, _TIANSHOU),
                 PublishedScore(10 * _MILLION, 6026, _RL_GAMES)],
    "Humanoid": [PublishedScore(_MILLION, 787, _TIANSHOU),
                 PublishedScore(_MILLION, 3149, _RL_GAMES),
                 PublishedScore(3 * _MILLION, 1418, _TIANSHOU),
                 PublishedScore(3 * _MILLION, 6862, _RL_GAMES),
                 PublishedScore(10 * _MILLION, 9472, _RL_GAMES)],
    "Swimmer": [PublishedScore(_MILLION, 282, _ZOO)],
    "Reacher": [PublishedScore(_MILLION, -4.1, _TIANSHOU)],
    "InvertedPendulum": [PublishedScore(_MILLION, 1000, _TIANSHOU)],
    "InvertedDoublePendulum": [PublishedScore(_MILLION, 9231, _TIANSHOU)]}


def up_to(task: str, steps: int) -> list[PublishedScore]:
  """Return what is published of a task for budgets up to this one.

  Args:
    task: What `results.task` returns. Versions are taken as one: v5 charges
      Ant and Humanoid for contacts, and pays for health while it lasts.
    steps: Budget; a tenth more is taken as the same.
  """
  found = re.fullmatch(r"(\w+)-v\d+", task)  # As it is registered.
  return [anchor for anchor in _SCORES.get(found[1] if found else "", [])
          if anchor.steps <= 1.1 * steps]


def best(task: str, steps: int) -> PublishedScore | None:
  """Return the highest score of the largest of these budgets."""
  return max(up_to(task, steps), default=None,
             key=lambda anchor: (anchor.steps, anchor.score))
