"""Recurrent policy: a GRU cell in front of the hidden layers.

Minibatches consist of sixteen segments of the usual 32 steps, because a pass
through a segment takes the same time for few segments as for many. A segment
starts from the recurrent state that its rollout had, and gradients do not cross
its start. So configs with shorter segments change to 32 steps of fewer
environments."""

from agents import config as config_lib

_LENGTH = 32


def apply(config: config_lib.Config) -> config_lib.Config:
  """Returns a config with a recurrent policy.

  Args:
    config: Config that provides the task and the budget.
  """
  length = config.algorithm.segment_length
  if length and length < _LENGTH:
    config = config.override({
        "num_envs": max(1, config.num_envs * length // _LENGTH),
        "algorithm.segment_length": _LENGTH})
  return config.override({
      "network.recurrent": "gru", "algorithm.minibatch_size": 512})
