"""Draws parameters of heads, and actions by them."""

import numpy as np
import tensorflow as tf

from agents.ops import random


def parameters(head, seed, rows=4):
  rng = np.random.default_rng(seed)
  return rng.normal(size=(rows, head.size)).astype(np.float32)


def sample(head, parameters, counter=0, prepare=lambda function: function):
  key = random.key(5, tf.constant(counter))
  noise = prepare(head.noise)(parameters.shape[0], key)
  return prepare(head.sample)(parameters, noise)
