"""Files that the logger of Weights & Biases writes without an account."""

import json
import subprocess
import sys

import pytest

from agents import config as config_lib

pytestmark = pytest.mark.slow


def test_offline_files_contain_settings_reports_and_films(tmp_path, monkeypatch):
  library = pytest.importorskip("wandb")
  from agents.loggers import wandb

  monkeypatch.setenv("WANDB_MODE", "offline")
  monkeypatch.setenv("WANDB_DIR", str(tmp_path))
  folder, film = tmp_path / "20260101T000000-walk", tmp_path / "film.mp4"
  film.write_bytes(b"content of the film")
  logger = wandb.WandbLogger(folder, config_lib.Config().override({"seed": 7}), 4)
  logger.write({"phase": "train", "step": 5, "return_mean": None}, {"policy/kl": 0.5})
  logger.write({"phase": "eval", "step": 6, "return_mean": 2.5}, {"score/return": 2.5})
  logger.film(film, 6)
  logger.close()
  library.teardown()  # Ends the process that the library starts.

  (path,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
  done = subprocess.run(
    [sys.executable, "-m", "wandb", "leet", "inspect", "--json", str(path)],
    capture_output=True,
    text=True,
    check=True,
  )
  records = [json.loads(line) for line in done.stdout.splitlines()]
  (run,) = [record["run"] for record in records if record["type"] == "run"]
  assert (run["run_group"], run["display_name"]) == (folder.name, folder.name)
  assert run["config"]["update"]["seed"] == 7 and run["config"]["update"]["resumed_step"] == 4
  first, second, third = [
    {name: value for name, value in record["history"]["item"].items() if name[0] != "_"}
    for record in records
    if record["type"] == "history"
  ]
  assert first == {"step": 5, "train/return_mean": None, "train/policy/kl": 0.5}
  assert second == {"step": 6, "eval/return_mean": 2.5, "eval/score/return": 2.5}
  assert third["step"] == 6 and third["films/training._type"] == "video-file"
  (copy,) = tmp_path.glob("wandb/offline-run-*/files/media/videos/films/*.mp4")
  assert copy.read_bytes() == b"content of the film"
