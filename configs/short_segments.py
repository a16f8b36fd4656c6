"""More environments and shorter segments, for robots that run on open ground.

Each update still learns from 2048 steps, but from more episodes at different
moments. Consecutive steps of one robot resemble each other, so this batch
allows a higher learning rate. On HalfCheetah, with minibatches of 128 steps,
1.5 times the default learning rate reached a return of 7840, and 2 times the
default reached 6906 (two tuning seeds each). The config of HalfCheetah has
changed since these trials; docs/experiments/results.md lists all trials. Hopper
and Walker2d, which fall during learning, became less reliable.
"""

from agents.configs import default

CONFIG = default.CONFIG.override(
  {"num_envs": 128, "algorithm.segment_length": 16, "algorithm.learning_rate": 4.5e-4}
)
