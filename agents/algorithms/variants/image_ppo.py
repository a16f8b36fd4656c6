"""PPO for images."""

import tensorflow as tf

from agents.algorithms import ppo


class ImagePPO(ppo.BatchPPO):
  """Learns with TensorFlow's operations instead of an XLA program.

  XLA takes several times as long for the gradients of convolutions.
  """

  learn = tf.function(ppo.BatchPPO.learn.python_function, autograph=False)
