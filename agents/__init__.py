"""Batch PPO: batched reinforcement learning inside the TensorFlow graph.

This file imports no module that loads TensorFlow, because worker processes and
`--help` do not need TensorFlow.
"""

import os
import typing

from agents import former_names
from agents.version import __version__ as __version__

if typing.TYPE_CHECKING:
  import configs as configs

# Wheels contain the named configs as `agents/configs`. In a checkout, the named
# configs are in the folder `configs` next to this package. The following lines
# make this folder importable as `agents.configs`.
_CHECKOUT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
if os.path.isfile(os.path.join(_CHECKOUT, "configs", "presets", "paper.py")):
  __path__.append(_CHECKOUT)
former_names.install()
