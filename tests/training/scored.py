"""The scored episodes of an epoch, without those truncated to stagger."""

from agents.training import epoch_result


def _statistics(epoch):
  statistics = epoch_result.Statistics()
  statistics.add(epoch)
  return statistics


def scores(epoch):
  """Returns the undiscounted return of each episode."""
  return _statistics(epoch).scores


def lengths(epoch):
  """Returns the steps of each episode."""
  return _statistics(epoch).lengths


def reward_parts(epoch):
  """Returns the sums of the reward parts of each episode."""
  return _statistics(epoch).reward_parts
