"""The user's own modules, such as `robot` of `env.id=robot:Robot`.

Python looks for them on its path, in the current folder, and in the folder of
the config's file. A later command, such as `visualize`, may run in another
folder. Therefore every new run records where its modules are. The record lies
outside of the run folder, because the files of another person's run must not
select the code to import.
"""

import contextlib
import hashlib
import json
import os
import pathlib
import sys

from agents import config as config_lib
from agents.training.run_folder import atomic_write, provenance


def names(config: config_lib.Config) -> list[str]:
  """Returns the top-level modules that the settings name.

  Args:
    config: Settings of a run.
  """
  values = [
    config.env.id,
    config.env.backend,
    config.algorithm.type,
    config.network.hidden,
    *(name for wrapper in config.env.wrappers for name in wrapper),
  ]
  return list(
    dict.fromkeys(value.partition(":")[0].partition(".")[0] for value in values if ":" in value)
  )


def record(config: config_lib.Config) -> None:
  """Records the folders of the modules that the settings name.

  Installed modules are not recorded, because Python finds them from any folder.

  Args:
    config: Settings of a new run.
  """
  for name in names(config):
    files = provenance.module_files(name)
    if not files:
      continue
    relative, path = next(iter(files.items()))
    text = json.dumps(
      {
        "folder": str(path.resolve().parents[relative.count("/")]),
        "files": provenance.digests(files),
      },
      indent=2,
    )
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    # Without a home folder, only commands in other folders miss the modules.
    # Their error message names the places where Python has looked.
    with contextlib.suppress(OSError, atomic_write.WriteError):
      _records().mkdir(parents=True, exist_ok=True)
      with atomic_write.open_file(_records() / f"{name}-{digest}.json") as file:
        file.write(text.encode())


def make_importable(config: config_lib.Config, code: dict[str, str]) -> None:
  """Adds the recorded folders of modules that Python does not find to its path.

  If several folders contain a module of this name, the folder of the files that
  started the run is preferred, then the folder of the newest run.

  Args:
    config: Settings of an existing run.
    code: Digests of the code that started the run, by file name.
  """
  for name in names(config):
    if provenance.exists(name):
      continue
    folders = []
    for path in _records().glob(f"{name}-*.json"):
      with contextlib.suppress(OSError, ValueError, KeyError):
        entry = json.loads(path.read_text())
        if os.path.isdir(entry["folder"]):
          folders.append(
            (entry["files"].items() <= code.items(), path.stat().st_mtime_ns, entry["folder"])
          )
    if folders:
      sys.path.append(max(folders)[-1])


def _records() -> pathlib.Path:
  state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
  return pathlib.Path(state).expanduser() / "batched-ppo" / "modules"
