"""`serve_updates` for commits that do not contain that module.

`benchmarks.commits` runs this file with the modules of such a commit, so it
imports nothing else from `benchmarks`. It works for 9d4bf19 and the commits
around it, whose worker pool and failure budget have different names.
"""

import argparse
import importlib
import json
import os
import sys
import time
import zlib

import numpy as np

# Module and class of the worker pool, and of the failure budget.
_NAMES = (
    (("agents.environments.workers.pool", "WorkerPool"),
     ("agents.environments.data.failure_budget", "FailureBudget")),
    (("agents.environments.workers", "Workers"),
     ("agents.environments.incidents", "Incidents")))


def find_classes():
  """Return the classes of the worker pool and of the failure budget."""
  for names in _NAMES:
    try:
      return [getattr(importlib.import_module(module), name)
              for module, name in names]
    except ImportError:
      pass
  raise SystemExit("This commit has neither benchmarks.common.serve_updates "
                   "nor a worker pool of a known name.")


def main():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("config")
  parser.add_argument("--preset")
  args = parser.parse_args()
  results = os.fdopen(os.dup(1), "w")
  os.dup2(2, 1)
  worker_pool, failure_budget = find_classes()
  from agents.configs import presets

  from agents import build
  from agents import configs
  _, config = configs.load(args.config)
  if args.preset:
    config = presets.apply(args.preset, config)
  build.setup(config)
  with worker_pool(config.workers(len(os.sched_getaffinity(0))),
                   incidents=failure_budget(config.most_incidents),
                   timeout=config.env_timeout) as workers:
    trainer = build.trainer(config, workers)
    trainer.start()
    for _ in sys.stdin:
      start = time.perf_counter()
      epoch = trainer.epoch(0.0)
      total = time.perf_counter() - start
      checksum = 0
      for variable in trainer.algorithm.variables().values():
        checksum = zlib.crc32(np.asarray(variable).tobytes(), checksum)
      print(json.dumps({
          "seconds": {**epoch.seconds, "total": total},
          "metrics": epoch.metrics, "checksum": checksum}),
            file=results, flush=True)
    trainer.close()


if __name__ == "__main__":
  main()
