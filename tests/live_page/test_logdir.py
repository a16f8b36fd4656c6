import pytest

from agents import config as config_lib
from agents.live_page import logdir, run_reader
from tests.reports import folders


def test_runs_at_any_depth_are_found_and_new_runs_are_added(tmp_path, monkeypatch):
  monkeypatch.setattr(logdir, "_MIN_PAUSE", 0.0)
  monkeypatch.setattr(logdir, "_PAUSE_RATIO", 0.0)
  runs = logdir.Logdir(tmp_path)
  assert runs.runs() == {}
  folder = folders.make(tmp_path / "a" / "b" / "2-cheetah", [1.0])
  folders.make(tmp_path / "3-cheetah", [1.0])
  folders.make(folder / "crashes" / "1", [1.0])
  folders.make(tmp_path / ".hidden" / "4-cheetah", [1.0])
  (tmp_path / "link").symlink_to(folder)
  assert [*runs.runs()] == ["a/b/2-cheetah", "3-cheetah"]
  reader = runs.find("a/b/2-cheetah")
  assert reader.path == folder.resolve() and len(reader.rows) == 1
  assert runs.find("../3-cheetah") is None
  assert runs.runs()["a/b/2-cheetah"] is reader


def test_run_folder_is_its_own_only_run(tmp_path):
  folder = folders.make(tmp_path / "1-cheetah", [1.0])
  (reader,) = logdir.Logdir(folder).runs().values()
  assert reader.summary()["name"] == "1-cheetah"


def test_missing_folder_is_an_error(tmp_path):
  with pytest.raises(config_lib.ConfigError, match="no such folder"):
    logdir.Logdir(tmp_path / "missing")


def test_unchanged_files_are_not_opened_again(tmp_path, monkeypatch):
  paths = [folders.make(tmp_path / f"{number}-cheetah", [1.0, 2.0]) for number in range(5)]
  runs = logdir.Logdir(tmp_path)
  assert sum(len(run.rows) for run in runs.runs().values()) == 10
  opened = []
  open_file = run_reader.open_file
  monkeypatch.setattr(run_reader, "open_file", lambda path: opened.append(path) or open_file(path))
  with open(paths[3] / "metrics.jsonl", "a") as file:
    file.write((paths[0] / "metrics.jsonl").read_text())
  assert sum(len(run.rows) for run in runs.runs().values()) == 12
  assert opened == [paths[3] / "metrics.jsonl"]
