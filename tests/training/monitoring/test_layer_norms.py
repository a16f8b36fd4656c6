"""Norms of weights and gradients, from the variables of a checkpoint."""

import keras
import numpy as np
import pytest

from agents.training.monitoring import layer_norms


def _adam(gradients):
  """Returns a variable and Adam's variables after some gradient steps."""
  weight = keras.Variable(np.array([3.0, 4.0], np.float32), name="kernel", path="policy/kernel")
  optimizer = keras.optimizers.Adam(1e-9, name="adam")
  optimizer.build([weight])
  for gradient in gradients:
    optimizer.apply([keras.ops.convert_to_tensor(np.float32(gradient))], [weight])
  return weight, {variable.path: variable for variable in optimizer.variables}


def test_norms_of_constant_gradients_are_exact():
  weight, variables = _adam([[5.0, 12.0]] * 7)
  norms = layer_norms.layer_norms([weight], variables)
  assert norms == pytest.approx(
    {f"weight_norms/{weight.path}": 5.0, f"gradient_norms/{weight.path}": 13.0}, rel=1e-4
  )


def test_gradient_norm_is_a_root_mean_square_over_gradient_steps():
  gradients = np.random.default_rng(0).normal(size=(50, 2)) * np.arange(50)[:, None]
  weight, variables = _adam(gradients)
  decay = 0.999 ** np.arange(50)[::-1]
  expected = np.sqrt(np.average((gradients**2).sum(1), weights=decay))
  norms = layer_norms.layer_norms([weight], variables)
  assert norms[f"gradient_norms/{weight.path}"] == pytest.approx(expected, rel=1e-4)


def test_algorithms_without_adam_or_gradient_steps_have_only_weight_norms():
  weight, variables = _adam([])
  for each in ({}, variables):
    assert layer_norms.layer_norms([weight], each).keys() == {f"weight_norms/{weight.path}"}
