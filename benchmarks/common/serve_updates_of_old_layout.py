"""`serve_updates` for commits that do not contain that module.

`benchmarks.commits` copies the folder of this module into the files of such a
commit. The module works for commit 9d4bf19 and the commits around it, where the
worker pool and the failure budget have other names.
"""

import os
import sys

from benchmarks.common import measuring_process, serve_updates


def import_classes():
  """Returns the classes of worker pools and of failure budgets."""
  try:
    from agents.environments.data import failure_budget
    from agents.environments.workers import pool

    return pool.WorkerPool, failure_budget.FailureBudget
  except ImportError:
    from agents.environments import incidents, workers

    return workers.Workers, incidents.Incidents


def main(name: str, preset: str | None = None):
  """Serves updates, see `serve_updates.main`."""
  worker_pool, failure_budget = import_classes()
  from agents.configs import presets

  from agents import build, configs

  _, config = configs.load(name)
  if preset:
    config = presets.apply(preset, config)
  build.setup(config)
  with worker_pool(
    config.workers(len(os.sched_getaffinity(0))),
    incidents=failure_budget(config.most_incidents),
    timeout=config.env_timeout,
  ) as workers:
    trainer = build.trainer(config, workers)
    trainer.start()
    measuring_process.serve(lambda: serve_updates.update(trainer))
    trainer.close()


if __name__ == "__main__":
  main(*sys.argv[1:])
