"""Scores of policies in the zoo, and the interval of scores over seeds."""

import pathlib
from collections.abc import Sequence

import numpy as np

from agents.training.monitoring import quiet_imports
from agents.training.run_folder import run_folder

NUM_EPISODES = 100
MIN_SEEDS = 3  # Fewer scores say little about other seeds.
_NUM_ENVS = 50  # Environments that play at the same time.
_CONFIDENCE = 0.95
# Share of the mean. Tasks with a maximum return can have equal scores.
_MIN_HALF_WIDTH = 0.01


def evaluate(folder: run_folder.RunFolder, path: pathlib.Path) -> list[float]:
  """Returns the returns of `NUM_EPISODES` episodes with the mean action.

  The seeds are derived like those of evaluations during training.

  Args:
    folder: Run folder.
    path: Path of the checkpoint.
  """
  with quiet_imports.quiet_imports():
    from agents import build
    from agents.commands.shared import rollout_policy

  build.setup(folder.config.override({"device": "cpu"}))
  (played,) = rollout_policy.play(folder, [path], NUM_EPISODES, _NUM_ENVS, explore=False)
  return [float(episode.score) for episode in played.episodes]


def interval(scores: Sequence[float]) -> tuple[float, float] | None:
  """Returns the interval in which the score of one further run is expected.

  This is the prediction interval of Student's t distribution,

      mean ± t(0.975, n - 1) * std * sqrt(1 + 1 / n),

  which contains the score of a run with another seed with probability 0.95 if
  the scores of seeds are normally distributed. The half width is at least 1 %
  of the mean.

  Args:
    scores: Scores of runs with different seeds, one per run.

  Returns:
    Lower and upper limit; None if there are fewer than `MIN_SEEDS` scores.
  """
  if len(scores) < MIN_SEEDS:
    return None
  from scipy import stats  # Imported late, because this takes 0.5 seconds.

  count, mean = len(scores), float(np.mean(scores))
  quantile = stats.t.ppf((1 + _CONFIDENCE) / 2, count - 1)
  half_width = float(quantile * np.std(scores, ddof=1) * np.sqrt(1 + 1 / count))
  half_width = max(half_width, _MIN_HALF_WIDTH * abs(mean))
  return mean - half_width, mean + half_width
