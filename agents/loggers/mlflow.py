"""Sends metrics and films to MLflow.

    pip install -e '.[mlflow]'
    python train.py --set logger=agents.loggers.mlflow:MLflowLogger ...

Environment variables of the library select server and experiment, such as
MLFLOW_TRACKING_URI and MLFLOW_EXPERIMENT_NAME. By default, MLflow writes files
in the current folder.
"""

import pathlib
from typing import Any

import mlflow

from agents import config as config_lib
from agents.loggers import base


class MLflowLogger(base.Logger):
  """Writes one MLflow run per run folder.

  A process that resumes continues the MLflow run. Metrics that are repeated
  have two values at the same step.

  Args:
    args: See `base.Logger`.
  """

  def __init__(self, *args: Any) -> None:
    super().__init__(*args)
    earlier = self.resumed_step is not None and mlflow.search_runs(
      filter_string=f"tags.run_folder = {str(self.folder)!r}", output_format="list"
    )
    if earlier:
      mlflow.start_run(run_id=earlier[0].info.run_id)
    else:
      mlflow.start_run(run_name=self.folder.name, tags={"run_folder": str(self.folder)})
      mlflow.log_params(config_lib.flat(self.config))

  def write(self, row: dict[str, Any], scalars: dict[str, float]) -> None:
    """See `base.Logger.write`."""
    phase, step = row["phase"], row["step"]
    numbers = {
      f"{phase}/{name}": float(value)
      for name, value in {**row, **scalars}.items()
      if isinstance(value, (int, float)) and name != "step"
    }
    mlflow.log_metrics(numbers, step=step)
    if row.get("warnings"):
      mlflow.set_tag(f"warnings/{step}", "\n".join(row["warnings"]))

  def film(self, path: pathlib.Path, step: int) -> None:
    """See `base.Logger.film`."""
    mlflow.log_artifact(str(path), "videos")

  def close(self) -> None:
    """See `base.Logger.close`."""
    mlflow.end_run()
