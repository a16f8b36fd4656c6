"""Training on several machines: how they meet, and what the others do."""

from __future__ import annotations

import pathlib
import sys
from typing import Any
from typing import NamedTuple

from agents import config as config_lib
from agents import errors
from agents.distributed import cluster as cluster_lib
from agents.environments.workers import start_workers
from agents.training.faults import crash_recorder
from agents.training.faults import interrupts as interrupts_lib
from agents.training.monitoring import quiet_imports
from agents.training.run_folder import checkpoint
from agents.training.run_folder import provenance
from agents.training.run_folder import run_folder


class _Hello(NamedTuple):
  """What machines must have in common."""

  config: dict[str, Any]  # All settings; none: those of an old run.
  versions: dict[str, str]
  code: dict[str, str]


class Run(NamedTuple):
  """The run that the first machine has the folder of."""

  path: pathlib.Path
  name: str
  config: config_lib.Config


def check(config: config_lib.Config, cluster: cluster_lib.Cluster):
  """Raise ConfigError if several machines can't train this."""
  amount = len(cluster.addresses)
  if config.num_envs % amount:
    fit = [str(n) for n in range(2, config.num_envs + 1)
           if config.num_envs % n == 0]
    raise config_lib.ConfigError(
        f"num_envs={config.num_envs} environments can't be shared evenly by "
        f"{amount} machines, only by {', '.join(fit) or 'one'}.")
  if config.device == "gpu":
    raise config_lib.ConfigError(
        f"--device gpu: {amount} machines learn on their CPUs.")


def meet(cluster: cluster_lib.Cluster, config: config_lib.Config | None,
         interrupts: interrupts_lib.Interrupts):
  """Connect the machines, and make sure that they can do the same.

  Args:
    cluster: The machines.
    config: Of a new run; None for an old one, which the first machine knows.
    interrupts: Of this process.
  Returns:
    exchange.Machines.
  Raises:
    ConfigError: If they differ.
  """
  with quiet_imports.quiet_imports():
    from agents.distributed import assembly
  machines = assembly.connect(cluster)
  interrupts.install_handlers()  # TensorFlow has put its own handlers in their place.
  _compare(cluster, machines, config, config.env.id if config else "")
  return machines


def share(cluster: cluster_lib.Cluster, machines: Any, run: Run | None) -> Run:
  """Tell all machines of the run, and make sure that they can do the same.

  Args:
    cluster: The machines.
    machines: From `meet`.
    run: What the first machine knows; None on the others.
  Raises:
    ConfigError: If they differ.
  """
  known: Run = machines.all_gather_object(run)[0]
  _compare(cluster, machines, known.config, known.config.env.id)
  return known


def _compare(cluster: cluster_lib.Cluster, machines: Any,
             config: config_lib.Config | None, env: str):
  told: list[_Hello] = machines.all_gather_object(_Hello(
      config_lib.flat(config) if config else {}, provenance.versions(env),
      provenance.code(env)))
  for task, hello in enumerate(told):
    if bool(hello.config) != bool(told[0].config):
      raise config_lib.ConfigError(
          "Some machines begin a new run, others --resume an old one.")
    for what, ours, theirs in zip(_Hello._fields, told[0], hello, strict=True):
      if ours != theirs:
        different = provenance.differences(ours, theirs)
        more = f" and {len(different) - 3} more" if len(different) > 3 else ""
        raise config_lib.ConfigError(
            f"{cluster.name(task)} has other {what} than machine 0: "
            f"{', '.join(different[:3])}{more}. All machines need the same.")


def follow(cluster: cluster_lib.Cluster, machines: Any, logdir: str,
           in_process: bool, interrupts: interrupts_lib.Interrupts) -> int:
  """Train as the first machine says; return the exit code.

  Args:
    cluster: The machines.
    machines: From `meet`.
    logdir: Where to save, if the first machine is lost and its folder is
      not to be seen from here.
    in_process: Step environments in this process.
    interrupts: Of this process.
  Raises:
    MachineLost: If another machine is lost.
  """
  from agents import build
  from agents.distributed import assembly
  from agents.distributed import coordinator
  run = share(cluster, machines, None)
  interrupts.farewell = f"Machine 0 saves the run in {run.path}."
  config = run.config.override({"env_processes": False} if in_process else {})
  workers = trainer = None
  follower: coordinator.Participant | None = None
  try:
    workers = start_workers.start_workers(config, interrupts.give_up_fd)
    build.setup(config)
    trainer = assembly.trainer(config, workers, machines)
    print(f"{cluster.name(cluster.task).capitalize()} trains as machine 0 "
          f"does, which reports to {run.path}.", flush=True)
    follower = coordinator.Participant(trainer, machines, interrupts)
    finished = follower.follow()
  except errors.MachineLost:
    if follower:
      _save(run, follower, logdir)
    raise
  except Exception as error:
    if trainer and crash_recorder.is_environment_failure(error) and not interrupts():
      crash_recorder.CrashRecorder(
          _folder(run, logdir), run.config, trainer.failure_budget
      ).save_fatal(follower.step if follower else 0, error)
    raise
  finally:
    if workers:
      workers.close()
    if trainer:
      trainer.close()
  print(f"Machine 0 has {'finished' if finished else 'stopped'} the run.")
  if interrupts() and not finished:
    return interrupts.exit_code
  return 0 if finished else 1


def _save(run: Run, follower: Any, logdir: str):
  """Save what this machine knows of the run, in its folder if it is here."""
  if not (kept := follower.checkpoint()):
    return
  arrays, facts = kept
  folder = _folder(run, logdir)
  try:
    with folder.locked():
      checkpoint.save(folder.checkpoints, facts["step"], arrays, facts)
  except config_lib.ConfigError as error:
    print(f"Not saved from here, as {error}", file=sys.stderr, flush=True)
    return
  print(f"Saved the run of step {facts['step']:,} in {folder.path}.",
        file=sys.stderr, flush=True)


def _folder(run: Run, logdir: str) -> run_folder.RunFolder:
  """Return the run's folder, or a new one where it is not to be seen."""
  try:
    return run_folder.RunFolder(run.path)
  except config_lib.ConfigError:
    return run_folder.create(logdir, run.name, run.config)
