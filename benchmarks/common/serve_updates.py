"""Trains a config, one update for each line of the standard input.

    python -m benchmarks.common.serve_updates cheetah paper

`benchmarks.commits` compares versions of the code, and starts this module in
the files of each version. Do not change the arguments and the answers, so that
versions stay comparable. An answer is a JSON object with `seconds` (durations
by part of the epoch; `total` is the whole epoch), `metrics`, and `checksum`
(CRC-32 of all variables).
"""

import sys
import time
import zlib
from typing import Any

import numpy as np

from benchmarks.common import measuring_process


def update(trainer: Any) -> dict[str, Any]:
  """Trains for one epoch and returns the answer for `benchmarks.commits`.

  Args:
    trainer: Trainer after `start`.
  """
  start = time.perf_counter()
  epoch = trainer.epoch(0.0)
  total = time.perf_counter() - start
  checksum = 0
  for variable in trainer.algorithm.variables().values():
    checksum = zlib.crc32(np.asarray(variable).tobytes(), checksum)
  return {
    "seconds": {**epoch.seconds, "total": total},
    "metrics": epoch.metrics,
    "checksum": checksum,
  }


def main(name: str, preset: str | None = None):
  """Serves updates on the standard input and output.

  Args:
    name: Name of a config.
    preset: Name of a preset, or None.
  """
  # Imported late, because `serve_updates_of_old_layout` imports this file in
  # commits that cannot import `training`.
  from benchmarks.common import training

  config = training.load_config(name, preset=preset)
  with training.open_workers(config) as workers, training.open_trainer(config, workers) as trainer:
    trainer.start()
    measuring_process.serve(lambda: update(trainer))


if __name__ == "__main__":
  main(*sys.argv[1:])
