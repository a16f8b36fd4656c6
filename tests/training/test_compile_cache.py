import os
import pathlib

import pytest

from agents.training import compile_cache
from tests.support import command


@pytest.fixture
def shared(tmp_path, monkeypatch):
  """Returns the folder of this test's cache."""
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
  monkeypatch.setenv("TF_XLA_FLAGS", "--tf_xla_clustering_debug")
  with compile_cache.compile_cache():
    pass
  (folder,) = (tmp_path / "batched-ppo").iterdir()
  return folder


def _own_folder():
  flags = os.environ["TF_XLA_FLAGS"]
  first, _, folder = flags.partition(" --tf_xla_persistent_cache_directory=")
  assert first == "--tf_xla_clustering_debug"
  return pathlib.Path(folder)


def test_other_processes_receive_programs_when_the_context_ends(shared):
  with compile_cache.compile_cache():
    (_own_folder() / "program.pb").write_text("code")
    assert not list(shared.iterdir())
  with compile_cache.compile_cache():
    assert (_own_folder() / "program.pb").read_text() == "code"
  assert os.environ["TF_XLA_FLAGS"] == "--tf_xla_clustering_debug"
  assert [path.stem for path in shared.iterdir()] == ["program.pb"]


def test_programs_of_a_failed_run_are_kept_and_its_folder_is_deleted(shared):
  with pytest.raises(RuntimeError), compile_cache.compile_cache():
    folder = _own_folder()
    (folder / "program.pb").touch()
    raise RuntimeError
  assert [path.stem for path in shared.iterdir()] == ["program.pb"]
  assert not folder.exists()


def test_damaged_programs_are_deleted_and_unfinished_ones_are_ignored(shared):
  with compile_cache.compile_cache():
    (_own_folder() / "program.pb").write_text("code")
  (damaged,) = shared.iterdir()
  damaged.write_text("cod")
  (shared / "program.pb.host-1.tmp").touch()  # Another process writes this file.
  with compile_cache.compile_cache():
    assert not list(_own_folder().iterdir())
  assert [path.name for path in shared.iterdir()] == ["program.pb.host-1.tmp"]


def test_oldest_programs_are_deleted(shared, monkeypatch):
  monkeypatch.setattr(compile_cache, "_MAX_FILES", 2)
  for time, name in enumerate("bacd"):
    with compile_cache.compile_cache():
      (_own_folder() / name).touch()
    for path in shared.glob(f"{name}.*"):
      os.utime(path, (time, time))
  assert {path.stem for path in shared.iterdir()} == {"c", "d"}


@pytest.mark.parametrize("variable", ["XLA_FLAGS", "TF_NUM_INTRAOP_THREADS"])
def test_programs_for_other_flags_are_separate(variable, shared, monkeypatch):
  monkeypatch.setenv(variable, "1")
  with compile_cache.compile_cache():
    pass
  assert len(list(shared.parent.iterdir())) == 2


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="Needs Linux.")
def test_programs_for_another_number_of_cores_are_separate(shared):
  cores = os.sched_getaffinity(0)
  if len(cores) == 1:
    pytest.skip("Needs two cores.")
  os.sched_setaffinity(0, {min(cores)})
  try:
    with compile_cache.compile_cache():
      pass
  finally:
    os.sched_setaffinity(0, cores)
  assert len(list(shared.parent.iterdir())) == 2


def test_cache_is_off_without_a_writable_folder_or_with_a_cache_of_the_user(tmp_path, monkeypatch):
  (tmp_path / "file").touch()
  for folder, flags in ("file", ""), ("cache", "--tf_xla_persistent_cache_directory=mine"):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / folder))
    monkeypatch.setenv("TF_XLA_FLAGS", flags)
    with compile_cache.compile_cache():
      assert os.environ["TF_XLA_FLAGS"] == flags


@pytest.mark.slow
def test_run_with_a_loaded_program_equals_a_run_that_compiles(tmp_path):
  folders = []
  for name in "compiled", "loaded":
    done = command.start(
      "train.py",
      *command.SMALL,
      "--steps",
      400,
      "--logdir",
      tmp_path / name,
      cwd=tmp_path,
      variables={"XDG_CACHE_HOME": str(tmp_path / "cache")},
    )
    output, _ = done.communicate(timeout=200)
    assert done.returncode == 0, output
    folders.append(command.run_folder(tmp_path / name))
    programs = {path: path.stat().st_mtime_ns for path in tmp_path.glob("cache/batched-ppo/*/*")}
    if name == "compiled":
      first = programs
  assert len(programs) == 1 and programs == first  # The second run compiled nothing.
  command.assert_same_checkpoints(*folders)
  assert command.rows(folders[0]) == command.rows(folders[1])
