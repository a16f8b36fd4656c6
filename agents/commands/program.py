"""What to type to run a command again, the way this one was run."""

from __future__ import annotations

import os
import shlex
import sys

_SCRIPTS = "train.py", "visualize.py"


def name() -> str:
  """Return what stands before the command: "batch-ppo", for example."""
  if os.path.basename(sys.argv[0]) == "batch-ppo":
    return "batch-ppo"
  return "python -m agents"


def command(which: str) -> str:
  """Return what runs "train", "visualize" or "check" from this folder."""
  folder, script = os.path.split(sys.argv[0])
  if script in _SCRIPTS and f"{which}.py" in _SCRIPTS:
    return f"python {shlex.quote(os.path.join(folder, f'{which}.py'))}"
  return f"{name()} {which}"
