"""A policy that remembers: a GRU cell before the layers.

Minibatches are of whole segments, sixteen of the usual 32 steps, as going
through a segment takes the same time for few as for many. A segment begins with
what was remembered when it was played, and gradients reach back no further; so
configs of shorter ones get those of 32 steps, of fewer environments.
"""

from agents import config as config_lib

_LENGTH = 32


def apply(config: config_lib.Config) -> config_lib.Config:
  """Return the config with a cell."""
  length = config.algorithm.segment_length
  if length and length < _LENGTH:
    config = config.override({
        "num_envs": max(1, config.num_envs * length // _LENGTH),
        "algorithm.segment_length": _LENGTH})
  return config.override({
      "network.recurrent": "gru", "algorithm.minibatch_size": 512})
