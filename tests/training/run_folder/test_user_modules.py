"""Commands in any folder find the modules that a new run has used."""

import json
import sys

import pytest

from agents import config as config_lib
from agents.training.run_folder import (
  import_guard,
  named_modules,
  provenance,
  run_folder,
  user_modules,
)

_CONFIG = config_lib.Config().override(
  {"env.id": "user_robot:Robot", "algorithm.type": "user_robot:Other"}
)


@pytest.fixture
def make_folder(tmp_path, monkeypatch):
  """Returns a function that creates a folder with the module `user_robot`."""
  monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
  monkeypatch.setattr(sys, "path", [*sys.path])

  def make(name, code="size = 1"):
    folder = tmp_path / name
    folder.mkdir()
    (folder / "user_robot.py").write_text(code)
    return folder

  return make


def _record(folder, monkeypatch):
  """Records the modules of a run that started with `folder` on the path."""
  with monkeypatch.context() as patch:
    patch.syspath_prepend(folder)
    user_modules.record(_CONFIG)
    return provenance.code(_CONFIG.env.id)


def test_modules_of_all_settings_are_named_once():
  config = _CONFIG.override(
    {"env.wrappers": [{"user_wrappers.pixels:Gray": {}}, {"TimeAwareObservation": {}}]}
  )
  assert named_modules.names(config) == ["user_robot", "user_wrappers.pixels", "gymnasium"]


def test_folder_of_a_recorded_module_becomes_importable(make_folder, tmp_path, monkeypatch):
  folder = make_folder("one")
  code = _record(folder, monkeypatch)
  assert not provenance.exists("user_robot")
  import_guard.check(_CONFIG, tmp_path / "run", code=code)
  assert sys.path[-1] == str(folder)
  assert provenance.exists("user_robot")


def test_packages_are_recorded_with_their_parent_folder(make_folder, tmp_path, monkeypatch):
  folder = make_folder("one")
  (folder / "user_robot.py").unlink()
  (folder / "user_robot" / "legs").mkdir(parents=True)
  for package in ("user_robot", "user_robot/legs"):
    (folder / package / "__init__.py").write_text("")
  config = _CONFIG.override({"env.id": "user_robot.legs:Robot"})
  with monkeypatch.context() as patch:
    patch.syspath_prepend(folder)
    user_modules.record(config)
  import_guard.check(config, tmp_path / "run")
  assert sys.path[-1] == str(folder)


def test_folder_with_the_code_of_the_run_is_preferred(make_folder, tmp_path, monkeypatch):
  one, two = make_folder("one"), make_folder("two", "size = 2")
  first, second = _record(one, monkeypatch), _record(two, monkeypatch)
  for folder, code in (one, first), (two, second), (two, {}):
    with monkeypatch.context() as patch:
      patch.setattr(sys, "path", [*sys.path])
      import_guard.check(_CONFIG, tmp_path / "run", code=code)
      assert sys.path[-1] == str(folder)


def test_another_module_of_the_same_name_on_the_path_is_refused(make_folder, tmp_path, monkeypatch):
  one, two = make_folder("one"), make_folder("two", "size = 2")
  code = _record(one, monkeypatch)
  monkeypatch.syspath_prepend(two)
  before = [*sys.path]
  with pytest.raises(config_lib.ConfigError, match=f"execute {two}/user_robot.py"):
    import_guard.check(_CONFIG, tmp_path / "run", code=code)
  assert sys.path == before


def test_missing_damaged_and_unwritable_records_change_nothing(make_folder, tmp_path, monkeypatch):
  folder = make_folder("one")
  before = [*sys.path]
  import_guard.check(_CONFIG, tmp_path / "run")
  code = _record(folder, monkeypatch)
  (record,) = tmp_path.glob("state/batched-ppo/modules/*")
  assert json.loads(record.read_text())["folder"] == str(folder)
  record.write_text("{")
  import_guard.check(_CONFIG, tmp_path / "run", code=code)
  (tmp_path / "file").write_text("")
  monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
  _record(folder, monkeypatch)
  import_guard.check(_CONFIG, tmp_path / "run", code=code)
  assert sys.path == before


def test_new_runs_record_and_opened_runs_find_modules(make_folder, tmp_path, monkeypatch):
  folder = make_folder("one")
  with monkeypatch.context() as patch:
    patch.syspath_prepend(folder)
    created = run_folder.create(str(tmp_path / "logdir"), "robot", _CONFIG)
  run_folder.find(created.path)
  assert sys.path[-1] == str(folder)
