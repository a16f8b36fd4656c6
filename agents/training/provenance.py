"""What the bits of a run depend on, beside its config: packages and code."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import pathlib
import platform
from typing import Any

_PACKAGES = ("tensorflow", "keras", "tensorflow-probability", "numpy",
             "gymnasium", "mujoco")


def versions() -> dict[str, str]:
  """Return the versions of what is installed, by name."""
  found = {"python": platform.python_version(), "machine": platform.machine()}
  for package in _PACKAGES:
    try:
      found[package] = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
      pass
  # Results differ in the last bits with oneDNN's kernels and without.
  found["onednn"] = os.environ.get("TF_ENABLE_ONEDNN_OPTS", "default")
  return found


def code(env: str) -> dict[str, str]:
  """Return digests of the code, by file.

  Args:
    env: Id of the environment; its own file counts, if the id names a module.
  """
  root = pathlib.Path(__file__).parent.parent
  files = {str(path.relative_to(root.parent)): path
           for path in sorted(root.rglob("*.py"))}
  module, colon, _ = env.partition(":")
  try:
    spec = importlib.util.find_spec(module) if colon else None
  except Exception:  # Who builds it will say so.
    spec = None
  if spec and spec.has_location:
    files[f"module {module}"] = pathlib.Path(spec.origin)
  return {name: hashlib.sha256(path.read_bytes()).hexdigest()[:16]
          for name, path in files.items()}


def differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
  """Say which versions, digests or settings are not as they were."""
  return [f"{name} {before.get(name, '(none)')} -> {now.get(name, '(none)')}"
          for name in {**before, **now} if before.get(name) != now.get(name)]
