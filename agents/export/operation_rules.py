"""Rules that translate TensorFlow operations into NumPy calls.

A rule takes `call`, a function of a name in `numpy_player.CALLS` and arguments,
the operation, and the values of the operation's inputs.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from agents import config as config_lib

_SAME_ARGUMENTS = {
    "Abs": "abs", "Add": "add", "AddV2": "add", "BiasAdd": "add",
    "BroadcastTo": "broadcast_to", "Cos": "cos", "Equal": "equal",
    "Exp": "exp", "ExpandDims": "expand_dims", "Expm1": "expm1",
    "Fill": "full", "Floor": "floor", "FloorDiv": "floor_divide",
    "Greater": "greater", "GreaterEqual": "greater_equal", "Less": "less",
    "LessEqual": "less_equal", "Log": "log", "Log1p": "log1p",
    "LogicalAnd": "logical_and", "LogicalNot": "logical_not",
    "LogicalOr": "logical_or", "Maximum": "maximum", "Minimum": "minimum",
    "Mul": "multiply", "Neg": "negative", "NotEqual": "not_equal",
    "OnesLike": "ones_like", "Pad": "pad", "PadV2": "pad", "Pow": "power",
    "Range": "arange", "RealDiv": "divide", "Reshape": "reshape",
    "SelectV2": "where", "Sign": "sign", "Sin": "sin", "Sqrt": "sqrt",
    "Square": "square", "Sub": "subtract", "Tanh": "tanh", "Tile": "tile",
    "Transpose": "transpose", "ZerosLike": "zeros_like"}
_REDUCTIONS = {"All": "all", "Max": "max", "Mean": "mean", "Min": "min",
               "Prod": "prod", "Sum": "sum"}


def translate(call: Callable[..., Any], operation: tf.Operation,
              inputs: Sequence[Any]) -> list[Any]:
  """Translate one operation.

  Args:
    call: Function of a call's name and arguments that returns its result.
    operation: Operation of a graph.
    inputs: Values of its inputs.
  Returns:
    Values of its outputs.
  Raises:
    ConfigError: If the operation is not supported.
  """
  if operation.type in _SAME_ARGUMENTS:
    results = call(_SAME_ARGUMENTS[operation.type], *inputs)
  elif operation.type in _RULES:
    results = _RULES[operation.type](call, operation, *inputs)
  else:
    raise _unsupported(operation, operation.type)
  return results if isinstance(results, list) else [results]


def _unsupported(operation: tf.Operation, name: str) -> config_lib.ConfigError:
  return config_lib.ConfigError(
      f"--format npz: The NumPy player does not support {name}, which the "
      f"policy uses in {operation.name}. Use another format, for example "
      "--format savedmodel.")


def _tuple(array: np.ndarray) -> tuple[int, ...]:
  return tuple(np.ravel(array).tolist())


def _dtype(operation, name):
  """Return the NumPy name of a type attribute."""
  return tf.as_dtype(operation.get_attr(name)).as_numpy_dtype().dtype.name


def _reduce(call, operation, x, axis):
  name = _REDUCTIONS[operation.type]
  # NumPy's signature has `dtype` and `out` before `keepdims`.
  defaults = [None] * (2 if name in ("mean", "prod", "sum") else 1)
  return call(name, x, _tuple(axis), *defaults, operation.get_attr("keep_dims"))


def _sigmoid(call, _, x):
  # Unlike 1 / (1 + exp(-x)), this never overflows.
  return call("divide", call("add", call("tanh", call("divide", x, 2)), 1), 2)


def _elu(call, _, x):
  negative = call("expm1", call("minimum", x, 0))
  return call("where", call("greater", x, 0), x, negative)


def _leaky_relu(call, operation, x):
  negative = call("multiply", x, operation.get_attr("alpha"))
  return call("where", call("greater", x, 0), x, negative)


def _divide_no_nan(call, _, x, y):
  zero = call("equal", y, 0)
  quotient = call("divide", x, call("where", zero, call("ones_like", y), y))
  return call("where", zero, call("zeros_like", x), quotient)


def _matmul(call, operation, x, y):
  if operation.type == "MatMul":
    transposed = "transpose_a", "transpose_b"
  else:
    transposed = "adj_x", "adj_y"
  rank = operation.inputs[0].shape.rank
  axes = [*range(rank - 2), rank - 1, rank - 2]
  return call("matmul", *(
      call("transpose", value, axes) if operation.get_attr(name) else value
      for name, value in zip(transposed, (x, y))))


def _split(call, operation, axis, x):
  shape = operation.inputs[1].shape
  num_parts = operation.get_attr("num_split")
  size = shape[int(axis) % shape.rank] // num_parts
  return _parts(call, x, int(axis) % shape.rank, [size] * num_parts)


def _split_v(call, operation, x, sizes, axis):
  rank = operation.inputs[0].shape.rank
  return _parts(call, x, int(axis) % rank, _tuple(sizes))


def _parts(call, x, axis, sizes):
  """Return consecutive slices along an axis."""
  ends = np.cumsum(sizes).tolist()
  return [call("getitem", x, *[slice(None)] * axis, slice(begin, end))
          for begin, end in zip([0, *ends], ends)]


def _squeeze(call, operation, x):
  shape = operation.inputs[0].shape
  axes = {axis % shape.rank for axis in operation.get_attr("squeeze_dims")} or {
      axis for axis, size in enumerate(shape) if size == 1}
  return call("getitem", x, *(
      0 if axis in axes else slice(None) for axis in range(shape.rank)))


def _softmax(call, _, x):
  exp = call("exp", call("subtract", x, call("max", x, -1, None, True)))
  return call("divide", exp, call("sum", exp, -1, None, None, True))


def _gather(call, operation, x, indices, axis):
  if operation.get_attr("batch_dims"):
    raise _unsupported(operation, "GatherV2 with batch_dims")
  return call("take", x, indices, int(axis))


def _unpack(call, operation, x):
  return [call("take", x, index, operation.get_attr("axis"))
          for index in range(operation.get_attr("num"))]


def _strided_slice(call, operation, x, begin, end, strides):
  def index(axis):
    def masked(name):
      return operation.get_attr(f"{name}_mask") & 1 << axis
    if masked("ellipsis"):
      return Ellipsis
    if masked("new_axis"):
      return None
    if masked("shrink_axis"):
      return int(begin[axis])
    return slice(None if masked("begin") else int(begin[axis]),
                 None if masked("end") else int(end[axis]), int(strides[axis]))
  return call("getitem", x, *map(index, range(len(begin))))


def _max_pool(call, operation, x):
  """Return the maximum of all shifted copies of [N, H, W, C] images."""
  kernel, strides = (operation.get_attr(name)[1:3] for name in (
      "ksize", "strides"))
  shape = operation.inputs[0].shape[1:3]
  if operation.get_attr("padding") == b"SAME":
    padding = [max(size - (extent % stride or stride), 0)
               for extent, size, stride in zip(shape, kernel, strides)]
    around = ((0, 0), *((pad // 2, pad - pad // 2) for pad in padding), (0, 0))
    x = call("pad", x, around, -np.inf)
    shape = [extent + pad for extent, pad in zip(shape, padding)]
  result = None
  for offsets in itertools.product(*map(range, kernel)):
    shifted = call("getitem", x, slice(None), *(
        slice(offset, extent - size + offset + 1, stride)
        for offset, extent, size, stride in zip(
            offsets, shape, kernel, strides)))
    result = shifted if result is None else call("maximum", result, shifted)
  return result


def _one_hot(call, operation, x, depth, on, off):
  if operation.get_attr("axis") != -1:
    raise _unsupported(operation, "OneHot along another axis than the last")
  hot = call("equal", call("expand_dims", x, -1), np.arange(depth))
  return call("where", hot, on, off)


def _bitcast(call, operation, x):
  source, target = operation.inputs[0], operation.outputs[0]
  rank = source.shape.rank - target.shape.rank
  if rank < 0:  # A smaller type adds an axis.
    x = call("expand_dims", x, -1)
  x = call("view", x, _dtype(operation, "type"))
  return call("getitem", x, Ellipsis, 0) if rank > 0 else x


_RULES: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(_REDUCTIONS, _reduce),
    "ArgMax": lambda call, _, x, axis: call("argmax", x, int(axis)),
    "BatchMatMulV2": _matmul,
    "Bitcast": _bitcast,
    "Cast": lambda call, op, x: call("astype", x, _dtype(op, "DstT")),
    "ConcatV2": lambda call, _, *xs: call("concatenate", xs[:-1], int(xs[-1])),
    "DivNoNan": _divide_no_nan,
    "Elu": _elu,
    "GatherV2": _gather,
    "LeakyRelu": _leaky_relu,
    "Identity": lambda call, _, x: x,
    "MatMul": _matmul,
    "MaxPool": _max_pool,
    "OneHot": _one_hot,
    "Pack": lambda call, op, *xs: call("stack", xs, op.get_attr("axis")),
    "Relu": lambda call, _, x: call("maximum", x, 0),
    "Rsqrt": lambda call, _, x: call("divide", 1, call("sqrt", x)),
    "Shape": lambda call, op, x: call("shape", x, _dtype(op, "out_type")),
    "Sigmoid": _sigmoid,
    "Softmax": _softmax,
    "Softplus": lambda call, _, x: call("logaddexp", x, 0),
    "Split": _split,
    "SplitV": _split_v,
    "SquaredDifference": lambda call, _, x, y: call(
        "square", call("subtract", x, y)),
    "Squeeze": _squeeze,
    "StopGradient": lambda call, _, x: x,
    "StridedSlice": _strided_slice,
    "Unpack": _unpack}
