"""Batch PPO: batched reinforcement learning inside the TensorFlow graph.

This file imports no other module of the project. Worker processes load
`agents.environments` without TensorFlow, and commands answer `--help` without it.
"""

import os
import typing

if typing.TYPE_CHECKING:
  import configs as configs

# Wheels contain the named configs as `agents/configs`. In a checkout they lie
# beside this package, and the following line makes them `agents.configs` too.
_CHECKOUT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
if os.path.isfile(os.path.join(_CHECKOUT, "configs", "presets", "paper.py")):
  __path__.append(_CHECKOUT)
