"""What the robots that walk or run share.

Twice as many environments and segments of half the length, so that each update
still learns from 2048 steps: they are of more different moments, as 16 steps
of one robot look alike. Step size and minibatches grow along.
"""

from agents.configs import default

CONFIG = default.CONFIG.override({
    "num_envs": 128,
    "algorithm.segment_length": 16,
    "algorithm.minibatch_size": 128,
    "algorithm.learning_rate": 4.5e-4,
})
