"""From YAML to plain data to dataclasses and back, checking everything.

Whatever is unknown is an error that says where it is, and what was meant.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import types
import typing
from collections.abc import Iterable
from typing import Any

import yaml

_MOST_DEPTH = 50  # Of lists and dicts in each other.
_SCALARS = (bool, int, float, str, type(None))


class ConfigError(ValueError):
  """A setting is unknown, has the wrong type, or can't work."""


class _Loader(yaml.SafeLoader):
  """Builds numbers, texts, lists and dicts, of no more than is written down.

  Short texts with aliases stand for data that no memory can hold.
  """

  _depth = 0

  def compose_node(self, parent, index):
    if self.check_event(yaml.AliasEvent):
      raise yaml.YAMLError("There must be no aliases (*name).")
    if self._depth == _MOST_DEPTH:
      raise yaml.YAMLError(f"It is nested more than {_MOST_DEPTH} times.")
    self._depth += 1
    node = super().compose_node(parent, index)
    self._depth -= 1
    return node


def parse(text: str) -> Any:
  """Read YAML, by which no code is run.

  Raises:
    ConfigError: If it can't be read.
  """
  try:
    return yaml.load(text, _Loader)
  except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError,
          yaml.YAMLError) as error:
    raise ConfigError(str(error) or "It can't be read.") from None


def to_data(value: Any) -> Any:
  """Return dataclasses, dicts and lists as dicts, lists and scalars.

  Raises:
    ConfigError: If there is anything else in them.
  """
  if dataclasses.is_dataclass(value):
    return {field.name: to_data(getattr(value, field.name))
            for field in dataclasses.fields(value)}
  if isinstance(value, dict) and all(type(key) in _SCALARS for key in value):
    return {key: to_data(item) for key, item in value.items()}
  if isinstance(value, (list, tuple)):
    return [to_data(item) for item in value]
  if type(value) in _SCALARS:
    return value
  raise ConfigError("The config must be plain data: numbers, texts, lists and "
                    f"dicts. Received: {value!r}.")


def convert(kind: Any, value: Any, key: str) -> Any:
  """Check `value` against a type hint; only lossless conversions happen."""
  where = key or "config"
  if dataclasses.is_dataclass(kind) and isinstance(kind, type):
    if not isinstance(value, dict):
      raise ConfigError(f"{where}: expected fields. Received: {value!r}.")
    hints = typing.get_type_hints(kind)
    fields = {}
    for name, item in value.items():
      path = f"{key}.{name}" if key else str(name)
      check_known(kind, str(name), path)
      fields[name] = convert(hints[name], item, path)
    needed = [field.name for field in dataclasses.fields(kind) if (
        field.default is field.default_factory is dataclasses.MISSING)]
    if missing := [name for name in needed if name not in fields]:
      raise ConfigError(f"{where} lacks {', '.join(missing)}.")
    return kind(**fields)
  if kind is Any:
    return value
  origin, args = typing.get_origin(kind), typing.get_args(kind)
  if origin in (types.UnionType, typing.Union):
    return None if value is None else convert(args[0], value, key)
  if origin in (tuple, list) and isinstance(value, (list, tuple)):
    return origin(convert(args[0], item, key) for item in value)
  if origin is dict and isinstance(value, dict):
    return {name: convert(args[1], item, f"{where}.{name}")
            for name, item in value.items()}
  if isinstance(value, str) and kind in (int, float):
    # YAML reads 3e-4 as text: it wants 3.0e-4.
    for number_type in (int, float):
      try:
        value = number_type(value)
        break
      except ValueError:
        pass
  if isinstance(value, kind if isinstance(kind, type) else ()):
    if not (kind is int and isinstance(value, bool)):
      return value
  number = isinstance(value, (int, float)) and not isinstance(value, bool)
  if kind is float and number:
    return float(value)
  if kind is int and number and math.isfinite(value) and value == int(value):
    return int(value)
  expected = getattr(origin or kind, "__name__", str(kind))
  raise ConfigError(f"`{where}` must be of type {expected}. "
                    f"Received: {value!r}.")


def check_known(kind: Any, name: str, key: str):
  """Raise a ConfigError unless a dataclass has a field of this name."""
  names = [field.name for field in dataclasses.fields(kind)]
  if name not in names:
    hint = did_you_mean(name, names) or f" It has: {', '.join(names)}."
    raise ConfigError(f"{key}: {kind.__name__} has no field '{name}'.{hint}")


def did_you_mean(name: str, known: Iterable[str]) -> str:
  """Return a hint such as " Did you mean 'x'?", or nothing."""
  close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
  return f" Did you mean '{close[0]}'?" if close else ""
