"""Runs a test in two modes: eagerly, and compiled by XLA."""

import contextlib

import pytest
import tensorflow as tf


def _eager(function):
  return function


def _compiled(function):
  return tf.function(function, jit_compile=True)


# Parametrizes the argument `prepare` of a test. The test calls
# `prepare(function)` instead of `function`.
eager_and_compiled = pytest.mark.parametrize(
  "prepare", [_eager, _compiled], ids=["eager", "compiled"]
)


# Like `eager_and_compiled`, for functions that take seconds to compile.
compiled_slowly = pytest.mark.parametrize(
  "prepare", [_eager, pytest.param(_compiled, marks=pytest.mark.slow)], ids=["eager", "compiled"]
)


@contextlib.contextmanager
def functions_run_eagerly(eager: bool = True):
  """Runs every `tf.function` as plain Python within the context.

  Args:
    eager: False compiles functions within the context.
  """
  before = tf.config.functions_run_eagerly()
  tf.config.run_functions_eagerly(eager)
  try:
    yield
  finally:
    tf.config.run_functions_eagerly(before)
