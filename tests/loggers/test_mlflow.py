"""Local files that the logger of MLflow writes."""

import pytest

from agents import config as config_lib

pytestmark = pytest.mark.slow


def test_local_files_contain_settings_reports_and_films(tmp_path, monkeypatch):
  mlflow = pytest.importorskip("mlflow")
  pytest.importorskip("alembic")
  from agents.loggers import mlflow as mlflow_logger

  monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
  monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
  monkeypatch.chdir(tmp_path)
  folder, film = tmp_path / "it's-walk", tmp_path / "film.mp4"
  film.write_bytes(b"content of the film")
  config = config_lib.Config().override({"seed": 7})
  logger = mlflow_logger.MLflowLogger(folder, config, None)
  logger.write({"phase": "train", "step": 5, "return_mean": None}, {"policy/kl": 0.5})
  logger.close()
  resumed = mlflow_logger.MLflowLogger(folder, config.override({"steps": 3}), 4)
  resumed.write(
    {"phase": "train", "step": 5, "warnings": ["The KL divergence is high."]}, {"policy/kl": 0.5}
  )
  resumed.write({"phase": "eval", "step": 6, "return_mean": 2.5}, {"score/return": 2.5})
  resumed.film(film, 6)
  resumed.close()

  (run,) = mlflow.search_runs(output_format="list")  # Resuming continues the run.
  assert run.info.run_name == "it's-walk" and run.info.status == "FINISHED"
  assert run.data.params["seed"] == "7" and run.data.params["steps"] == "1000000"
  assert run.data.tags["warnings/5"] == "The KL divergence is high."
  client = mlflow.MlflowClient()

  def history(name):
    return [(each.step, each.value) for each in client.get_metric_history(run.info.run_id, name)]

  assert history("train/policy/kl") == [(5, 0.5), (5, 0.5)]
  assert history("eval/return_mean") == history("eval/score/return") == [(6, 2.5)]
  assert run.data.metrics.keys() == {"train/policy/kl", "eval/return_mean", "eval/score/return"}
  path = client.download_artifacts(run.info.run_id, "videos/film.mp4", str(tmp_path))
  with open(path, "rb") as file:
    assert file.read() == b"content of the film"
