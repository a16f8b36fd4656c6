"""ONNX, the format of ONNX Runtime and many other libraries."""

import pathlib

from agents import config as config_lib
from agents import spaces
from agents.export import policy as policy_lib
from agents.export.formats import base


class Format(base.ExportFormat):
  """File that ONNX Runtime runs."""

  file = "policy.onnx"
  modules = "tf2onnx", "onnxruntime"

  def check(self, policy: policy_lib.ExportablePolicy) -> None:
    """See `ExportFormat.check`; rejects Dict and Tuple spaces."""
    if any(map(spaces.composite, (policy.observation_space, policy.action_space))):
      raise config_lib.ConfigError(
        "--format onnx: The policy packs the parts of Dict and Tuple spaces "
        "into bytes, which ONNX does not support. Use another format."
      )
    super().check(policy)

  def write(self, policy: policy_lib.ExportablePolicy, path: pathlib.Path) -> None:
    """Converts the policy to ONNX, operator set 17."""
    import tf2onnx

    model, _ = tf2onnx.convert.from_function(policy.named_function(), policy.specs, opset=17)
    path.write_bytes(model.SerializeToString())

  def load(self, path: pathlib.Path) -> policy_lib.PolicyFunction:
    """Returns a function that ONNX Runtime runs in one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options)
    names = [output.name for output in session.get_outputs()]
    return lambda inputs: dict(zip(names, session.run(names, inputs), strict=True))
