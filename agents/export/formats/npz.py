"""NumPy calls and constants, for programs that have only NumPy."""

import json
import pathlib
import shutil

import numpy as np

from agents.export import graph_to_numpy, numpy_player, signature
from agents.export import policy as policy_lib
from agents.export.formats import base


class Format(base.ExportFormat):
  """File that player.py runs, which is copied next to it."""

  file = "policy.npz"

  def write(self, policy: policy_lib.ExportablePolicy, path: pathlib.Path):
    program, constants = graph_to_numpy.translate(
        policy.frozen, policy.inputs, policy.outputs)
    about = {**program, "inputs": signature.as_dicts(policy.inputs)}
    np.savez_compressed(path, about=json.dumps(about), **constants)
    shutil.copy(numpy_player.__file__, path.parent / "player.py")

  def load(self, path: pathlib.Path) -> policy_lib.PolicyFunction:
    return numpy_player.Policy(path).run
