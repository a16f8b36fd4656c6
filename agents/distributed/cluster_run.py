"""Trains one run on several machines.

All machines connect and compare their settings. The coordinator (machine 0)
has the run folder and trains like a single machine. The participants repeat
each of its steps with their share of the environments.
"""

import functools
import pathlib
import sys
from typing import Any, NamedTuple

from agents import config as config_lib
from agents import errors, training_run
from agents.distributed import cluster as cluster_lib
from agents.training.faults import crash_folder
from agents.training.faults import interrupts as interrupts_lib
from agents.training.monitoring import quiet_imports
from agents.training.run_folder import checkpoint, provenance, run_folder


class _Setup(NamedTuple):
  """Properties that all machines must have in common."""

  config: dict[str, Any]  # All settings; empty if the run already exists.
  versions: dict[str, str]  # By package.
  code: dict[str, str]  # Digests by file.


class _Run(NamedTuple):
  """The run that the coordinator announces to the participants."""

  path: pathlib.Path  # Run folder on the coordinator.
  name: str  # Last part of the folder's name.
  config: config_lib.Config


def train(cluster: cluster_lib.Cluster, options: training_run.Options,
          interrupts: interrupts_lib.Interrupts
          ) -> training_run.TrainingOutcome:
  """Trains a new run, or resumes one, together with the other machines.

  Args:
    cluster: Addresses of the machines.
    options: Settings of the run. A participant that resumes a run has no
      config; the coordinator provides it.
    interrupts: Requests to stop this process.
  Raises:
    ConfigError: If the machines cannot train this run together.
    MachineLost: If the connection to another machine is lost.
  """
  if options.config:
    _check(options.config, cluster)
  try:
    if cluster.is_coordinator:
      return _coordinate(cluster, options, interrupts)
    return _participate(cluster, options, interrupts)
  except errors.MachineLost as error:
    message = str(error)
    raise errors.MachineLost(
        f"{cluster.describe_lost(message)} {message.splitlines()[0]}") from None


def _check(config: config_lib.Config, cluster: cluster_lib.Cluster):
  """Raises ConfigError if several machines cannot train with these settings."""
  num_machines = len(cluster.addresses)
  if config.num_envs % num_machines:
    divisors = [str(n) for n in range(2, config.num_envs + 1)
                if config.num_envs % n == 0]
    raise config_lib.ConfigError(
        f"num_envs={config.num_envs} environments can't be shared evenly by "
        f"{num_machines} machines, only by {', '.join(divisors) or 'one'}.")
  if config.device == "gpu":
    raise config_lib.ConfigError(
        f"--device gpu: {num_machines} machines learn on their CPUs.")


def _connect(cluster: cluster_lib.Cluster, config: config_lib.Config | None,
             interrupts: interrupts_lib.Interrupts) -> Any:
  """Connects the machines; returns their `collectives.Communicator`.

  Args:
    cluster: Addresses of the machines.
    config: Settings of a new run; None to resume an existing one.
    interrupts: Requests to stop this process.
  Raises:
    ConfigError: If settings, packages or code of the machines differ.
  """
  with quiet_imports.quiet_imports():
    from agents.distributed import build_distributed
  communicator = build_distributed.connect(cluster)
  # TensorFlow has replaced the signal handlers.
  interrupts.install_handlers()
  _compare(cluster, communicator, config, config.env.id if config else "")
  return communicator


def _share(cluster: cluster_lib.Cluster, communicator: Any, run: _Run | None
           ) -> _Run:
  """Sends the run from the coordinator to all machines and returns it.

  Args:
    cluster: Addresses of the machines.
    communicator: Connection of the machines.
    run: The run, on the coordinator; None on participants.
  Raises:
    ConfigError: If settings, packages or code of the machines differ.
  """
  shared: _Run = communicator.all_gather_object(run)[0]
  _compare(cluster, communicator, shared.config, shared.config.env.id)
  return shared


def _compare(cluster: cluster_lib.Cluster, communicator: Any,
             config: config_lib.Config | None, env_id: str):
  """Raises ConfigError if settings, packages or code of the machines differ."""
  setups: list[_Setup] = communicator.all_gather_object(_Setup(
      config_lib.flat(config) if config else {}, provenance.versions(env_id),
      provenance.code(env_id)))
  for task, setup in enumerate(setups):
    if bool(setup.config) != bool(setups[0].config):
      raise config_lib.ConfigError(
          "Some machines begin a new run, others --resume an old one.")
    for name, expected, actual in zip(
        _Setup._fields, setups[0], setup, strict=True):
      if expected != actual:
        changes = provenance.differences(expected, actual)
        more = f" and {len(changes) - 3} more" if len(changes) > 3 else ""
        raise config_lib.ConfigError(
            f"{cluster.name(task)} and machine 0 differ in {name}: "
            f"{', '.join(changes[:3])}{more}. All machines need the same.")


def _coordinate(cluster: cluster_lib.Cluster, options: training_run.Options,
                interrupts: interrupts_lib.Interrupts
                ) -> training_run.TrainingOutcome:
  """Trains as machine 0, which has the run folder."""
  config, video_variables = training_run.prepare(options)
  communicator = _connect(
      cluster, None if options.folder else config, interrupts)
  folder = (options.folder or _find_unfinished(options.logdir, config)
            or run_folder.create(options.logdir, options.name, config))
  run = _CoordinatedRun(
      folder, options.for_this_process(config), video_variables, interrupts)
  with folder.locked():
    name = folder.path.name.partition("-")[2]
    _share(cluster, communicator, _Run(folder.path.resolve(), name, config))
    from agents.distributed import build_distributed
    return run.train(
        functools.partial(build_distributed.trainer, communicator=communicator))


def _find_unfinished(logdir: str, config: config_lib.Config
                     ) -> run_folder.RunFolder | None:
  """Returns the run that the same command began earlier and did not finish."""
  folder = next((run for run in reversed(run_folder.with_config(logdir, config))
                 if not run.complete), None)
  if folder:
    print(f"Resuming {folder.path}, which has the same settings.\n"
          "To start a new run, change --logdir or --seed.", flush=True)
    training_run.print_changes(folder)
  return folder


class _CoordinatedRun(training_run.TrainingRun):
  """Training of machine 0. Its trainer directs the other machines."""

  _trainer: Any = None

  def stop(self) -> bool:
    return super().stop() or self._trainer.stop_elsewhere

  def make_loop(self, trainer: Any) -> Any:
    from agents.training import loop as loop_lib
    self._trainer = trainer
    # This loop does not save on timeout, as that needs the other machines.
    loop = loop_lib.Loop(
        trainer, self._folder, self.stop, self._video_variables)
    # Participants need the metadata to save the run if machine 0 is lost.
    trainer.metadata, trainer.stop = loop.metadata, self._interrupts
    return loop


def _participate(cluster: cluster_lib.Cluster, options: training_run.Options,
                 interrupts: interrupts_lib.Interrupts
                 ) -> training_run.TrainingOutcome:
  """Trains as the coordinator directs."""
  if options.config:
    training_run.check(options.config)
  communicator = _connect(cluster, options.config, interrupts)
  run = _share(cluster, communicator, None)
  interrupts.farewell = f"Machine 0 saves the run in {run.path}."
  from agents.distributed import build_distributed, coordinator
  with training_run.open_trainer(
      options.for_this_process(run.config), interrupts,
      functools.partial(build_distributed.trainer, communicator=communicator)
  ) as trainer:
    print(f"{cluster.name(cluster.task).capitalize()} trains as directed by "
          f"machine 0, which reports to\n{run.path}.", flush=True)
    participant = coordinator.Participant(trainer, communicator, interrupts)
    try:
      complete = participant.follow()
    except errors.MachineLost:
      _save(run, participant, options.logdir)
      raise
    except Exception as error:
      if crash_folder.is_environment_failure(error) and not interrupts():
        crash_folder.save_fatal(
            _folder(run, options.logdir),
            trainer.train_env.batch_env.failure_budget, participant.step, error)
      raise
  print(f"Machine 0 has {'finished' if complete else 'stopped'} the run.")
  exit_code = interrupts.exit_code if interrupts() else 1
  return training_run.TrainingOutcome(
      run.path, participant.step, complete, 0 if complete else exit_code)


def _save(run: _Run, participant: Any, logdir: str):
  """Saves the last common state of all machines."""
  if not (state := participant.checkpoint()):
    return
  arrays, metadata = state
  folder = _folder(run, logdir)
  try:
    with folder.locked():
      checkpoint.save(folder.checkpoints, metadata["step"], arrays, metadata)
  except config_lib.ConfigError as error:
    print(f"This machine did not save the run: {error}", file=sys.stderr,
          flush=True)
    return
  print(f"Saved the run of step {metadata['step']:,} in {folder.path}.",
        file=sys.stderr, flush=True)


def _folder(run: _Run, logdir: str) -> run_folder.RunFolder:
  """Returns the run folder, or a new one if this machine cannot access it."""
  try:
    return run_folder.RunFolder(run.path)
  except config_lib.ConfigError:
    return run_folder.create(logdir, run.name, run.config)
