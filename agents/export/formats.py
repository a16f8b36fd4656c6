"""File formats of exported policies: how to write, load and run each."""

import importlib.util
import json
import pathlib
import shutil
import tempfile
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from agents import config as config_lib
from agents import spaces
from agents.export import graph_to_numpy, numpy_player, signature
from agents.export import policy as policy_lib

# Maps inputs [N, ...] by name to outputs [N, ...] by name.
PolicyFunction = Callable[[policy_lib.Arrays], policy_lib.Arrays]


class Format(NamedTuple):
  """A file format; templates/NAME.md shows how to run one step."""

  file: str  # Main file or folder, relative to the exported folder.
  write: Callable[[policy_lib.ExportablePolicy, pathlib.Path], None]
  load: Callable[[pathlib.Path], PolicyFunction]
  modules: tuple[str, ...] = ()  # Modules that it requires beside TensorFlow.


def check(names: Sequence[str], policy: policy_lib.ExportablePolicy):
  """Checks that a policy can be exported to some formats.

  Args:
    names: Names of formats.
    policy: Policy to export.

  Raises:
    ConfigError: If a package is missing, or a format cannot represent the
      spaces of the environment.
  """
  if "onnx" in names and any(map(spaces.composite, (
      policy.observation_space, policy.action_space))):
    raise config_lib.ConfigError(
        "--format onnx: The policy packs the parts of Dict and Tuple spaces "
        "into bytes, which ONNX does not support. Use another format.")
  for name in names:
    for module in FORMATS[name].modules:
      if not importlib.util.find_spec(module):
        raise config_lib.ConfigError(
            f"--format {name} needs {module}: pip install 'batch-ppo[{name}]'.")


def _named_function(policy: policy_lib.ExportablePolicy) -> Any:
  """Returns a `tf.function` with named inputs and outputs."""
  frozen = policy.frozen
  @tf.function(autograph=False, input_signature=policy.specs)
  def act(*inputs):
    return dict(zip(policy.outputs, frozen(*inputs), strict=True))
  return act


def _write_saved_model(policy: policy_lib.ExportablePolicy, path: pathlib.Path):
  module = tf.Module()
  module.act = _named_function(policy)
  tf.saved_model.save(
      module, str(path), {"serving_default": module.act},
      tf.saved_model.SaveOptions(experimental_custom_gradients=False))


def _load_saved_model(path: pathlib.Path) -> PolicyFunction:
  model = tf.saved_model.load(str(path))
  act = model.signatures["serving_default"]
  def run(inputs):
    outputs = act(**{name: tf.constant(x) for name, x in inputs.items()})
    assert model  # The signature is invalid after its model is deleted.
    return {name: x.numpy() for name, x in outputs.items()}
  return run


def _write_tflite(policy: policy_lib.ExportablePolicy, path: pathlib.Path):
  with tempfile.TemporaryDirectory() as folder:
    _write_saved_model(policy, pathlib.Path(folder))
    converter = tf.lite.TFLiteConverter.from_saved_model(folder)
    path.write_bytes(converter.convert())


def _load_tflite(path: pathlib.Path) -> PolicyFunction:
  from ai_edge_litert import interpreter
  runner = interpreter.Interpreter(
      str(path), num_threads=1).get_signature_runner()
  # Copies, because the interpreter reuses the memory of its outputs.
  return lambda inputs: {
      name: np.array(x) for name, x in runner(**inputs).items()}


def _write_onnx(policy: policy_lib.ExportablePolicy, path: pathlib.Path):
  import tf2onnx
  model, _ = tf2onnx.convert.from_function(
      _named_function(policy), policy.specs, opset=17)
  path.write_bytes(model.SerializeToString())


def _load_onnx(path: pathlib.Path) -> PolicyFunction:
  import onnxruntime
  options = onnxruntime.SessionOptions()
  options.intra_op_num_threads = 1
  session = onnxruntime.InferenceSession(str(path), options)
  names = [output.name for output in session.get_outputs()]
  return lambda inputs: dict(zip(
      names, session.run(names, inputs), strict=True))


def _write_npz(policy: policy_lib.ExportablePolicy, path: pathlib.Path):
  program, constants = graph_to_numpy.translate(
      policy.frozen, policy.inputs, policy.outputs)
  about = {**program, "inputs": signature.as_dicts(policy.inputs)}
  np.savez_compressed(path, about=json.dumps(about), **constants)
  shutil.copy(numpy_player.__file__, path.parent / "player.py")


FORMATS = {
    "savedmodel": Format("saved_model", _write_saved_model, _load_saved_model),
    "tflite": Format(
        "policy.tflite", _write_tflite, _load_tflite, ("ai_edge_litert",)),
    "onnx": Format(
        "policy.onnx", _write_onnx, _load_onnx, ("tf2onnx", "onnxruntime")),
    "npz": Format("policy.npz", _write_npz,
                  lambda path: numpy_player.Policy(path).run)}
