"""Commands in any folder find the modules that a new run has used."""

import json
import sys

import pytest

from agents import config as config_lib
from agents.training.run_folder import provenance, run_folder, user_modules

_CONFIG = config_lib.Config().override(
  {
    "env.id": "user_robot:Robot",
    "env.wrappers": [{"user_wrappers.pixels:Gray": {}}, {"TimeAwareObservation": {}}],
    "algorithm.type": "user_robot:Other",
  }
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
  assert user_modules.names(_CONFIG) == ["user_robot", "user_wrappers"]
  assert not user_modules.names(config_lib.Config())


def test_folder_of_a_recorded_module_becomes_importable(make_folder, monkeypatch):
  folder = make_folder("one")
  code = _record(folder, monkeypatch)
  assert not provenance.exists("user_robot")
  user_modules.make_importable(_CONFIG, code)
  assert sys.path[-1] == str(folder)
  assert provenance.exists("user_robot")


def test_packages_are_recorded_with_their_parent_folder(make_folder, tmp_path, monkeypatch):
  folder = make_folder("one")
  (folder / "user_robot.py").unlink()
  (folder / "user_robot" / "legs").mkdir(parents=True)
  (folder / "user_robot" / "__init__.py").write_text("")
  (folder / "user_robot" / "legs" / "__init__.py").write_text("")
  user_modules.make_importable(_CONFIG, _record(folder, monkeypatch))
  assert sys.path[-1] == str(folder)


def test_folder_with_the_code_of_the_run_is_preferred(make_folder, monkeypatch):
  one, two = make_folder("one"), make_folder("two", "size = 2")
  first, second = _record(one, monkeypatch), _record(two, monkeypatch)
  for folder, code in (one, first), (two, second), (two, {}):
    with monkeypatch.context() as patch:
      patch.setattr(sys, "path", [*sys.path])
      user_modules.make_importable(_CONFIG, code)
      assert sys.path[-1] == str(folder)


def test_modules_that_python_finds_stay_where_they_are(make_folder, monkeypatch):
  one, two = make_folder("one"), make_folder("two", "size = 2")
  code = _record(one, monkeypatch)
  monkeypatch.syspath_prepend(two)
  before = [*sys.path]
  user_modules.make_importable(_CONFIG, code)
  assert sys.path == before


def test_missing_damaged_and_unwritable_records_change_nothing(make_folder, tmp_path, monkeypatch):
  folder = make_folder("one")
  before = [*sys.path]
  user_modules.make_importable(_CONFIG, {})
  code = _record(folder, monkeypatch)
  (record,) = tmp_path.glob("state/batched-ppo/modules/*")
  assert json.loads(record.read_text())["folder"] == str(folder)
  record.write_text("{")
  user_modules.make_importable(_CONFIG, code)
  (tmp_path / "file").write_text("")
  monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
  _record(folder, monkeypatch)
  user_modules.make_importable(_CONFIG, code)
  assert sys.path == before


def test_new_runs_record_and_opened_runs_find_modules(make_folder, tmp_path, monkeypatch):
  folder = make_folder("one")
  with monkeypatch.context() as patch:
    patch.syspath_prepend(folder)
    created = run_folder.create(str(tmp_path / "logdir"), "robot", _CONFIG)
  run_folder.find(created.path)
  assert sys.path[-1] == str(folder)
