"""Users' own classes, which a config names as `module:Class`.

They are looked for on Python's path and in the current folder. Before anything
of them is called, it must have shown that it is meant for that: otherwise the
config of somebody else's run could name any function there is.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

from agents import config_parsing


def find(name: str) -> Any:
  """Return what `module:Class` names, None if the module has no such thing.

  Raises:
    ImportError: If there is no such module.
  """
  module_name, _, attribute = name.partition(":")
  return getattr(importlib.import_module(module_name), attribute, None)


def hint(name: str) -> str:
  """Return what else could have been meant in a module that was found."""
  module_name, _, attribute = name.partition(":")
  return config_parsing.did_you_mean(attribute, (
      key for key, value in vars(sys.modules[module_name]).items()
      if isinstance(value, type)))


def find_class(setting: str, name: str, base: type = object,
               methods: Sequence[str] = (), arguments: Iterable[str] = ()
               ) -> type:
  """Return the class that a setting names.

  Args:
    setting: Such as "algorithm.type", for errors.
    name: Its value, `module:Class`.
    base: What the class must be derived from.
    methods: What it must have.
    arguments: Names that its constructor will be called with.
  Raises:
    ConfigError: If there is no such class, with what is missing.
  """
  where = f"{setting}={name}"
  try:
    found = find(name)
  except ImportError as error:
    raise config_parsing.ConfigError(
        f"{where}: {error}. Modules are looked for on Python's path and in the "
        "current folder.") from error
  if not isinstance(found, type):
    raise config_parsing.ConfigError(
        f"{where}: the module has no class of this name.{hint(name)}")
  if not issubclass(found, base):
    raise config_parsing.ConfigError(
        f"{where}: it must be derived from {base.__module__}.{base.__name__}.")
  missing = [each for each in methods
             if not callable(getattr(found, each, None))]
  if missing:
    raise config_parsing.ConfigError(
        f"{where}: it lacks the method(s) {', '.join(missing)}; "
        "docs/extending.md says what they do.")
  known = inspect.signature(found.__init__).parameters
  if not any(each.kind is each.VAR_KEYWORD for each in known.values()):
    for argument in arguments:
      if argument not in known:
        raise config_parsing.ConfigError(
            f"{where}: its constructor takes no argument '{argument}'."
            f"{config_parsing.did_you_mean(argument, known)}")
  return found
