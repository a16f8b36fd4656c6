"""Loads custom classes, which a config names as `module:Class`.

For new runs, Python looks for the modules on its path, in the current folder,
and in the folder of the config's file. `import_guard` checks the modules of
existing runs before they are imported. `find_class` checks a class before any
caller creates an object, because the config of an untrusted run could otherwise
call arbitrary functions.
"""

import importlib
import inspect
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from agents import config_parsing

# Advice for messages about a missing module.
PLACES = (
  "If a package contains the module, install the package. Python looks for modules on its path. "
  "For new runs, it also looks in the current folder and in the folder of the config's file; for "
  "existing runs, in the folders of the option --code."
)


def find(name: str) -> Any:
  """Returns the object that `module:Class` names.

  Args:
    name: Name of a module, a colon, and an attribute.

  Returns:
    The attribute, or None if the module lacks it.

  Raises:
    ImportError: If the module does not exist.
  """
  module_name, _, attribute = name.partition(":")
  if not module_name or module_name.startswith("."):
    raise ImportError(f"'{module_name}' is not the complete name of a module")
  return getattr(importlib.import_module(module_name), attribute, None)


def hint(name: str) -> str:
  """Returns a hint with the most similar class name in an imported module.

  Args:
    name: `module:Class`. The module is imported and lacks the class.
  """
  module_name, _, attribute = name.partition(":")
  return config_parsing.did_you_mean(
    attribute,
    (key for key, value in vars(sys.modules[module_name]).items() if isinstance(value, type)),
  )


def find_class(
  setting: str,
  name: str,
  base: type = object,
  methods: Sequence[str] = (),
  arguments: Iterable[str] = (),
) -> type:
  """Returns the class that a setting names.

  Args:
    setting: Key of the setting for error messages, such as "algorithm.type".
    name: Value of the setting, `module:Class`.
    base: Required base class.
    methods: Names of required methods.
    arguments: Names of required constructor arguments.

  Raises:
    ConfigError: If the class does not exist, or lacks the base class, a method
      or a constructor argument.
  """

  def fail(reason: str) -> config_parsing.ConfigError:
    return config_parsing.ConfigError(f"{setting}={name}: {reason}")

  try:
    found = find(name)
  except ImportError as error:
    raise fail(f"{error}. {PLACES}") from error
  if not isinstance(found, type):
    raise fail(f"the module has no class of this name.{hint(name)}")
  if not issubclass(found, base):
    raise fail(f"it must be derived from {base.__module__}.{base.__name__}.")
  if missing := [method for method in methods if not callable(getattr(found, method, None))]:
    raise fail(f"it lacks the method(s) {', '.join(missing)}, which docs/extending.md describes.")
  known = inspect.signature(found.__init__).parameters
  if not any(each.kind is each.VAR_KEYWORD for each in known.values()):
    for argument in arguments:
      if argument not in known:
        raise fail(
          f"its constructor takes no argument '{argument}'."
          f"{config_parsing.did_you_mean(argument, known)}"
        )
  return found
