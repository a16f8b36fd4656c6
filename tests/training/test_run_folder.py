from __future__ import annotations

import pytest

from agents import config as config_lib
from agents.training import run_folder

CONFIG = config_lib.Config().override({"env.id": "Some-v0", "env.kwargs.a": 1})


def test_opens_what_was_created(tmp_path):
  created = run_folder.create(str(tmp_path), "some", CONFIG)
  opened = run_folder.RunFolder(created.path)
  assert opened.config == CONFIG
  assert opened.changed_versions() == []


def test_never_reuses_a_folder(tmp_path):
  paths = {run_folder.create(str(tmp_path), "some", CONFIG).path
           for _ in range(5)}
  assert len(paths) == 5


def test_config_is_replaced(tmp_path):
  folder = run_folder.create(str(tmp_path), "some", CONFIG)
  longer = CONFIG.override({"steps": 5})
  folder.write_config(longer)
  assert run_folder.RunFolder(folder.path).config == longer


def test_other_versions_are_told(tmp_path):
  folder = run_folder.create(str(tmp_path), "some", CONFIG)
  path = folder.path / "versions.yaml"
  lines = ["numpy: 0.1" if line.startswith("numpy:") else line
           for line in path.read_text().splitlines()]
  path.write_text("\n".join(lines))
  change, = folder.changed_versions()
  assert change.startswith("numpy 0.1 -> ")


def test_no_run_is_told(tmp_path):
  with pytest.raises(config_lib.ConfigError, match="is not a run folder"):
    run_folder.RunFolder(tmp_path)


def test_config_with_code_is_refused(tmp_path):
  folder = run_folder.create(str(tmp_path), "some", CONFIG)
  (folder.path / "config.yaml").write_text(
      "!!python/object/apply:os.system ['false']")
  with pytest.raises(config_lib.ConfigError, match="could not determine"):
    run_folder.RunFolder(folder.path)
