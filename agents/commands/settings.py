"""The config of a run, and who set each value of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from typing import NamedTuple

from agents import config as config_lib
from agents import configs
from agents.configs import presets


class Settings(NamedTuple):
  """A config, and for each dotted key who set its value."""

  name: str  # For the run folder.
  config: config_lib.Config
  origins: dict[str, str]

  def describe(self) -> str:
    """Return one line a value: key, value, and who set it."""
    values = config_lib.flat(self.config)
    lines = [f"{key}: {value}" for key, value in values.items()]
    width = max(map(len, lines))
    return "\n".join(
        f"{line:{width}}  # {origin}"
        for line, origin in zip(lines, self.origins.values(), strict=True))


def of_new_run(name: str, preset: str | None, changes: Mapping[str, Any]
               ) -> Settings:
  """Return a named config, changed by a preset and by the command line.

  Raises:
    ConfigError: If there are no such names, or the values can't be.
  """
  name, config = configs.load(name)
  layers = [("default", config_lib.Config()), (f"config {name}", config)]
  if preset:
    config = presets.apply(preset, config)
    layers.append((f"preset {preset}", config))
    name += f"-{preset}"
  # Through text, so that the run uses just what its config.yaml says.
  config = config_lib.load(
      config_lib.dump(config.override(dict(changes))), "the config")
  layers.append(("command line", config))
  return Settings(name, config, _origins(layers, changes))


def of_old_run(name: str, config: config_lib.Config,
               changes: Mapping[str, Any]) -> Settings:
  """Return the config of a run folder, changed by the command line."""
  changed = config.override(dict(changes))
  layers = [("config.yaml", config), ("command line", changed)]
  return Settings(name, changed, _origins(layers, changes))


def _origins(layers: list[tuple[str, config_lib.Config]],
             changes: Mapping[str, Any]) -> dict[str, str]:
  """Return the last layer that changed each value, or says so expressly."""
  flat = [(name, config_lib.flat(config)) for name, config in layers]
  origins = {}
  for key in flat[-1][1]:
    origins[key] = next(
        name for number, (name, values) in reversed(list(enumerate(flat)))
        if number == 0 or _differs(values, flat[number - 1][1], key)
        or (number == len(flat) - 1 and _names(changes, key)))
  return origins


def _differs(values: dict[str, Any], before: dict[str, Any], key: str) -> bool:
  missing = object()
  return values.get(key, missing) != before.get(key, missing)


def _names(changes: Mapping[str, Any], key: str) -> bool:
  return any(key == name or key.startswith(f"{name}.") for name in changes)
