"""A policy that remembers: a GRU cell before the layers.

Minibatches are of whole segments, sixteen of the usual 32 steps, as going
through a segment takes the same time for few as for many. A segment begins with
what was remembered when it was played.
"""

from agents import config as config_lib


def apply(config: config_lib.Config) -> config_lib.Config:
  """Return the config with a cell."""
  return config.override({
      "network.recurrent": "gru", "algorithm.minibatch_size": 512})
