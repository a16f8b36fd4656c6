"""Modules that a config names, and their files. No module is imported."""

import contextlib
import functools
import importlib
import importlib.machinery
import os
import pathlib
import site
import sys
import sysconfig
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from agents import config as config_lib
from agents import config_parsing
from agents.environments.making import third_party
from agents.training.run_folder import provenance

# Trials of a sweep look for modules in several threads. In Python 3.11,
# `invalidate_caches` raises KeyError if two threads call it at the same time.
_INVALIDATING = threading.Lock()


def names(config: config_lib.Config) -> list[str]:
  """Returns all modules that environments and components may import by name.

  Besides `module:Class` in settings, this includes texts of this form in
  arguments, because functions such as `gymnasium:make` import what their
  arguments name.

  Args:
    config: Settings of a run.
  """
  family = third_party.find(config.env.id)
  modules = [
    *(text.partition(":")[0] for text in _texts(config_parsing.to_data(config)) if ":" in text),
    *(family.modules if family else ()),
    provenance.env_module(config.env.id),
    config.env.backend.partition(":")[0],  # "envpool" is a module.
  ]
  return list(dict.fromkeys(filter(None, modules)))


def files(module: str, path: Sequence[str]) -> list[pathlib.Path] | None:
  """Returns the files that the import of a module executes.

  Args:
    module: Name, with dots for modules in packages.
    path: Folders in which Python looks for the module, such as `sys.path`.

  Returns:
    Files of the parent packages, then of the module. Built-in modules and
    folders without `__init__.py` have none. None if the module is not found.
  """
  found, exists = executed(module, path)
  return [*found.values()] if exists else None


def executed(module: str, path: Sequence[str]) -> tuple[dict[str, pathlib.Path], bool]:
  """Returns the files that an import executes, even if the import then fails.

  Args:
    module: Name, with dots for modules in packages.
    path: Folders in which Python looks for the module, such as `sys.path`.

  Returns:
    Files by name of the parent packages, then of the module, and whether the
    module exists. If a part of the name does not exist, the import executes the
    parts before it.
  """
  with _INVALIDATING:
    importlib.invalidate_caches()
  found: dict[str, pathlib.Path] = {}
  parents: list[str] = []
  for name in module.split("."):
    # `importlib.util.find_spec` would import the parent packages.
    spec = importlib.machinery.PathFinder.find_spec(name, path)
    if spec is None:
      return found, False
    parents.append(name)
    if spec.has_location and spec.origin:
      found[".".join(parents)] = pathlib.Path(os.path.abspath(spec.origin))
    loaded = sys.modules.get(".".join(parents))  # May have changed its `__path__`.
    path = [*getattr(loaded, "__path__", spec.submodule_search_locations or ())]
  return found, True


def parent_folder(module: str, file: pathlib.Path) -> pathlib.Path:
  """Returns the folder that Python's path must contain to import a module.

  Args:
    module: Name, with dots for modules in packages.
    file: File of the module.
  """
  return file.parents[module.count(".") + file.name.startswith("__init__.")]


def is_installed(file: pathlib.Path) -> bool:
  """Returns whether a file belongs to Python, an installed package or this one.

  Args:
    file: Absolute path.
  """
  return is_within(file, _installed_folders())


def is_within(file: pathlib.Path, folders: Iterable[str | os.PathLike]) -> bool:
  """Returns whether a file, or the target of its link, is in a folder.

  Args:
    file: Absolute path.
    folders: Paths of folders.
  """
  return any(
    path.is_relative_to(place)
    for path in (file, file.resolve())
    for folder in folders
    for place in (os.path.abspath(folder), os.path.realpath(folder))
  )


@functools.cache
def _installed_folders() -> list[str]:
  """Returns the folders of modules of Python, packages and this package."""
  folders = [*site.getsitepackages(), *([site.getusersitepackages()] * bool(site.ENABLE_USER_SITE))]
  for folder in map(pathlib.Path, [*folders]):
    for file in folder.glob("*.pth"):
      with contextlib.suppress(OSError, UnicodeDecodeError):
        # Lines that begin with "import" are code.
        lines = [line.strip() for line in file.read_text().splitlines()]
        folders += [
          str(folder / line) for line in lines if line and not line.startswith(("#", "import"))
        ]
  package = pathlib.Path(__file__).parents[2]
  return [
    *folders,
    *map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib")),
    str(package),
    str(package.with_name("configs")),  # In a checkout.
  ]


def _texts(data: Any) -> Iterator[str]:
  """Yields all texts in nested lists and dicts, including keys."""
  if isinstance(data, dict):
    data = [*data, *data.values()]
  if isinstance(data, list):
    for item in data:
      yield from _texts(item)
  elif isinstance(data, str):
    yield data
