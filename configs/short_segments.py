"""More environments and shorter segments, for robots that run in the open.

Each update still learns from 2048 steps, but of more different moments, as
consecutive steps of one robot look alike. docs/results.md has the trials;
Hopper and Walker2d, which fall while they learn, became less reliable.
"""

from agents.configs import default

CONFIG = default.CONFIG.override({
    "num_envs": 128,
    "algorithm.segment_length": 16,
    "algorithm.learning_rate": 4.5e-4,
})
