"""Nothing is imported from a folder in quarantine, by whatever name."""

import importlib
import sys
from concurrent import futures

import pytest

from agents.training.run_folder import import_guard


@pytest.fixture
def folder(tmp_path, monkeypatch):
  """A folder with modules, below one that modules are imported from."""
  folder = tmp_path / "quarantined_run"
  for path in (folder, folder / "package"):
    path.mkdir()
    (path / "quarantined.py").write_text("")
  (tmp_path / "beside_quarantine.py").write_text("")
  (tmp_path / "quarantined_link.py").symlink_to(folder / "quarantined.py")
  (folder / "package" / "__init__.py").write_text("")
  monkeypatch.syspath_prepend(tmp_path)
  for path in (folder, folder / "package"):
    monkeypatch.syspath_prepend(path)
  import_guard.add(folder)
  return folder


@pytest.mark.parametrize("name", [
    "quarantined_run.quarantined", "quarantined_run.package",
    "quarantined_run.package.quarantined", "quarantined_run",
    "quarantined_link"])
def test_what_lies_in_it_is_refused(name, folder):
  with pytest.raises(ImportError, match="imported from a run folder"):
    importlib.import_module(name)


def test_names_of_its_own_are_looked_for_elsewhere(folder):
  assert str(folder) not in sys.path
  for name in ("quarantined", "package.quarantined"):
    with pytest.raises(ModuleNotFoundError):
      importlib.import_module(name)


def test_what_lies_beside_it_is_imported(folder):
  importlib.import_module("beside_quarantine")
  importlib.reload(importlib.import_module("json.tool"))


def test_threads_may_add_at_the_same_time(tmp_path, monkeypatch):
  """As those of a sweep do, each of which reads the run of its trial."""
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
