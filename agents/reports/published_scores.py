"""Published scores of PPO on MuJoCo tasks, for comparison.

The table contains the highest known scores for one, three and about ten
million steps. Protocols differ: Tianshou evaluates sampled actions and takes
the maximum of the mean curve; the zoo of Stable-Baselines3 evaluates the mean
action of one run's final model; the scores of rl_games were read off its
curves.
"""

import re
from typing import NamedTuple


class PublishedScore(NamedTuple):
  """A published score."""

  steps: int  # Budget in environment steps.
  score: float  # Undiscounted return of an episode.
  source: str  # Library, version of the task, and number of runs.


_TIANSHOU = "Tianshou, v3, 10 seeds"
_ZOO = "SB3 zoo, v3, 1 run"
_RL_GAMES = "rl_games, v4, 1 run"
_XUANCE = "XuanCe, v4, protocol unstated"

_SCORES = (  # Task, million steps, score, source.
    ("HalfCheetah", 1, 5819, _ZOO),
    ("HalfCheetah", 3, 7337, _TIANSHOU),
    ("HalfCheetah", 10, 7136, _RL_GAMES),
    ("Ant", 1, 3258, _TIANSHOU),
    ("Ant", 3, 4079, _TIANSHOU),
    ("Ant", 3, 4958, _RL_GAMES),
    ("Ant", 8, 6153, _RL_GAMES),
    ("Hopper", 1, 2609, _TIANSHOU),
    ("Hopper", 1, 3450, _XUANCE),
    ("Hopper", 3, 3128, _TIANSHOU),
    ("Walker2d", 1, 3589, _TIANSHOU),
    ("Walker2d", 1, 4319, _XUANCE),
    ("Walker2d", 3, 4896, _TIANSHOU),
    ("Walker2d", 10, 6026, _RL_GAMES),
    ("Humanoid", 1, 787, _TIANSHOU),
    ("Humanoid", 1, 3149, _RL_GAMES),
    ("Humanoid", 3, 1418, _TIANSHOU),
    ("Humanoid", 3, 6862, _RL_GAMES),
    ("Humanoid", 10, 9472, _RL_GAMES),
    ("Swimmer", 1, 282, _ZOO),
    ("Reacher", 1, -4.1, _TIANSHOU),
    ("InvertedPendulum", 1, 1000, _TIANSHOU),
    ("InvertedDoublePendulum", 1, 9231, _TIANSHOU))


def up_to(task: str, steps: int) -> list[PublishedScore]:
  """Return the published scores of a task for budgets up to `steps`.

  Versions of a task are treated alike, although v5 adds contact costs to Ant
  and Humanoid and pays the healthy reward only in healthy states.

  Args:
    task: Result of `results.task`. Only ids without changed settings match.
    steps: Budget in environment steps; a tenth more is accepted.
  Returns:
    Scores in the order of their budgets.
  """
  return [PublishedScore(million * 1_000_000, score, source)
          for name, million, score, source in _SCORES
          if re.fullmatch(rf"{name}-v\d+", task)
          and million * 1_000_000 <= 1.1 * steps]


def best(task: str, steps: int) -> PublishedScore | None:
  """Return the highest published score for the largest budget up to `steps`.

  Args:
    task: Result of `results.task`.
    steps: Budget in environment steps.
  Returns:
    The score, or None if none is known.
  """
  return max(up_to(task, steps), default=None,
             key=lambda published: (published.steps, published.score))
