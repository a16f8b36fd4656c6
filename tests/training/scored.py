"""Scores of an epoch, without episodes that were truncated to stagger."""

from agents.training import epoch_result


def _statistics(epoch):
  statistics = epoch_result.Statistics()
  statistics.add(epoch.episodes)
  return statistics


def scores(epoch):
  """Returns the undiscounted return of each scored episode."""
  return _statistics(epoch).scores


def lengths(epoch):
  """Returns the number of steps of each scored episode."""
  return _statistics(epoch).lengths


def reward_parts(epoch):
  """Returns the sum of each reward part, by name, for each scored episode."""
  return _statistics(epoch).reward_parts
