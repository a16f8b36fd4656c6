"""Modules in guarded folders cannot be imported by any name."""

import importlib
import sys
from concurrent import futures

import pytest

from agents.training.run_folder import import_guard


@pytest.fixture
def folder(tmp_path, monkeypatch):
  """A guarded folder with modules, in a folder of the module path."""
  folder = tmp_path / "guarded_run"
  for path in (folder, folder / "package"):
    path.mkdir()
    (path / "guarded_module.py").write_text("")
  (tmp_path / "unguarded_module.py").write_text("")
  (tmp_path / "guarded_link.py").symlink_to(folder / "guarded_module.py")
  (folder / "package" / "__init__.py").write_text("")
  monkeypatch.syspath_prepend(tmp_path)
  for path in (folder, folder / "package"):
    monkeypatch.syspath_prepend(path)
  import_guard.add(folder)
  return folder


@pytest.mark.parametrize(
  "name",
  [
    "guarded_run.guarded_module",
    "guarded_run.package",
    "guarded_run.package.guarded_module",
    "guarded_run",
    "guarded_link",
  ],
)
def test_import_from_a_guarded_folder_raises_an_error(name, folder):
  with pytest.raises(ImportError, match="imported from a run folder"):
    importlib.import_module(name)


def test_guarded_folder_is_removed_from_the_module_path(folder):
  assert str(folder) not in sys.path
  for name in ("guarded_module", "package.guarded_module"):
    with pytest.raises(ModuleNotFoundError):
      importlib.import_module(name)


def test_modules_outside_of_guarded_folders_are_imported(folder):
  importlib.import_module("unguarded_module")
  importlib.reload(importlib.import_module("json.tool"))


def test_threads_add_folders_concurrently(tmp_path, monkeypatch):
  # Each thread of a sweep opens the run folder of its trial.
  folders = [tmp_path / f"run_{number}" for number in range(50)]
  interval = sys.getswitchinterval()
  sys.setswitchinterval(1e-6)
  try:
    with futures.ThreadPoolExecutor(4) as threads:
      list(threads.map(import_guard.add, folders))
  finally:
    sys.setswitchinterval(interval)
  monkeypatch.setattr(sys, "path", [*sys.path, *map(str, folders)])
  import_guard.add(tmp_path / "another")
  assert not {str(folder) for folder in folders} & set(sys.path)
