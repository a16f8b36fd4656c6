"""Entries are found by name or path, and are small."""

import dataclasses

import pytest

from agents import config as config_lib
from agents.training.run_folder import checkpoint, run_folder
from agents.zoo import add, entries, fingerprint, score


def test_zoo_is_smaller_than_its_limit():
  assert entries.names()
  assert entries.num_bytes(entries.root()) <= entries.MAX_ZOO_BYTES


@pytest.mark.parametrize("name", entries.names())
def test_entry_belongs_to_its_named_config_and_its_checkpoint(name):
  path = entries.find(name)
  entry, run = entries.read(path), run_folder.find(path)
  assert entry.config == name
  assert add.differences(run.config, name) == []
  assert (entry.task, entry.seed) == (run.config.env.id, run.config.seed)
  (saved,) = checkpoint.paths(run.checkpoints)
  assert checkpoint.step_of(saved) == entry.steps
  assert fingerprint.digest(fingerprint.variables(saved)) == entry.digest
  if entry.seed_scores:
    assert entry.interval == pytest.approx(score.interval(entry.seed_scores))
    assert entry.interval[0] <= entry.score <= entry.interval[1]
  assert {"policy.npz", "film.mp4"} <= {file.name for file in path.iterdir()}
  assert entries.num_bytes(path) <= entries.MAX_ENTRY_BYTES


def test_unknown_name_suggests_a_similar_one():
  with pytest.raises(config_lib.ConfigError, match="Did you mean 'cartpole'.* ./cartpol."):
    entries.find("cartpol")


def test_path_of_an_entry_is_accepted_and_that_of_a_run_is_not(tmp_path):
  with pytest.raises(config_lib.ConfigError, match="it has no entry.yaml"):
    entries.find(str(tmp_path))
  (tmp_path / "entry.yaml").touch()
  assert entries.find(str(tmp_path)) == tmp_path


def test_name_before_a_step_becomes_a_path_and_other_texts_stay(tmp_path):
  path = entries.find("cartpole")
  assert entries.expand("cartpole") == str(path)
  assert entries.expand("cartpole@100352") == f"{path}@100352"
  for text in ("~/logdir", "./cartpole", f"{tmp_path}@best"):
    assert entries.expand(text) == text


def test_written_entry_is_read_back(tmp_path):
  entry = entries.read(entries.find("cartpole"))
  for changed in (entry, dataclasses.replace(entry, seed_scores=(), interval=None)):
    entries.write(tmp_path, changed)
    assert entries.read(tmp_path) == changed


def test_invalid_entry_names_its_file_and_field(tmp_path):
  (tmp_path / "entry.yaml").write_text("config: cartpole\nscores: 1\n")
  with pytest.raises(config_lib.ConfigError, match="entry.yaml: scores: .*Did you mean 'score'"):
    entries.read(tmp_path)


def test_large_entry_is_rejected_with_its_largest_file(tmp_path):
  (tmp_path / "checkpoint.npz").write_bytes(bytes(entries.MAX_ENTRY_BYTES))
  entries.check_size(tmp_path)
  (tmp_path / "config.yaml").write_text("a")
  with pytest.raises(config_lib.ConfigError, match="Its largest file is checkpoint.npz"):
    entries.check_size(tmp_path)
