"""A small algorithm for tests of acting."""

import numpy as np

from agents import config as config_lib
from agents.algorithms import feed_forward_model, ppo
from agents.networks import distribution_for_space, feed_forward


def make(batch):
  """Returns a BatchPPO with actions that depend on the observations."""
  network = config_lib.Network(policy_layers=(64, 64), value_layers=(4,))
  policy = feed_forward.Policy(distribution_for_space.make(batch.action_space), network, 0)
  algorithm = ppo.BatchPPO(
    config_lib.Algorithm(),
    batch.observation_space,
    feed_forward_model.Networks(policy, feed_forward.feed_forward_value(network, 1)),
    0,
  )
  rng = np.random.default_rng(0)
  for name, variable in algorithm.variables().items():
    if name.startswith("policy/") and name.endswith("kernel"):
      variable.assign(rng.normal(size=variable.shape) / np.sqrt(variable.shape[0]))
  return algorithm
