"""Run folders of earlier versions resume without notes on removed settings."""

import shutil

import pytest

from agents import build
from agents import config as config_lib
from agents.training import loop as loop_lib
from agents.training.run_folder import checkpoint, run_folder


@pytest.mark.slow
def test_folder_with_disabled_double_buffering_resumes_without_notes(finished, tmp_path, capsys):
  path = shutil.copytree(finished[0], tmp_path / "copy")
  with open(path / "config.yaml", "a") as file:
    file.write("double_buffering: false\n")
  newest = checkpoint.newest(path / "checkpoints")
  arrays, metadata = checkpoint.load(newest)
  assert metadata["config"] == config_lib.flat(run_folder.RunFolder(path).config)
  metadata["config"]["double_buffering"] = False
  newest.unlink()
  checkpoint.save(newest.parent, metadata["step"], arrays, metadata)
  folder = run_folder.RunFolder(path)
  trainer = build.trainer(folder.config, None)
  loop = loop_lib.Loop(trainer, folder, lambda: False)
  loop.resume()
  trainer.close()
  assert loop.step == metadata["step"]
  printed = capsys.readouterr()
  assert not printed.out and not printed.err
