"""Provenance: versions of the packages and digests of the code of a run.

Runs with equal provenance and equal config are bit-equal on the same machine.
"""

import contextlib
import functools
import hashlib
import importlib.machinery
import importlib.metadata
import importlib.util
import os
import pathlib
import platform
import sysconfig
from collections.abc import Iterable
from typing import Any

import gymnasium

from agents.environments.making import third_party

# Returns the installed packages of each top-level module. The result is cached,
# because a call takes half a second.
_distributions = functools.cache(importlib.metadata.packages_distributions)
_PACKAGES = ("tensorflow", "keras", "tensorflow-probability", "numpy", "gymnasium", "mujoco")


def files(env: str) -> dict[str, dict[str, str]]:
  """Returns the contents of the files that describe the provenance of a run.

  Args:
    env: Id of the environment.

  Returns:
    Results of `versions` and `code`, by file name.
  """
  return {"versions.yaml": versions(env), "code.yaml": code(env)}


def versions(env: str) -> dict[str, str]:
  """Returns the versions of the installed packages that affect a run.

  Args:
    env: Id of the environment; the packages that define it are included.

  Returns:
    Versions by package name, and by the names "python", "machine" (type of the
    processor) and "onednn" (value of its environment variable).
  """
  result = {"python": platform.python_version(), "machine": platform.machine()}
  family = third_party.find(env)
  modules = env_module(env), *(family.modules if family else ())
  top_modules = [module.partition(".")[0] for module in modules]
  names = [
    name
    for top in top_modules
    if top not in ("", "gymnasium", "agents")
    for name in _distributions().get(top, [])
  ]
  for package in dict.fromkeys((*_PACKAGES, *names)):
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
      result[package] = importlib.metadata.version(package)
  # oneDNN kernels change the last bits of results.
  result["onednn"] = os.environ.get("TF_ENABLE_ONEDNN_OPTS", "default")
  return result


def code(env: str) -> dict[str, str]:
  """Returns digests of the Python files that affect a run.

  Args:
    env: Id of the environment. The files of its package are included, unless
      the package is installed and therefore has a version.

  Returns:
    First 16 hexadecimal digits of SHA-256, by file name.
  """
  return digests(
    _files(pathlib.Path(__file__).parents[2]) | module_files(env_module(env).partition(".")[0])
  )


def exists(module: str) -> bool:
  """Returns whether Python finds a top-level module, without importing it.

  Args:
    module: Name of the module, without dots.
  """
  return _spec(module) is not None


def module_files(module: str) -> dict[str, pathlib.Path]:
  """Returns the Python files of a module or package that is not installed.

  Args:
    module: Name of the top-level module; it is not imported.

  Returns:
    Paths by names such as "robots/legs.py". The result is empty if the module
    is installed or does not exist.
  """
  spec = _spec(module)
  files: dict[str, pathlib.Path] = {}
  locations: Iterable[str | None] = (
    [] if spec is None else (spec.submodule_search_locations or [spec.origin] * spec.has_location)
  )
  for path in map(pathlib.Path, filter(None, locations)):
    if not any(map(path.is_relative_to, sysconfig.get_paths().values())):
      files |= _files(path) if path.is_dir() else {path.name: path}
  return files


def digests(files: dict[str, pathlib.Path]) -> dict[str, str]:
  """Returns the first 16 hexadecimal digits of SHA-256, by file name.

  Args:
    files: Paths by file name.
  """
  return {name: hashlib.sha256(path.read_bytes()).hexdigest()[:16] for name, path in files.items()}


def _spec(module: str) -> importlib.machinery.ModuleSpec | None:
  # If the module is missing, building the environment reports the error later.
  with contextlib.suppress(Exception):
    return importlib.util.find_spec(module)
  return None


def _files(folder: pathlib.Path) -> dict[str, pathlib.Path]:
  return {str(path.relative_to(folder.parent)): path for path in sorted(folder.rglob("*.py"))}


def env_module(env: str) -> str:
  """Returns the module that defines an environment, or "" if it is unknown.

  Args:
    env: Id of the environment.
  """
  module, colon, _ = env.partition(":")
  if colon:
    return module
  spec = gymnasium.registry.get(env)
  entry = spec.entry_point if spec else None
  return entry.partition(":")[0] if isinstance(entry, str) else ""


def differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
  """Describes the entries that differ between two dictionaries.

  Args:
    before: Earlier versions, digests or settings, by name.
    now: Current versions, digests or settings, by name.

  Returns:
    A text such as "numpy 1.0 -> 2.0" for each name that differs.
  """
  return [
    f"{name} {before.get(name, '(none)')} -> {now.get(name, '(none)')}"
    for name in {**before, **now}
    if before.get(name) != now.get(name)
  ]
