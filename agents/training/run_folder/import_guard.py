"""Import guard: which code the config of a run folder may execute.

A run folder may come from another person. Its config may name only modules of
installed packages, of folders that the user allows, and modules that a run of
this user has named before. Gymnasium's wrappers are permitted unless they have
side effects, such as files.
"""

import os
import pathlib
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from agents import config as config_lib
from agents.environments.making import make
from agents.training.run_folder import named_modules, provenance, user_modules

# Gymnasium's wrappers that neither write files, open windows nor import modules
# that their arguments name.
_HARMLESS = """AddRenderObservation AddWhiteNoise AtariPreprocessing Autoreset
  ClipAction ClipReward DelayObservation DiscretizeAction DiscretizeObservation
  DtypeObservation FilterObservation FlattenObservation FrameStackObservation
  GrayscaleObservation MaxAndSkipObservation NormalizeObservation
  NormalizeReward ObstructView OrderEnforcing PassiveEnvChecker
  RecordEpisodeStatistics RenderCollection RepeatAction RescaleAction
  RescaleObservation ReshapeObservation ResizeObservation StickyAction
  TimeAwareObservation TimeLimit""".split()
_OWN_WRAPPERS = "agents.environments.making.wrappers"


def check(
  config: config_lib.Config,
  folder: pathlib.Path,
  allowed: Sequence[str | os.PathLike] = (),
  code: Mapping[str, str] | None = None,
) -> None:
  """Checks that a loaded config executes only permitted code.

  Permitted modules become importable. No module is imported.

  Args:
    config: Settings that another person may have written.
    folder: Run folder, or crash folder, of the settings. Modules in this folder
      are never permitted.
    allowed: Folders with code that the user allows.
    code: Digests of the code that started the run, by file name.

  Raises:
    ConfigError: If a module or wrapper is not permitted.
  """
  places = [os.path.abspath(os.path.expanduser(each)) for each in allowed]
  for place in places:
    if not os.path.isdir(place):
      raise config_lib.ConfigError(f"--code {place}: there is no such folder.")
  sys.path += [place for place in places if place not in sys.path]
  modules = named_modules.names(config)
  for module in modules:
    if named_modules.files(module, sys.path) is None:
      sys.path += filter(None, [user_modules.folder(module, code or {})])
  for module in modules:
    _check_module(module, folder, places)
  for wrapper in config.env.wrappers:
    _check_wrapper(wrapper, folder, places)


def _check_module(module: str, folder: pathlib.Path, allowed: Sequence[str]) -> None:
  """Raises ConfigError unless the files of a module are permitted."""
  executed, exists = named_modules.executed(module, sys.path)
  if not (executed or exists or provenance.exists(module.partition(".")[0])):
    # Python does not look there, but the error can name the file.
    executed, _ = named_modules.executed(module, [os.getcwd()])
  files = [*executed.values()]
  outside = [file for file in files if not named_modules.is_installed(file)]
  if any(named_modules.is_within(file, [folder]) for file in outside):
    reason, place = "is in this folder. Move it to another folder DIR", "DIR"
  elif all(named_modules.is_within(file, allowed) for file in outside):
    return
  else:
    records = user_modules.find(module, files)
    if any(entry.unchanged for entry in records):
      return
    has_changed = "has changed since a run of yours used it"
    reason = has_changed if records else "does not belong to an installed package"
    module = next(name for name, file in executed.items() if file == outside[-1])
    place = shlex.quote(str(named_modules.parent_folder(module, outside[-1])))
  raise config_lib.ConfigError(
    f"{folder} names the module '{module}', which would execute {outside[-1]}. This file "
    f"{reason}. If you trust its code, add --code {place}"
  )


def _check_wrapper(wrapper: dict[str, Any], folder: pathlib.Path, allowed: Sequence[str]) -> None:
  """Raises ConfigError if a wrapper may have side effects."""
  (name,) = wrapper
  name = make.OWN_WRAPPERS.get(name, name)
  module, _, attribute = (name if ":" in name else f"gymnasium.wrappers:{name}").partition(":")
  is_own = module == _OWN_WRAPPERS or name in make.OWN_WRAPPERS.values()
  if is_own or module == "gymnasium.wrappers" and attribute in _HARMLESS:
    return
  files = named_modules.files(module, sys.path)
  file = files[-1] if files else pathlib.Path("DIR", module)
  if not (named_modules.is_within(file, allowed) or user_modules.contains_wrapper(wrapper)):
    raise config_lib.ConfigError(
      f"{folder} names the wrapper {name} in {file}. It may have side effects, such as files in "
      f"any folder. If you trust it, add --code {shlex.quote(str(file.parent))}"
    )
