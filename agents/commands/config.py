"""Print all settings of a config or a run, with the origin of each value.

examples:
  %(prog)s hopper
  %(prog)s hopper --preset paper --set num_envs=32
  %(prog)s ~/logdir
"""

import functools
import os
from collections.abc import Mapping, Sequence
from typing import Any

from agents import config as config_lib
from agents import configs
from agents.commands import parsing
from agents.commands.shared import merge_settings


def main(argv: list[str] | None = None) -> int:
  """Runs the command `config`.

  Args:
    argv: Command-line arguments; None takes the arguments of the process.

  Returns:
    Exit code of the process.
  """
  parser = parsing.make_parser("config", __doc__)
  option = functools.partial(parsing.option, parser)
  option(
    "name NAME_OR_RUN_DIR",
    "named config, path of your own .py file, or run folder; in a folder of runs, the newest run "
    "with a checkpoint is used",
  )
  parsing.add_preset(parser)
  option("--set KEY=VALUE", "change a setting of the config", action="append", default=[])
  parsing.add_json(parser, "the settings")
  with parsing.parsed(parser, argv) as args:
    args.result = find(args.name, args.preset, parsing.settings(args))
    if not args.json:
      print(args.result.describe())
  return 0


def find(
  name: str, preset_names: Sequence[str], changes: Mapping[str, Any]
) -> merge_settings.Settings:
  """Returns the settings of a config or of an existing run.

  Args:
    name: Name of a config, path of a Python file with a `CONFIG`, or path of a
      run folder or of a folder of runs.
    preset_names: Names of presets, in the order in which they apply.
    changes: Values from the command line, by dotted key.

  Raises:
    ConfigError: If a name is unknown, a value is invalid, or presets or values
      would change an existing run.
  """
  path = os.path.expanduser(name)
  if name in configs.names() or name.endswith(".py"):
    parsing.import_from_current_folder()
    return merge_settings.of_new_run(name, preset_names, changes)
  if not os.path.isdir(path):
    if os.sep in name:
      raise config_lib.ConfigError(f"{name}: no run folder or Python file has this name.")
    return merge_settings.of_new_run(name, preset_names, changes)  # Raises, with a hint.
  if preset_names or changes:
    raise config_lib.ConfigError("--preset and --set can't change an existing run.")
  from agents.training.run_folder import run_folder  # Takes longer to import.

  folder = run_folder.RunFolder(run_folder.newest(path))
  return merge_settings.of_old_run(folder.path.name, folder.config, {})
