"""What the bits of a run depend on, beside its config: packages and code."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import importlib.util
import itertools
import os
import pathlib
import platform
import sysconfig
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

import gymnasium

from agents.environments.making import third_party

_PACKAGES = ("tensorflow", "keras", "tensorflow-probability", "numpy",
             "gymnasium", "mujoco")


def versions(env: str) -> dict[str, str]:
  """Return the versions of what is installed, by name.

  Args:
    env: Id of the environment, whose own package counts.
  """
  found = {"python": platform.python_version(), "machine": platform.machine()}
  family = third_party.find(env)
  modules = _module(env), *(family.modules if family else ())
  for package in dict.fromkeys(
      (*_PACKAGES, *itertools.chain.from_iterable(map(_packages, modules)))):
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
    env: Id of the environment; its own files count, unless they are installed,
      so that there is a version.
  """
  root = pathlib.Path(__file__).parents[2]
  files = _files(root)
  module = _module(env)
  top = module.partition(".")[0]
  try:
    spec = importlib.util.find_spec(top) if module else None
  except Exception:  # Who builds it will say so.
    spec = None
  places: Iterable[str | None] = [] if spec is None else (
      spec.submodule_search_locations or [spec.origin] * spec.has_location)
  for place in map(pathlib.Path, filter(None, places)):
    if not any(map(place.is_relative_to, sysconfig.get_paths().values())):
      files |= _files(place) if place.is_dir() else {place.name: place}
  return {name: hashlib.sha256(path.read_bytes()).hexdigest()[:16]
          for name, path in files.items()}


def _files(folder: pathlib.Path) -> dict[str, pathlib.Path]:
  return {str(path.relative_to(folder.parent)): path
          for path in sorted(folder.rglob("*.py"))}


def _module(env: str) -> str:
  """Return where an environment comes from, or nothing if nobody knows."""
  module, colon, _ = env.partition(":")
  if colon:
    return module
  spec = gymnasium.registry.get(env)
  entry = spec.entry_point if spec else None
  return entry.partition(":")[0] if isinstance(entry, str) else ""


def _packages(module: str) -> list[str]:
  """Return the installed packages that a module belongs to."""
  top = module.partition(".")[0]
  return [] if top in ("", "gymnasium", "agents") else (
      _installed().get(top, []))


@functools.cache
def _installed() -> Mapping[str, list[str]]:
  """Return the packages of each module; takes half a second."""
  return importlib.metadata.packages_distributions()


def differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
  """Say which versions, digests or settings are not as they were."""
  return [f"{name} {before.get(name, '(none)')} -> {now.get(name, '(none)')}"
          for name in {**before, **now} if before.get(name) != now.get(name)]
