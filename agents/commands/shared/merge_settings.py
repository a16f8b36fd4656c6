"""Combines the settings of a run from configs, presets and the command line."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from agents import config as config_lib
from agents import configs
from agents.configs import presets

# Source of values that `adapt_to_task` chose.
TASK_AND_BUDGET = "task and budget"


class Settings(NamedTuple):
  """A config, and the source of each value."""

  name: str  # Last part of the run folder's name.
  config: config_lib.Config
  origins: dict[str, str]  # Source of each value, by dotted key.

  def describe(self) -> str:
    """Returns one line per setting: key, value and source."""
    values = config_lib.flat(self.config)
    lines = [f"{key}: {value}" for key, value in values.items()]
    width = max(len(line) for line in lines if len(line) <= 80)
    return "\n".join(
      f"{line:{width}}  # {origin}"
      for line, origin in zip(lines, self.origins.values(), strict=True)
    )


def of_new_run(name: str, preset_names: Sequence[str], changes: Mapping[str, Any]) -> Settings:
  """Returns the settings of a new run.

  Args:
    name: Name of a config, or path of a Python file with a `CONFIG`.
    preset_names: Names of presets, in the order in which they apply.
    changes: Values from the command line, by dotted key.

  Raises:
    ConfigError: If a name is unknown or a value is invalid, or if the config
      adapts to its task and the environment cannot be built.
  """
  adapts = configs.adapts_to_task(name)  # `load` shortens the path of a file.
  name, config = configs.load(name)
  layers = [(f"config {name}", config)]
  if adapts:
    from agents.commands.shared import adapt_to_task  # Imports Gymnasium.

    # The sizes of a batch need to fit together only after the adaptation.
    others = {key: changes[key] for key in changes.keys() - adapt_to_task.SIZES}
    settings = _merge(name, layers, preset_names, others).config
    if settings.env.id:
      adapted = adapt_to_task.adapt(settings, changes)
      layers.append((TASK_AND_BUDGET, config.override(adapted)))
  return _merge(name, layers, preset_names, changes)


def of_fork(
  run: str, config: config_lib.Config, preset_names: Sequence[str], changes: Mapping[str, Any]
) -> Settings:
  """Returns the settings of a new run that begins with those of another run.

  Args:
    run: Name of the other run's folder.
    config: Settings of the other run.
    preset_names: Names of presets, in the order in which they apply.
    changes: Values from the command line, by dotted key.

  Raises:
    ConfigError: If a name is unknown or a value is invalid.
  """
  config = config.override({"extended_from": []})
  name = re.sub(r"^\d{8}T\d{6}(\.\d+)?-", "", run)  # Without the start time.
  return _merge(name, [(f"run {run}", config)], preset_names, changes)


def _merge(
  name: str,
  sources: Sequence[tuple[str, config_lib.Config]],
  preset_names: Sequence[str],
  changes: Mapping[str, Any],
) -> Settings:
  """Returns the settings of a new run.

  Args:
    name: First part of the run's name.
    sources: Names of the sources between the defaults and the presets, each
      with the config after this source.
    preset_names: See `of_new_run`.
    changes: See `of_new_run`.
  """
  layers, config = [("default", config_lib.Config()), *sources], sources[-1][1]
  has_task = bool(config.env.id)
  for preset in preset_names:
    config = presets.apply(preset, config)
    layers.append((f"preset {preset}", config))
  # Conversion to text and back gives exactly the values of config.yaml.
  config = config_lib.load(config_lib.dump(config.override(changes)), "the config")
  layers.append(("command line", config))
  task = "" if has_task else re.sub(r"[^\w.-]+", "_", config.env.id)
  parts = filter(None, (name, task, *preset_names))
  return Settings("-".join(parts), config, _origins(layers, changes))


def of_old_run(name: str, config: config_lib.Config, changes: Mapping[str, Any]) -> Settings:
  """Returns the settings of an existing run.

  Args:
    name: Name of the run folder.
    config: Settings in the run folder.
    changes: Values from the command line, by dotted key. `steps` must not
      decrease.

  Raises:
    ConfigError: If a key is unknown or a value is invalid.
  """
  changed = config.override(changes)
  if changed.steps < config.steps:
    raise config_lib.ConfigError(
      f"--steps {changes['steps']}: the run already has a budget of "
      f"{config.steps:,} steps, which can only grow."
    )
  if changed.steps > config.steps:
    # Schedules depend on the budget, so reports must distinguish extended runs
    # from runs that had the same budget from the start.
    changed = changed.override({"extended_from": [*config.extended_from, config.steps]})
  layers = [("config.yaml", config), ("command line", changed)]
  return Settings(name, changed, _origins(layers, changes))


def _origins(
  layers: list[tuple[str, config_lib.Config]], changes: Mapping[str, Any]
) -> dict[str, str]:
  """Returns the source of each value, by dotted key.

  The source is the last one that changed the value. Values that are set on the
  command line have the command line as source, even if they are unchanged.

  Args:
    layers: Names of the sources, each with the config after this source. The
      last source is the command line.
    changes: Values from the command line, by dotted key.
  """
  origins: dict[str, str] = {}
  before: dict[str, Any] = {}
  for source, config in layers:
    values = config_lib.flat(config)
    # Later layers can add keys, such as keyword arguments of an environment.
    origins |= {
      key: source for key, value in values.items() if key not in before or value != before[key]
    }
    before = values
  return {
    key: source if any(f"{key}.".startswith(f"{name}.") for name in changes) else origins[key]
    for key in before
  }
