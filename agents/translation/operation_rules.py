"""Rules that translate TensorFlow operations into NumPy calls.

There are two kinds of rules. If one NumPy call takes the same inputs as an
operation, same_arguments.csv contains the name of the call. Otherwise, the rule
is a function with these arguments: `call`, the operation, and one value per
input of the operation. `call` takes a name in `numpy_player.CALLS`, and the
arguments of this NumPy call. In the arguments of "getitem", a list contains
start, stop and step of a slice.
"""

import csv
import functools
import itertools
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from agents import config as config_lib

_Call = Callable[..., Any]


class UnsupportedOperation(config_lib.ConfigError):
  """There is no rule for an operation."""


def translate(call: _Call, operation: tf.Operation, inputs: Sequence[Any]) -> list[Any]:
  """Translates one operation.

  Args:
    call: Function that takes the name and the arguments of a NumPy call, and
      returns the result of the call.
    operation: Operation of a graph.
    inputs: Values of the operation's inputs.

  Returns:
    Values of the operation's outputs.

  Raises:
    UnsupportedOperation: If there is no rule for the operation.
  """
  rule = _RULES.get(operation.type)
  if rule is None:
    raise _unsupported(operation, operation.type)
  results = call(rule, *inputs) if isinstance(rule, str) else rule(call, operation, *inputs)
  return results if isinstance(results, list) else [results]


def _unsupported(operation: tf.Operation, name: str) -> UnsupportedOperation:
  return UnsupportedOperation(
    f"--format npz: The NumPy player does not support {name}, which the "
    f"policy uses in {operation.name}. Use another format, for example "
    "--format savedmodel."
  )


def _reduce(call: _Call, operation: tf.Operation, x: Any, axis: Any) -> Any:
  name = operation.type.lower()
  # Before `keepdims`, NumPy functions take `out`; three also take `dtype`.
  defaults = [None] * (2 if name in ("mean", "prod", "sum") else 1)
  return call(name, x, tuple(np.ravel(axis).tolist()), *defaults, operation.get_attr("keep_dims"))


def _divide_no_nan(call: _Call, _: tf.Operation, x: Any, y: Any) -> Any:
  zero = call("equal", y, 0)
  quotient = call("divide", x, call("where", zero, call("ones_like", y), y))
  return call("where", zero, call("zeros_like", x), quotient)


def _split(call: _Call, operation: tf.Operation, x: Any, axis: Any) -> list[Any]:
  """Returns one slice of `x` along an axis per output of the operation."""
  axis = int(axis) % operation.outputs[0].shape.rank
  ends = np.cumsum([part.shape[axis] for part in operation.outputs]).tolist()
  return [
    call("getitem", x, *[[None]] * axis, [begin, end]) for begin, end in zip([0, *ends], ends)
  ]


def _softmax(call: _Call, _: tf.Operation, x: Any) -> Any:
  exp = call("exp", call("subtract", x, call("max", x, -1, None, True)))
  return call("divide", exp, call("sum", exp, -1, None, None, True))


def _gather(call: _Call, operation: tf.Operation, x: Any, indices: Any, axis: Any) -> Any:
  if operation.get_attr("batch_dims"):
    raise _unsupported(operation, "GatherV2 with batch_dims")
  return call("take", x, indices, int(axis))


def _strided_slice(
  call: _Call, operation: tf.Operation, x: Any, begin: Any, end: Any, strides: Any
) -> Any:
  def index(axis: int) -> Any:
    def masked(name: str) -> int:
      return operation.get_attr(f"{name}_mask") & 1 << axis

    if masked("ellipsis"):
      return Ellipsis
    if masked("new_axis"):
      return None
    if masked("shrink_axis"):
      return int(begin[axis])
    return [
      None if masked("begin") else int(begin[axis]),
      None if masked("end") else int(end[axis]),
      int(strides[axis]),
    ]

  return call("getitem", x, *map(index, range(len(begin))))


def _conv(call: _Call, operation: tf.Operation, x: Any, kernel: Any) -> Any:
  """Multiplies each window of [N, H, W, C] images by the kernel."""
  if operation.get_attr("data_format") != b"NHWC" or set(operation.get_attr("dilations")) != {1}:
    raise _unsupported(operation, "Conv2D with channels first or with dilations")
  *sides, _, filters = operation.inputs[1].shape
  windows = call("concatenate", *_shifted(call, operation, x, sides, 0), -1)
  return call("matmul", windows, call("reshape", kernel, [-1, filters]), False, False)


def _max_pool(call: _Call, operation: tf.Operation, x: Any) -> Any:
  """Returns the maximum in each window of [N, H, W, C] images."""
  sides = operation.get_attr("ksize")[1:3]
  slices = _shifted(call, operation, x, sides, -np.inf)
  return functools.reduce(functools.partial(call, "maximum"), slices)


def _shifted(
  call: _Call, operation: tf.Operation, x: Any, kernel: Sequence[int], padding_value: float
) -> list[Any]:
  """Returns slices of [N, H, W, C] images, one per position in a window."""
  strides = operation.get_attr("strides")[1:3]
  spans = [
    (size - 1) * stride + 1 for size, stride in zip(operation.outputs[0].shape[1:3], strides)
  ]
  padding = [
    max(span + size - 1 - extent, 0)
    for span, size, extent in zip(spans, kernel, operation.inputs[0].shape[1:3])
  ]
  if any(padding):
    pad_widths = [[pad // 2, pad - pad // 2] for pad in (0, *padding, 0)]
    x = call("pad", x, pad_widths, padding_value)
  return [
    call(
      "getitem",
      x,
      [None],
      *([offset, offset + span, stride] for offset, span, stride in zip(offsets, spans, strides)),
    )
    for offsets in itertools.product(*map(range, kernel))
  ]


def _one_hot(call: _Call, operation: tf.Operation, x: Any, depth: Any, on: Any, off: Any) -> Any:
  if operation.get_attr("axis") != -1:
    raise _unsupported(operation, "OneHot along an axis other than the last")
  hot = call("equal", call("expand_dims", x, -1), np.arange(depth))
  return call("where", hot, on, off)


def _bitcast(call: _Call, operation: tf.Operation, x: Any) -> Any:
  source, target = operation.inputs[0], operation.outputs[0]
  rank = source.shape.rank - target.shape.rank
  if rank < 0:  # TensorFlow adds an axis if the target type is smaller.
    x = call("expand_dims", x, -1)
  x = call("view", x, target.dtype.name)
  return call("getitem", x, Ellipsis, 0) if rank > 0 else x


_SAME_ARGUMENTS = pathlib.Path(__file__).with_name("same_arguments.csv")
_RULES: dict[str, str | Callable[..., Any]] = {
  **dict(csv.reader(_SAME_ARGUMENTS.read_text().splitlines())),
  **dict.fromkeys(("All", "Max", "Mean", "Min", "Prod", "Sum"), _reduce),
  "BatchMatMulV2": lambda call, op, x, y: call(
    "matmul", x, y, op.get_attr("adj_x"), op.get_attr("adj_y")
  ),
  "Bitcast": _bitcast,
  "Const": lambda call, op: tf.make_ndarray(op.get_attr("value")),
  "Cast": lambda call, op, x: call("astype", x, op.get_attr("DstT").name),
  "Conv2D": _conv,
  "DivNoNan": _divide_no_nan,
  "Elu": lambda call, _, x: call(
    "where", call("greater", x, 0), x, call("expm1", call("minimum", x, 0))
  ),
  "GatherV2": _gather,
  "LeakyRelu": lambda call, op, x: call(
    "where", call("greater", x, 0), x, call("multiply", x, op.get_attr("alpha"))
  ),
  "Identity": lambda call, _, x: x,
  "ReadVariableOp": lambda call, _, x: x,
  "MatMul": lambda call, op, x, y: call(
    "matmul", x, y, op.get_attr("transpose_a"), op.get_attr("transpose_b")
  ),
  "MaxPool": _max_pool,
  "OneHot": _one_hot,
  "Pack": lambda call, op, *xs: call("stack", *xs, op.get_attr("axis")),
  "Relu": lambda call, _, x: call("maximum", x, 0),
  "Rsqrt": lambda call, _, x: call("divide", 1, call("sqrt", x)),
  "Shape": lambda call, op, x: call("shape", x, op.get_attr("out_type").name),
  # (tanh(x / 2) + 1) / 2 never overflows, in contrast to 1 / (1 + exp(-x)).
  "Sigmoid": lambda call, _, x: call(
    "divide", call("add", call("tanh", call("divide", x, 2)), 1), 2
  ),
  "Softmax": _softmax,
  "Softplus": lambda call, _, x: call("logaddexp", x, 0),
  "Split": lambda call, op, axis, x: _split(call, op, x, axis),
  "SplitV": lambda call, op, x, _, axis: _split(call, op, x, axis),
  "SquaredDifference": lambda call, _, x, y: call("square", call("subtract", x, y)),
  "Squeeze": lambda call, op, x: call("squeeze", x, tuple(op.get_attr("squeeze_dims")) or None),
  "StopGradient": lambda call, _, x: x,
  "StridedSlice": _strided_slice,
  "Unpack": lambda call, op, x: [
    call("take", x, index, op.get_attr("axis")) for index in range(op.get_attr("num"))
  ],
}
