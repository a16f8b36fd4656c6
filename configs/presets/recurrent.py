"""Recurrent policy: a GRU cell in front of the hidden layers.

A minibatch consists of sixteen segments of the usual 32 steps, because a pass
through few segments takes as long as a pass through many. A segment starts from
the recurrent state of the rollout, and gradients end at the start of the
segment. Therefore configs with shorter segments change to 32 steps of fewer
environments. Configs that learn from whole episodes, as with the preset
`paper`, take gradient steps on all episodes together.
"""

from agents import config as config_lib

_LENGTH = 32


def apply(config: config_lib.Config) -> config_lib.Config:
  """Returns a config with a recurrent policy.

  Args:
    config: Config that provides the task and the budget.
  """
  if config.algorithm.update_every:  # An episode is one sequence.
    return config.override({"network.recurrent": "gru", "algorithm.minibatch_size": None})
  length = config.algorithm.segment_length
  if length and length < _LENGTH:
    config = config.override(
      {"num_envs": max(1, config.num_envs * length // _LENGTH), "algorithm.segment_length": _LENGTH}
    )
  return config.override({"network.recurrent": "gru", "algorithm.minibatch_size": 512})
