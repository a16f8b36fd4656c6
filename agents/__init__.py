"""Batch PPO: batched reinforcement learning inside the TensorFlow graph.

This file imports no module that loads TensorFlow, because worker processes and
`--help` do not need it.
"""

import os
import typing

from agents import former_names

if typing.TYPE_CHECKING:
  import configs as configs

# Wheels contain the named configs as `agents/configs`. In a checkout, `configs`
# lies next to this package, and the following lines make it importable as
# `agents.configs`.
_CHECKOUT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
if os.path.isfile(os.path.join(_CHECKOUT, "configs", "presets", "paper.py")):
  __path__.append(_CHECKOUT)
former_names.install()
