"""Sends metrics and films to Weights & Biases.

    pip install -e '.[wandb]'
    export WANDB_MODE=offline  # Needs no account.
    python train.py --set logger=agents.loggers.wandb:WandbLogger ...

Environment variables of the library select mode, project and folder, such as
WANDB_MODE, WANDB_PROJECT and WANDB_DIR.
"""

import os
import pathlib
from typing import Any

import wandb

from agents import config as config_lib
from agents.loggers import base


class WandbLogger(base.Logger):
  """Writes one W&B run per process; the group is the name of the run folder.

  A process that resumes writes another W&B run of the same group, because
  W&B cannot continue an offline run. The step is the x-axis of all charts.

  Args:
    args: See `base.Logger`.
  """

  def __init__(self, *args: Any) -> None:
    super().__init__(*args)
    self._run = wandb.init(
      project=os.environ.get("WANDB_PROJECT", "batched-ppo"),
      name=self.folder.name,
      group=self.folder.name,
      config={**config_lib.flat(self.config), "resumed_step": self.resumed_step},
    )
    self._run.define_metric("*", step_metric="step")

  def write(self, row: dict[str, Any], scalars: dict[str, float]) -> None:
    """See `base.Logger.write`."""
    phase = row["phase"]
    values = {f"{phase}/{name}": value for name, value in {**row, **scalars}.items()}
    del values[f"{phase}/phase"], values[f"{phase}/step"]
    self._run.log({**values, "step": row["step"]})

  def film(self, path: pathlib.Path, step: int) -> None:
    """See `base.Logger.film`."""
    self._run.log({"films/training": wandb.Video(str(path), format="mp4"), "step": step})

  def close(self) -> None:
    """See `base.Logger.close`."""
    self._run.finish()
