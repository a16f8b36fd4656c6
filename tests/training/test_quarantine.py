"""Nothing is imported from a folder in quarantine, by whatever name."""

import importlib
import sys

import pytest

from agents.training import quarantine


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
  quarantine.add(folder)
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
