"""TFLite, the format of LiteRT on phones and microcontrollers."""

import pathlib
import tempfile

import numpy as np
import tensorflow as tf

from agents.export import policy as policy_lib
from agents.export.formats import base, savedmodel


class Format(base.ExportFormat):
  """File that LiteRT runs."""

  file = "policy.tflite"
  modules = ("ai_edge_litert",)

  def write(self, policy: policy_lib.ExportablePolicy, path: pathlib.Path) -> None:
    """Converts a temporary SavedModel to TFLite."""
    with tempfile.TemporaryDirectory() as folder:
      savedmodel.Format(self.name).write(policy, pathlib.Path(folder))
      converter = tf.lite.TFLiteConverter.from_saved_model(folder)
      path.write_bytes(converter.convert())

  def load(self, path: pathlib.Path) -> policy_lib.PolicyFunction:
    """Returns a function that LiteRT runs in one thread."""
    from ai_edge_litert import interpreter

    runner = interpreter.Interpreter(str(path), num_threads=1).get_signature_runner()
    # Copies, because the interpreter reuses the memory of its outputs.
    return lambda inputs: {name: np.array(x) for name, x in runner(**inputs).items()}
