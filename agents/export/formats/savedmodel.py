"""SavedModel, TensorFlow's own format."""

import pathlib

import tensorflow as tf

from agents.export import policy as policy_lib
from agents.export.formats import base


class Format(base.ExportFormat):
  """Folder that TensorFlow and TensorFlow Serving load."""

  file = "saved_model"

  def write(self, policy: policy_lib.ExportablePolicy, path: pathlib.Path) -> None:
    """Writes a SavedModel with the signature "serving_default"."""
    module = tf.Module()
    module.act = policy.named_function()
    tf.saved_model.save(
      module,
      str(path),
      {"serving_default": module.act},
      tf.saved_model.SaveOptions(experimental_custom_gradients=False),
    )

  def load(self, path: pathlib.Path) -> policy_lib.PolicyFunction:
    """Returns a function that TensorFlow runs."""
    model = tf.saved_model.load(str(path))
    act = model.signatures["serving_default"]

    def run(inputs: policy_lib.Arrays) -> policy_lib.Arrays:
      outputs = act(**{name: tf.constant(x) for name, x in inputs.items()})
      assert model  # The signature is invalid after its model is deleted.
      return {name: x.numpy() for name, x in outputs.items()}

    return run
