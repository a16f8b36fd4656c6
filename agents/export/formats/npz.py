"""File of NumPy calls and constants, for programs without TensorFlow."""

import json
import pathlib
import shutil

import numpy as np

from agents.export import policy as policy_lib
from agents.export import signature
from agents.export.formats import base
from agents.translation import graph_to_numpy, numpy_player


class Format(base.ExportFormat):
  """File policy.npz, and the module player.py, which runs the file."""

  file = "policy.npz"

  def write(self, policy: policy_lib.ExportablePolicy, path: pathlib.Path) -> None:
    """Writes the graph as NumPy calls, and copies `numpy_player`."""
    program, constants = graph_to_numpy.translate(policy.frozen, policy.inputs, policy.outputs)
    program["inputs"] = signature.as_dicts(policy.inputs)
    program["action"] = signature.nested(policy.action_space, iter(policy.names("action")))
    np.savez(path, about=json.dumps(program), **constants)
    shutil.copy(numpy_player.__file__, path.parent / "player.py")

  def load(self, path: pathlib.Path) -> policy_lib.PolicyFunction:
    """Returns the function that `numpy_player.Policy` runs."""
    return numpy_player.Policy(path).run
