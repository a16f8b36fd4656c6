import os
import socket
import subprocess

import pytest

from agents import config as config_lib
from agents.training.run_folder import checkpoint, run_folder

CONFIG = config_lib.Config().override({"env.id": "Some-v0", "env.kwargs.a": 1})


def test_opened_folder_has_the_config_of_the_created_folder(tmp_path):
  created = run_folder.create(str(tmp_path), "some", CONFIG)
  opened = run_folder.RunFolder(created.path)
  assert opened.config == CONFIG
  assert opened.changes() == []


def test_every_run_gets_a_new_folder(tmp_path):
  paths = {run_folder.create(str(tmp_path), "some", CONFIG).path for _ in range(5)}
  assert len(paths) == 5
  assert {path.name.partition("-")[2] for path in paths} == {"some"}


def test_extending_changes_only_the_budget(tmp_path):
  folder = run_folder.create(str(tmp_path), "some", CONFIG)
  budget = {"steps": 5_000_000, "extended_from": [CONFIG.steps]}
  folder.extend(CONFIG.override({**budget, "device": "gpu"}))
  assert run_folder.RunFolder(folder.path).config == CONFIG.override(budget)


def test_locking_deletes_temporary_files_of_dead_processes(tmp_path):
  folder = run_folder.create(str(tmp_path), "some", CONFIG)
  ended = subprocess.Popen(["true"])
  ended.wait()
  name = f"x.{socket.gethostname()}-{ended.pid}.tmp"
  (folder.checkpoints / name).touch()
  (folder.path / name).touch()
  (folder.path / "crashes" / name).mkdir(parents=True)
  (folder.path / "crashes" / name / "about.txt").touch()
  with folder.locked():
    assert not list(folder.path.rglob("*.tmp"))


def test_relative_path_of_a_run_stays_valid_in_another_current_folder(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  created = run_folder.create("logs", "some", CONFIG)
  opened = run_folder.find("logs")
  (tmp_path / "elsewhere").mkdir()
  monkeypatch.chdir("elsewhere")
  for folder in (created, opened):
    folder.extend(CONFIG.override({"steps": 7}))
    assert run_folder.RunFolder(folder.path).config.steps == 7
  assert created.path == opened.path == tmp_path / "logs" / created.path.name


@pytest.mark.fast_variants(3)
@pytest.mark.parametrize("name", ["versions.yaml", "code.yaml"])
@pytest.mark.parametrize("text", [None, "", "- [", "\xff", "[" * 100_000])
def test_unreadable_provenance_is_reported_as_a_change(text, name, tmp_path):
  folder = run_folder.create(str(tmp_path), "some", CONFIG)
  path = folder.path / name
  path.unlink() if text is None else path.write_bytes(text.encode("latin-1"))
  assert folder.changes() == [f"{name} can't be read"]


def test_changed_package_version_is_reported(tmp_path):
  folder = run_folder.create(str(tmp_path), "some", CONFIG)
  path = folder.path / "versions.yaml"
  lines = [
    "numpy: 0.1" if line.startswith("numpy:") else line for line in path.read_text().splitlines()
  ]
  path.write_text("\n".join(lines))
  (change,) = folder.changes()
  assert change.startswith("numpy 0.1 -> ")


def test_changed_and_missing_code_files_are_reported(tmp_path, monkeypatch):
  module = tmp_path / "some_env.py"
  module.write_text("# One.")
  monkeypatch.syspath_prepend(tmp_path)
  folder = run_folder.create(
    str(tmp_path / "logdir"), "some", CONFIG.override({"env.id": "some_env:Some-v0"})
  )
  assert folder.changes() == []
  module.write_text("# Another.")
  (change,) = folder.changes()
  assert change.startswith("some_env.py ")
  path = folder.path / "code.yaml"
  path.write_text(path.read_text().replace("agents/build.py: ", "agents/gone.py: "))
  assert [text.split(" ")[0] for text in folder.changes()] == [
    "agents/gone.py",
    "some_env.py",
    "agents/build.py",
  ]


@pytest.mark.parametrize("name", ["metrics.jsonl", "cut", "checkpoints/x.npz"])
def test_link_that_leads_out_of_a_run_folder_is_an_error(name, tmp_path):
  run = run_folder.create(str(tmp_path / "runs"), "a", config_lib.Config())
  (tmp_path / "own").mkdir()
  link = run.path / name
  link.symlink_to(tmp_path / "own")
  with pytest.raises(config_lib.ConfigError) as caught:
    run_folder.find(run.path)
  assert str(caught.value).startswith(f"{link} is a link to {tmp_path}/own, which is outside")
  link.unlink()
  link.symlink_to(run.path / "config.yaml")
  (tmp_path / "link").symlink_to(run.path)
  assert run_folder.find(tmp_path / "link").config == run.config


def test_folder_without_a_config_raises_an_error(tmp_path):
  with pytest.raises(config_lib.ConfigError, match="is not a run folder"):
    run_folder.RunFolder(tmp_path)


def test_config_that_contains_code_raises_an_error(tmp_path):
  folder = run_folder.create(str(tmp_path), "some", CONFIG)
  (folder.path / "config.yaml").write_text("!!python/object/apply:os.system ['false']")
  with pytest.raises(config_lib.ConfigError, match="could not determine"):
    run_folder.RunFolder(folder.path)


def test_newest_run_of_a_folder_is_found(tmp_path):
  config = config_lib.Config()
  for name in ("20261120T190000-b", "20261121T000000-a", "20261119T235959-z"):
    made = run_folder.create(str(tmp_path / "made"), name, config)
    made.path.rename(tmp_path / name)
  (tmp_path / "made").rmdir()
  (tmp_path / "zzz").mkdir()  # Not a run.
  assert run_folder.find(tmp_path).path.name == "20261121T000000-a"
  assert run_folder.find(tmp_path / "20261120T190000-b").path.name == ("20261120T190000-b")
  with pytest.raises(config_lib.ConfigError, match="is not a run folder"):
    run_folder.find(tmp_path / "zzz")


def test_newest_run_of_the_same_second_is_found(tmp_path):
  for name in ("b", "a", "b"):
    newest = run_folder.create(str(tmp_path), name, config_lib.Config())
  assert run_folder.find(tmp_path).path == newest.path


def test_new_run_is_the_newest_one_although_the_clock_was_set_back(tmp_path):
  first = run_folder.create(str(tmp_path), "a", CONFIG)
  future = first.path.rename(tmp_path / f"29991231T235959{first.path.name[15:]}")
  os.utime(future / "config.yaml", (2**35, 2**35))
  for name in ("b", "a", "b"):
    newest = run_folder.create(str(tmp_path), name, CONFIG)
    assert run_folder.find(tmp_path).path == newest.path
  assert newest.path.name == "29991231T235959.4-b"


def test_run_with_another_name_is_not_the_newest_one(tmp_path):
  renamed = run_folder.create(str(tmp_path), "a", CONFIG).path.rename(tmp_path / "my-run")
  assert run_folder.find(tmp_path).path == renamed
  newest = run_folder.create(str(tmp_path), "a", CONFIG)
  assert run_folder.find(tmp_path).path == newest.path


def test_renamed_run_keeps_the_time_of_its_config(tmp_path):
  old = run_folder.create(str(tmp_path), "a", CONFIG)
  old.path.rename(tmp_path / "20261120T190000-a")
  renamed = run_folder.create(str(tmp_path), "a", CONFIG).path.rename(tmp_path / "my-newest")
  assert run_folder.find(tmp_path).path == renamed


def test_path_that_is_not_utf_8_is_refused(tmp_path):
  with pytest.raises(config_lib.ConfigError, match="--logdir .*valid UTF-8"):
    run_folder.create(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"), "a", CONFIG)
  assert not list(tmp_path.iterdir())


def test_runs_with_checkpoints_precede_newer_runs_without_checkpoints(tmp_path):
  first = run_folder.create(str(tmp_path), "some", CONFIG)
  failed = run_folder.create(str(tmp_path), "some", CONFIG)
  assert run_folder.find(tmp_path).path == failed.path
  (first.checkpoints / "checkpoint-000000000000.npz").touch()
  assert run_folder.find(tmp_path).path == first.path


def test_runs_with_the_same_config_and_a_checkpoint_are_found(tmp_path):
  other = run_folder.create(str(tmp_path), "other", CONFIG.override({"seed": 1}))
  folder = run_folder.create(str(tmp_path), "some", CONFIG)
  assert not run_folder.with_config(tmp_path, CONFIG)  # No checkpoint yet.
  broken = run_folder.create(str(tmp_path), "of_another_version", CONFIG)
  (broken.path / "config.yaml").write_text("nonsense: 1")
  for path in other.checkpoints, folder.checkpoints, broken.checkpoints:
    (path / "checkpoint-000000000100.npz").touch()
  (found,) = run_folder.with_config(tmp_path, CONFIG)
  assert found.path == folder.path
  assert not run_folder.with_config(tmp_path / "nowhere", CONFIG)


def test_runs_are_complete_after_the_evaluation_of_their_last_step(tmp_path):
  def run(config, step, evaluated=0):
    folder = run_folder.create(str(tmp_path), "some", config)
    for saved in (0, step):
      checkpoint.save(
        folder.checkpoints, saved, {}, {"step": saved, "done": {"eval_every": evaluated}}
      )
    return folder

  def incomplete():
    return [
      folder.path for folder in run_folder.with_config(tmp_path, CONFIG) if not folder.complete
    ]

  run(CONFIG, CONFIG.steps, evaluated=CONFIG.steps)
  run(CONFIG.override({"seed": 1}), 100)
  assert incomplete() == []
  last = run(CONFIG, CONFIG.steps, evaluated=CONFIG.steps - 10)
  assert incomplete() == [last.path]
  checkpoint.newest(last.checkpoints).write_bytes(b"")
  assert incomplete() == [last.path]
  checkpoint.newest(last.checkpoints).unlink()
  checkpoint.newest(last.checkpoints).write_bytes(b"")
  # A run without a readable checkpoint cannot be resumed.
  assert incomplete() == []
  runs = [run(CONFIG, CONFIG.steps - 1), run(CONFIG, 100)]
  assert incomplete() == [folder.path for folder in runs]
  run_folder.create(str(tmp_path), "some", CONFIG)  # Without a checkpoint.
  (run(CONFIG, 200).path / "config.yaml").write_text("nonsense: 1")
  assert incomplete() == [folder.path for folder in runs]
