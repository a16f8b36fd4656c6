"""What operations of TensorFlow are as calls of NumPy, see `numpy_player.CALLS`."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from agents import config as config_lib

_SAME = {  # TensorFlow's operations that are one call with the same arguments.
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
_REDUCED = {"All": "all", "Max": "max", "Mean": "mean", "Min": "min",
            "Prod": "prod", "Sum": "sum"}


def calls(program: Callable[..., Any], operation: tf.Operation,
          arguments: Sequence[Any]) -> list[Any]:
  """Call what an operation is, and return its outputs.

  Args:
    program: Takes a call's name and arguments, returns what that returns.
    operation: Of a graph.
    arguments: Its inputs.
  Raises:
    ConfigError: If it is not known here.
  """
  kind = operation.type
  if kind in _SAME:
    results = program(_SAME[kind], *arguments)
  elif kind in _REDUCED:
    results = _reduce(program, operation, *arguments)
  elif kind in _RULES:
    results = _RULES[kind](program, operation, *arguments)
  else:
    raise config_lib.ConfigError(
        f"--format npz: NumPy's player knows no {kind}, which the policy "
        f"does in {operation.name}. Use --format savedmodel, for example.")
  return results if isinstance(results, list) else [results]


def _axes(array: np.ndarray) -> tuple[int, ...]:
  return tuple(np.ravel(array).tolist())


def _reduce(program, operation, x, axis):
  name = _REDUCED[operation.type]
  between = [None] * (2 if name in ("mean", "prod", "sum") else 1)
  return program(name, x, _axes(axis), *between,
                 operation.get_attr("keep_dims"))


def _sigmoid(program, _, x):
  return program("divide", program("add", program(
      "tanh", program("divide", x, 2)), 1), 2)


def _elu(program, _, x):
  return program("where", program("greater", x, 0), x, program(
      "expm1", program("minimum", x, 0)))


def _divide_no_nan(program, _, x, y):
  zero = program("equal", y, 0)
  return program("where", zero, program("zeros_like", x), program(
      "divide", x, program("where", zero, program("ones_like", y), y)))


def _matmul(program, operation, x, y):
  if operation.get_attr("transpose_a"):
    x = program("transpose", x)
  if operation.get_attr("transpose_b"):
    y = program("transpose", y)
  return program("matmul", x, y)


def _dtype(operation, name):
  return tf.as_dtype(operation.get_attr(name)).as_numpy_dtype().dtype.name


def _batch_matmul(program, operation, x, y):
  rank = operation.inputs[0].shape.rank
  swapped = [*range(rank - 2), rank - 1, rank - 2]
  if operation.get_attr("adj_x"):
    x = program("transpose", x, swapped)
  if operation.get_attr("adj_y"):
    y = program("transpose", y, swapped)
  return program("matmul", x, y)


def _split(program, operation, axis, x):
  amount = operation.get_attr("num_split")
  shape = operation.inputs[1].shape
  axis = int(axis) % shape.rank
  return _pieces(program, x, axis, [shape[axis] // amount] * amount)


def _pieces(program, x, axis, sizes):
  ends = np.cumsum(sizes).tolist()
  return [program("getitem", x, *[slice(None)] * axis, slice(begin, end))
          for begin, end in zip([0, *ends], ends)]


def _split_v(program, operation, x, sizes, axis):
  rank = operation.inputs[0].shape.rank
  return _pieces(program, x, int(axis) % rank, _axes(sizes))


def _squeeze(program, operation, x):
  shape = operation.inputs[0].shape
  axes = {axis % shape.rank for axis in operation.get_attr("squeeze_dims")} or {
      axis for axis, size in enumerate(shape) if size == 1}
  return program("getitem", x, *(
      0 if axis in axes else slice(None) for axis in range(shape.rank)))


def _softmax(program, _, x):
  raised = program("exp", program(
      "subtract", x, program("max", x, -1, None, True)))
  return program("divide", raised, program(
      "sum", raised, -1, None, None, True))


def _leaky_relu(program, operation, x):
  return program("where", program("greater", x, 0), x, program(
      "multiply", x, operation.get_attr("alpha")))


def _gather(program, operation, x, indices, axis):
  if operation.get_attr("batch_dims"):
    raise config_lib.ConfigError(
        "--format npz: NumPy's player knows no GatherV2 with batch_dims. Use "
        "--format savedmodel, for example.")
  return program("take", x, indices, int(axis))


def _unpack(program, operation, x):
  axis = operation.get_attr("axis")
  return [program("take", x, index, axis)
          for index in range(operation.get_attr("num"))]


def _strided_slice(program, operation, x, begin, end, strides):
  masks = {name: operation.get_attr(f"{name}_mask") for name in (
      "begin", "end", "ellipsis", "new_axis", "shrink_axis")}
  def index(axis):
    has = {name: bool(mask & 1 << axis) for name, mask in masks.items()}
    if has["ellipsis"]:
      return Ellipsis
    if has["new_axis"]:
      return None
    if has["shrink_axis"]:
      return int(begin[axis])
    return slice(None if has["begin"] else int(begin[axis]),
                 None if has["end"] else int(end[axis]), int(strides[axis]))
  return program("getitem", x, *map(index, range(len(begin))))


def _max_pool(program, operation, x):
  sizes, steps = (operation.get_attr(name)[1:3] for name in (
      "ksize", "strides"))
  shape = operation.inputs[0].shape[1:3]
  if operation.get_attr("padding") == b"SAME":
    padded = [max(size - (step if extent % step == 0 else extent % step), 0)
              for extent, size, step in zip(shape, sizes, steps)]
    around = ((0, 0), *((extent // 2, extent - extent // 2)
                        for extent in padded), (0, 0))
    x = program("pad", x, around, -np.inf)
    shape = [extent + more for extent, more in zip(shape, padded)]
  results = None
  for place in itertools.product(*map(range, sizes)):
    part = program("getitem", x, slice(None), *(
        slice(first, extent - size + first + 1, step)
        for first, extent, size, step in zip(place, shape, sizes, steps)))
    results = part if results is None else program("maximum", results, part)
  return results


def _one_hot(program, operation, x, depth, on, off):
  if operation.get_attr("axis") != -1:
    raise config_lib.ConfigError("--format npz: OneHot along another axis.")
  places = program("equal", program("expand_dims", x, -1), np.arange(depth))
  return program("where", places, on, off)


def _bitcast(program, operation, x):
  source, target = operation.inputs[0], operation.outputs[0]
  kind = _dtype(operation, "type")
  rank = source.shape.rank - target.shape.rank
  if rank < 0:  # To smaller ones, with an axis of their own.
    x = program("expand_dims", x, -1)
  x = program("view", x, kind)
  return program("getitem", x, Ellipsis, 0) if rank > 0 else x


_RULES: dict[str, Callable[..., Any]] = {
    "ArgMax": lambda program, _, x, axis: program("argmax", x, int(axis)),
    "BatchMatMulV2": _batch_matmul,
    "Bitcast": _bitcast,
    "Cast": lambda program, op, x: program("astype", x, _dtype(op, "DstT")),
    "ConcatV2": lambda program, _, *xs: program(
        "concatenate", xs[:-1], int(xs[-1])),
    "DivNoNan": _divide_no_nan,
    "Elu": _elu,
    "GatherV2": _gather,
    "LeakyRelu": _leaky_relu,
    "Identity": lambda program, _, x: x,
    "MatMul": _matmul,
    "MaxPool": _max_pool,
    "OneHot": _one_hot,
    "Pack": lambda program, op, *xs: program("stack", xs, op.get_attr("axis")),
    "Relu": lambda program, _, x: program("maximum", x, 0),
    "Rsqrt": lambda program, _, x: program("divide", 1, program("sqrt", x)),
    "Shape": lambda program, op, x: program("shape", x, _dtype(op, "out_type")),
    "Sigmoid": _sigmoid,
    "Softmax": _softmax,
    "Softplus": lambda program, _, x: program("logaddexp", x, 0),
    "Split": _split,
    "SplitV": _split_v,
    "SquaredDifference": lambda program, _, x, y: program(
        "square", program("subtract", x, y)),
    "Squeeze": _squeeze,
    "StopGradient": lambda program, _, x: x,
    "StridedSlice": _strided_slice,
    "Unpack": _unpack}
