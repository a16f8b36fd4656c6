"""The files that a policy is exported to, and how each of them is run."""

from __future__ import annotations

import importlib.util
import json
import pathlib
import shutil
import tempfile
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from agents import config as config_lib
from agents import spaces
from agents.export import numpy_calls
from agents.export import numpy_player
from agents.export import policy as policy_lib

Run = Callable[[policy_lib.Arrays], policy_lib.Arrays]


class Format(NamedTuple):
  """One of them."""

  file: str  # Where in the folder it is, other files aside.
  write: Callable[[policy_lib.Policy, pathlib.Path], None]
  load: Callable[[pathlib.Path], Run]
  modules: tuple[str, ...]  # That it needs.
  example: str  # Python code that takes one step.


def check(names: Sequence[str], policy: policy_lib.Policy):
  """Raise ConfigError where a package is missing, or a format won't do."""
  if "onnx" in names and any(map(spaces.composite, (
      policy.observation_space, policy.action_space))):
    raise config_lib.ConfigError(
        "--format onnx: values of Dict and Tuple are bytes on their way, which "
        "ONNX can't take apart; the other formats can.")
  for name in names:
    for module in FORMATS[name].modules:
      if not installed(module):
        raise config_lib.ConfigError(
            f"--format {name} needs {module}: pip install 'batch-ppo[{name}]'.")


def installed(module: str) -> bool:
  return importlib.util.find_spec(module) is not None


def _write_saved_model(policy: policy_lib.Policy, path: pathlib.Path):
  frozen = policy.frozen
  @tf.function(autograph=False, input_signature=policy.specs)
  def act(*inputs):
    return dict(zip(policy.outputs, frozen(*inputs), strict=True))
  module = tf.Module()
  module.act = act
  tf.saved_model.save(
      module, str(path), {"serving_default": act},
      tf.saved_model.SaveOptions(experimental_custom_gradients=False))


def _load_saved_model(path: pathlib.Path) -> Run:
  loaded = tf.saved_model.load(str(path))
  act = loaded.signatures["serving_default"]
  def run(inputs):
    outputs = act(**{name: tf.constant(x) for name, x in inputs.items()})
    assert loaded  # The signature lives as long as that.
    return {name: x.numpy() for name, x in outputs.items()}
  return run


def _write_tflite(policy: policy_lib.Policy, path: pathlib.Path):
  with tempfile.TemporaryDirectory() as folder:
    _write_saved_model(policy, pathlib.Path(folder, "model"))
    converter = tf.lite.TFLiteConverter.from_saved_model(
        str(pathlib.Path(folder, "model")))
    path.write_bytes(converter.convert())


def _load_tflite(path: pathlib.Path) -> Run:
  from ai_edge_litert import interpreter
  runner = interpreter.Interpreter(
      str(path), num_threads=1).get_signature_runner()
  return lambda inputs: {
      name: np.array(x) for name, x in runner(**inputs).items()}


def _write_onnx(policy: policy_lib.Policy, path: pathlib.Path):
  import tf2onnx
  frozen = policy.frozen
  @tf.function(autograph=False, input_signature=policy.specs)
  def act(*inputs):
    return [tf.identity(output, name) for name, output in zip(
        policy.outputs, frozen(*inputs), strict=True)]
  model, _ = tf2onnx.convert.from_function(act, policy.specs, opset=17)
  _rename(model.graph, [x.name for x in model.graph.input], policy.inputs)
  _rename(model.graph, [x.name for x in model.graph.output], policy.outputs)
  path.write_bytes(model.SerializeToString())


def _rename(graph: Any, names: list[str], wanted: Any):
  """Give the inputs or the outputs of an ONNX graph their names."""
  new = dict(zip(names, wanted, strict=True))
  for value in (*graph.input, *graph.output):
    value.name = new.get(value.name, value.name)
  for node in graph.node:
    for places in (node.input, node.output):
      for index, name in enumerate(places):
        places[index] = new.get(name, name)


def _load_onnx(path: pathlib.Path) -> Run:
  import onnxruntime
  options = onnxruntime.SessionOptions()
  options.intra_op_num_threads = 1
  session = onnxruntime.InferenceSession(str(path), options)
  names = [output.name for output in session.get_outputs()]
  return lambda inputs: dict(zip(
      names, session.run(names, inputs), strict=True))


def _write_npz(policy: policy_lib.Policy, path: pathlib.Path):
  graph = policy.frozen.graph
  data, constants = numpy_calls.translate(
      graph, [tensor.op.name for tensor in policy.frozen.inputs],
      dict(zip(policy.outputs, (
          tensor.name for tensor in policy.frozen.outputs), strict=True)))
  about = {**data, "inputs": {
      name: field._asdict() for name, field in policy.inputs.items()}}
  arrays: dict[str, Any] = {
      f"constant_{index}": array for index, array in enumerate(constants)}
  np.savez_compressed(path, about=np.array(json.dumps(about)), **arrays)
  shutil.copy(numpy_player.__file__, path.parent / "player.py")


def _load_npz(path: pathlib.Path) -> Run:
  return numpy_player.Policy(path).run


FORMATS = {
    "savedmodel": Format(
        "saved_model", _write_saved_model, _load_saved_model, (), """\
import tensorflow as tf
act = tf.saved_model.load("saved_model").signatures["serving_default"]
outputs = act(**inputs)"""),
    "tflite": Format(
        "policy.tflite", _write_tflite, _load_tflite, ("ai_edge_litert",), """\
from ai_edge_litert import interpreter
act = interpreter.Interpreter("policy.tflite").get_signature_runner()
outputs = act(**inputs)"""),
    "onnx": Format(
        "policy.onnx", _write_onnx, _load_onnx, ("tf2onnx", "onnxruntime"), """\
import onnxruntime
session = onnxruntime.InferenceSession("policy.onnx")
names = [output.name for output in session.get_outputs()]
outputs = dict(zip(names, session.run(names, inputs)))"""),
    "npz": Format("policy.npz", _write_npz, _load_npz, (), """\
import player
outputs = player.Policy("policy.npz").run(inputs)""")}
