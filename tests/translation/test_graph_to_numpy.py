"""NumPy calls return the same values as TensorFlow operations."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import convert_to_constants

from agents import config as config_lib
from agents.translation import graph_to_numpy, numpy_player

_X = np.random.default_rng(0).normal(size=(3, 4, 6)).astype(np.float32)
_IMAGES = np.random.default_rng(1).normal(size=(2, 7, 8, 3)).astype(np.float32)
_WEIGHTS = np.random.default_rng(2).normal(size=(6, 5)).astype(np.float32)
_FUNCTIONS = {
  "arithmetic": lambda x: (x + 1) * 2 - x / 3,
  "powers": lambda x: tf.square(x) + tf.sqrt(tf.abs(x)) + tf.pow(x, 2.0),
  "exponentials": lambda x: (
    tf.exp(x)
    + tf.math.expm1(x)
    + tf.math.log1p(tf.abs(x))
    + tf.math.log(tf.abs(x))
    + tf.math.rsqrt(tf.abs(x))
  ),
  "activations": lambda x: (
    tf.tanh(x) + tf.sigmoid(x) + tf.nn.relu(x) + tf.nn.softplus(x) + tf.nn.elu(x)
  ),
  "softmax formula": lambda x: tf.exp(x) / tf.reduce_sum(tf.exp(x), -1, True),
  "comparisons": lambda x: tf.where((x > 0) & (x < 1) | ~(x >= -1), x, 2.0),
  "divide_no_nan": lambda x: tf.math.divide_no_nan(x, tf.nn.relu(x)),
  "sums": lambda x: tf.reduce_sum(x, [0, 2]),
  "means": lambda x: tf.reduce_mean(x, 1, keepdims=True),
  "extrema": lambda x: tf.reduce_max(x, 1) + tf.reduce_min(x, [1]),
  "products": lambda x: tf.reduce_prod(x, -1, True),
  "all": lambda x: tf.reduce_all(x > -2, 1),
  "argmax": lambda x: tf.argmax(x, 1),
  "matmul": lambda x: tf.matmul(tf.reshape(x, [-1, 6]), _WEIGHTS),
  "transposed matmul": lambda x: tf.matmul(tf.reshape(x, [6, -1]), _WEIGHTS.T, True, True),
  "batched matmul": lambda x: tf.matmul(x, tf.transpose(x, [0, 2, 1])),
  "batched and transposed matmul": lambda x: (
    tf.matmul(x, x, transpose_b=True) + tf.matmul(x[..., :4], x[:, :, 2:], True)
  ),
  "softmax operation": tf.nn.softmax,
  "leaky relu": tf.nn.leaky_relu,
  "split a middle axis": lambda x: tf.split(x, 2, -2)[1],
  "squeeze all": lambda x: tf.squeeze(x[:, None, :1]),
  "concat": lambda x: tf.concat([x, -x], 1),
  "stack": lambda x: tf.stack([x, -x, x], 2),
  "unstack": lambda x: tf.unstack(x, axis=1)[2],
  "split": lambda x: tf.split(x, 3, -1)[1],
  "uneven split": lambda x: tf.split(x, [1, 5], -1)[1],
  "split into one part": lambda x: tf.split(x, [6], -1)[0],
  "slices": lambda x: x[:, 1:-1, ::2],
  "integer indices": lambda x: x[1, ..., -1],
  "new axis": lambda x: x[:, None, ..., None],
  "negative stride": lambda x: x[:, ::-1],
  "squeeze": lambda x: tf.squeeze(x[:, :1, None], [1, -2]),
  "gather": lambda x: tf.gather(x, [3, 0], axis=1),
  "repeat": lambda x: tf.repeat(x[:, None], 3, 1),
  "tile": lambda x: tf.tile(x, [1, 2, 1]),
  "pad": lambda x: tf.pad(x, [[0, 0], [1, 2], [0, 1]]),
  "pad with a value": lambda x: tf.pad(x, [[0, 0], [1, 2], [0, 1]], constant_values=-2.0),
  "one hot": lambda x: tf.one_hot(tf.cast(tf.abs(x), tf.int64), 3, 5.0, 1.0),
  "cast": lambda x: tf.cast(tf.cast(x, tf.int32), tf.float64),
  "shape": lambda x: tf.zeros(tf.shape(x)[:2]) + 1,
  "zeros and ones": lambda x: tf.zeros_like(x) + tf.ones_like(x),
  "bitcast to bytes": lambda x: tf.bitcast(x, tf.uint8),
  "bitcast from bytes": lambda x: tf.bitcast(tf.bitcast(-x, tf.uint8), tf.float32),
  "bitcast to integers": lambda x: tf.bitcast(x, tf.int32),
}


def _evaluate(function, x):
  """Returns `function(x)` computed by NumPy, and by TensorFlow."""
  traced = tf.function(
    function, [tf.TensorSpec([None, *x.shape[1:]], x.dtype, "x")], autograph=False
  )
  frozen = convert_to_constants.convert_variables_to_constants_v2(traced.get_concrete_function())
  program, constants = graph_to_numpy.translate(frozen, ["x"], ["y"])
  result = numpy_player.compute(program, {"x": x, **constants})["y"]
  return result, function(tf.constant(x)).numpy()


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_translated_function_equals_tensorflow(name):
  result, expected = _evaluate(_FUNCTIONS[name], _X)
  assert result.dtype == expected.dtype
  assert result.shape == expected.shape
  np.testing.assert_allclose(result, expected, 1e-5, 1e-6)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("size, stride", [(3, 2), (2, 2), (3, 1)])
@pytest.mark.parametrize("height", [6, 7])
def test_max_pooling_equals_tensorflow(padding, size, stride, height):
  result, expected = _evaluate(
    lambda x: tf.nn.max_pool2d(x[:, :height], size, stride, padding), _IMAGES
  )
  np.testing.assert_array_equal(result, expected)


def test_constant_expressions_are_evaluated_by_the_translation():
  def function(x):
    constant = tf.sqrt(tf.constant(4.0)) * tf.reduce_sum(tf.ones([3]))
    return x + constant

  traced = tf.function(function, [tf.TensorSpec([None], name="x")])
  program, constants = graph_to_numpy.translate(traced.get_concrete_function(), ["x"], ["y"])
  assert len(program["calls"]) == 1 and constants == {"constant_0": 6.0}


def test_gather_with_batch_dims_is_rejected():
  with pytest.raises(config_lib.ConfigError, match="GatherV2 with batch_dims"):
    _evaluate(lambda x: tf.gather(x, tf.cast(x[:, 0] > 0, tf.int32), axis=1, batch_dims=1), _X)


def test_error_names_the_unsupported_operation():
  with pytest.raises(config_lib.ConfigError, match="does not support Atan.*savedmodel"):
    _evaluate(tf.atan, _X)
