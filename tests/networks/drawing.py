"""Draws random parameters of distributions and random actions."""

import numpy as np
import tensorflow as tf

from agents.ops import random


def parameters(dist, seed, rows=4):
  rng = np.random.default_rng(seed)
  return rng.normal(size=(rows, dist.size)).astype(np.float32)


def sample(dist, parameters, counter=0, prepare=lambda function: function):
  key = random.key(5, tf.constant(counter))
  noise = prepare(dist.noise)(parameters.shape[0], key)
  return prepare(dist.sample)(parameters, noise)
