"""Conversion between YAML, plain data and dataclasses, with strict checks.

Errors state the dotted key of an unknown or invalid setting, and suggest the
most similar known name.
"""

import contextlib
import dataclasses
import difflib
import types
import typing
from collections.abc import Iterable, Iterator
from typing import Any

import yaml

_MAX_DEPTH = 50  # Nesting levels of lists and dicts.
_SCALARS = (bool, int, float, str, type(None))


class ConfigError(ValueError):
  """A setting is unknown, has the wrong type, or has an invalid value."""


class UnknownField(ConfigError):
  """A setting does not exist.

  Args:
    field: Name of the setting within its section.
    section: Dotted key of the section; empty at the top level.
    dataclass: Class of the section.
  """

  def __init__(self, field: str, section: str, dataclass: type) -> None:
    self.key = f"{section}.{field}" if section else field
    self._field, self._section, self._dataclass = field, section, dataclass
    super().__init__(self.text(dataclass))

  def text(self, config_class: type) -> str:
    """Returns a message that suggests a similar setting.

    Args:
      config_class: Class of a complete config. Its settings are suggested if
        the section has no similar one.
    """
    hint = (
      _suggest_key(self._field, self._dataclass, self._section)
      or _suggest_key(self._field, config_class, "")
      or f" Known fields: {', '.join(typing.get_type_hints(self._dataclass))}."
    )
    return f"{self.key}: {self._dataclass.__name__} has no field '{self._field}'.{hint}"


class _Loader(yaml.SafeLoader):
  """Builds scalars, lists and dicts from YAML, and rejects aliases.

  A short YAML text with aliases can describe more data than fits into memory.
  """

  _depth = 0

  def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
    if self.check_event(yaml.AliasEvent):
      raise yaml.YAMLError("Aliases (*name) are not allowed.")
    if self._depth == _MAX_DEPTH:
      raise yaml.YAMLError(f"The data has more than {_MAX_DEPTH} levels.")
    self._depth += 1
    node = super().compose_node(parent, index)
    self._depth -= 1
    return node


def parse(text: str) -> Any:
  """Reads YAML without executing code.

  Args:
    text: YAML with scalars, lists and dicts.

  Returns:
    Plain data.

  Raises:
    ConfigError: If the text is invalid YAML or contains any other data.
  """
  try:
    return to_data(yaml.load(text, _Loader))
  except (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    yaml.YAMLError,
  ) as error:
    raise ConfigError(str(error) or "The YAML is invalid.") from None


def to_data(value: Any) -> Any:
  """Converts nested dataclasses, dicts and lists to dicts, lists and scalars.

  Raises:
    ConfigError: If the value contains any other type.
  """
  if dataclasses.is_dataclass(value):
    return {field.name: to_data(getattr(value, field.name)) for field in dataclasses.fields(value)}
  if isinstance(value, dict) and all(type(key) in _SCALARS for key in value):
    return {key: to_data(item) for key, item in value.items()}
  if isinstance(value, (list, tuple)):
    return [to_data(item) for item in value]
  if type(value) in _SCALARS:
    return value
  raise ConfigError(
    f"The config must be plain data: numbers, texts, lists and dicts. Received: {value!r}."
  )


def convert(expected: Any, value: Any, key: str) -> Any:
  """Converts plain data to a type if the conversion loses no information.

  Args:
    expected: Expected type: a dataclass, or the type hint of a field.
    value: Plain data.
    key: Dotted key of the value, for error messages; "" at the top.

  Returns:
    Value of the expected type.

  Raises:
    ConfigError: If the value does not fit.
  """
  name = key or "config"
  if dataclasses.is_dataclass(expected) and isinstance(expected, type):
    return _convert_fields(expected, value, key)
  if expected is Any:
    return value
  origin, args = typing.get_origin(expected), typing.get_args(expected)
  if origin is typing.Literal:  # The dataclass rejects unknown choices.
    return value if value in args else convert(type(args[0]), value, key)
  if origin in (types.UnionType, typing.Union):
    return None if value is None else convert(args[0], value, key)
  if origin in (tuple, list) and isinstance(value, (list, tuple)):
    return origin(convert(args[0], item, key) for item in value)
  if origin is dict and isinstance(value, dict):
    return {
      item_key: convert(args[1], item, f"{name}.{item_key}") for item_key, item in value.items()
    }
  if expected in (int, float):
    value = _convert_number(expected, value)
  if type(value) is expected:  # `isinstance` would accept a bool as int.
    return value
  if origin in (tuple, list):
    raise ConfigError(f"`{name}` must be a list, such as [{value}, {value}]. Received: {value!r}.")
  type_name = getattr(origin or expected, "__name__", str(expected))
  raise ConfigError(f"`{name}` must be of type {type_name}. Received: {value!r}.")


def _convert_fields(dataclass: type, data: Any, key: str) -> Any:
  """Builds a dataclass from a dict of field values."""
  name = key or "config"
  if not isinstance(data, dict):
    raise ConfigError(f"{name}: expected a dict of fields. Received: {data!r}.")
  hints = typing.get_type_hints(dataclass)
  values = {}
  for field, value in data.items():
    field_key = f"{key}.{field}" if key else str(field)
    if field not in hints:
      raise UnknownField(str(field), key, dataclass)
    values[field] = convert(hints[field], value, field_key)
  required = [
    field.name
    for field in dataclasses.fields(dataclass)
    if (field.default is field.default_factory is dataclasses.MISSING)
  ]
  if missing := [each for each in required if each not in values]:
    raise ConfigError(f"{name} lacks {', '.join(missing)}.")
  return dataclass(**values)


def _convert_number(number_type: type, value: Any) -> Any:
  """Converts a text or number to a number type if the conversion is exact.

  Otherwise, the result is of another type, which the caller reports.
  """
  if isinstance(value, str):
    with contextlib.suppress(ValueError):
      # PyYAML reads 3e-4 as text and 3.0e-4 as a number.
      value = int(value) if value.isdecimal() else float(value)
  if isinstance(value, bool) or not isinstance(value, (int, float)):
    return value
  if number_type is float:
    return float(value)
  return int(value) if value % 1 == 0 else value


def _suggest_key(name: str, dataclass: type, section: str) -> str:
  """Returns a text that suggests the dotted key of a similar field, or ""."""
  keys = list(_dotted_keys(dataclass))
  leaves = {key.rpartition(".")[2]: key for key in reversed(keys)}
  close = difflib.get_close_matches(name, leaves, n=1, cutoff=0.5)
  prefix = f"{section}." if section else ""
  return f" Did you mean '{prefix}{leaves[close[0]]}'?" if close else ""


def _dotted_keys(dataclass: type) -> Iterator[str]:
  """Yields the dotted keys of all fields, those of the top level first."""
  hints = typing.get_type_hints(dataclass)
  yield from hints
  for name, hint in hints.items():
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
      yield from (f"{name}.{key}" for key in _dotted_keys(hint))


def did_you_mean(name: str, known: Iterable[str]) -> str:
  """Returns " Did you mean 'x'?", or "" if no known name is similar.

  Args:
    name: Unknown name.
    known: Known names.
  """
  close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
  return f" Did you mean '{close[0]}'?" if close else ""
