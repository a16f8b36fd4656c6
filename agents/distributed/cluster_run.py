"""Trains one run on several machines.

All machines connect and compare their settings. The coordinator (machine 0)
has the run folder and trains like a single machine. The participants (all other
machines) execute the coordinator's commands with their share of the
environments.
"""

import functools
import pathlib
import signal
import sys
from typing import Any

from agents import config as config_lib
from agents import errors, training_run
from agents.distributed import access, rendezvous
from agents.distributed import cluster as cluster_lib
from agents.training.faults import crash_folder
from agents.training.faults import interrupts as interrupts_lib
from agents.training.monitoring import quiet_imports
from agents.training.run_folder import (
  checkpoint,
  import_guard,
  provenance,
  run_folder,
  run_lock,
  user_modules,
)


def train(
  cluster: cluster_lib.Cluster, options: training_run.Options, interrupts: interrupts_lib.Interrupts
) -> training_run.TrainingOutcome:
  """Trains a new run, or resumes one, together with the other machines.

  Args:
    cluster: Addresses of the machines.
    options: Settings of the run. A participant that resumes a run has no
      config, because the coordinator sends the config.
    interrupts: Requests to stop this process.

  Returns:
    State of the run when its training ends in this process.

  Raises:
    ConfigError: If the machines cannot train this run together.
    MachineLost: If the connection to another machine is lost.
  """
  if options.origin or options.end:
    raise config_lib.ConfigError(
      "--from, --until and --minutes need a single machine. Leave out --cluster and TF_CONFIG; "
      "several machines can continue the run later."
    )
  if options.config:
    _check(options.config, len(cluster.addresses))
  try:
    train_here = _participate if cluster.task else _coordinate
    return train_here(cluster, options, interrupts)
  except errors.MachineLost as error:
    message = str(error)
    raise errors.MachineLost(
      f"{cluster.describe_lost(message)} {message.splitlines()[0]}"
    ) from None


def _check(config: config_lib.Config, num_machines: int) -> None:
  """Raises ConfigError if several machines cannot train with these settings."""
  if config.num_envs % num_machines:
    divisors = ", ".join(str(n) for n in range(2, config.num_envs + 1) if config.num_envs % n == 0)
    raise config_lib.ConfigError(
      f"num_envs={config.num_envs} environments can't be shared evenly by "
      f"{num_machines} machines, only by {divisors or 'one'}."
    )
  if config.device == "gpu":
    raise config_lib.ConfigError(
      f"--device gpu: {num_machines} machines learn only on their CPUs. Use --device cpu."
    )


def _connect(
  cluster: cluster_lib.Cluster, options: training_run.Options, interrupts: interrupts_lib.Interrupts
) -> tuple[Any, training_run.MakeTrainer]:
  """Connects the machines and compares their settings, packages and code.

  Args:
    cluster: Addresses of the machines.
    options: See `train`.
    interrupts: Requests to stop this process.

  Returns:
    A `collectives.Communicator`, and a function that builds the trainer.

  Raises:
    ConfigError: If a machine is missing, settings, packages or code of the
      machines differ, or this machine does not permit the modules of the run.
  """
  with rendezvous.Rendezvous(cluster, interrupts) as machines:
    access.warn_of_open_port(cluster)
    machines.wait_for_start()
    with quiet_imports.quiet_imports():
      from agents.distributed import build_distributed
    machines.wait_until_ready()
  try:
    communicator = build_distributed.connect(cluster)
  finally:  # TensorFlow has replaced the signal handlers.
    interrupts.install_handlers()
  config = options.config
  settings = config_lib.flat(config) if config and not options.folder else {}
  sent = config and [str(options.folder and options.folder.path), config_lib.dump(config)]
  folder, text = communicator.all_gather_object(sent)[0]
  if not config:  # A participant that resumes a run gets the config from machine 0.
    config = config_lib.load(text, "the config of machine 0")
    import_guard.check(config, pathlib.Path(folder), options.code)
  env_id = config.env.id
  _compare(
    cluster,
    communicator.all_gather_object(
      {"config": settings, "versions": provenance.versions(env_id), "code": provenance.code(env_id)}
    ),
  )
  return communicator, functools.partial(build_distributed.trainer, communicator=communicator)


def _compare(cluster: cluster_lib.Cluster, setups: list[dict[str, dict[str, Any]]]) -> None:
  """Raises ConfigError if settings, packages or code of the machines differ."""
  for task, setup in enumerate(setups):
    if bool(setup["config"]) != bool(setups[0]["config"]):
      raise config_lib.ConfigError(
        "Some machines begin a new run, others resume a run. Give RUN_DIR on all "
        "machines or on none."
      )
    for name, expected in setups[0].items():
      if changes := provenance.differences(expected, setup[name]):
        more = f" and {len(changes) - 3} more" if len(changes) > 3 else ""
        raise config_lib.ConfigError(
          f"{cluster.name(task)} and machine 0 differ in {name}: "
          f"{', '.join(changes[:3])}{more}. All machines need the same "
          f"{name}."
        )


def _coordinate(
  cluster: cluster_lib.Cluster, options: training_run.Options, interrupts: interrupts_lib.Interrupts
) -> training_run.TrainingOutcome:
  """Trains as machine 0, which has the run folder."""
  config, video_variables = training_run.prepare(options)
  communicator, make_trainer = _connect(cluster, options, interrupts)
  folder = options.folder or next(
    (run for run in reversed(run_folder.with_config(options.logdir, config)) if not run.complete),
    None,
  )
  if folder and not options.folder:
    print(
      f"Resuming {folder.path}, which has the same settings.\n"
      "To start a new run, change --logdir or --seed.",
      flush=True,
    )
    training_run.print_changes(folder)
  folder = folder or run_folder.create(options.logdir, options.name, config)
  run = _CoordinatedRun(folder, options.for_this_process(config), video_variables, interrupts)
  run.cluster = cluster
  with folder.locked():
    communicator.all_gather_object((str(folder.path.resolve()), config_lib.dump(config)))
    return run.train(make_trainer)


class _CoordinatedRun(training_run.TrainingRun):
  """Trains on machine 0; the trainer sends commands to the other machines."""

  cluster: cluster_lib.Cluster
  _trainer: Any = None

  def stop(self) -> bool:
    return super().stop() or self._trainer.stopped

  def stop_reason(self) -> tuple[str, int]:
    return _stop_reason(self._trainer, self.cluster, self._interrupts)

  def make_loop(self, trainer: Any) -> Any:
    from agents.training import loop as loop_lib

    self._trainer = trainer
    # This loop does not save on timeout: if machine 0 ends during an epoch, the
    # other machines save the run.
    loop = loop_lib.Loop(trainer, self._folder, self.stop, self._render_variables)
    # Participants need the metadata to save the run if machine 0 is lost.
    trainer.metadata = loop.metadata
    trainer.stop = lambda: self._interrupts.signum or 0
    return loop


def _participate(
  cluster: cluster_lib.Cluster, options: training_run.Options, interrupts: interrupts_lib.Interrupts
) -> training_run.TrainingOutcome:
  """Trains by executing the commands of the coordinator."""
  if options.config:
    training_run.check(options.config)
    user_modules.record(options.config)
  communicator, make_trainer = _connect(cluster, options, interrupts)
  folder, text = communicator.all_gather_object(None)[0]
  path, config = pathlib.Path(folder), config_lib.load(text, "the config of machine 0")
  coordinator = run_lock.owner(path)
  interrupts.farewell = f"Machine 0 saves the run in {path}."
  with training_run.open_trainer(
    options.for_this_process(config), interrupts, make_trainer
  ) as trainer:
    print(
      f"{cluster.name(cluster.task).capitalize()} trains as directed by "
      f"machine 0, which reports to\n{path}.",
      flush=True,
    )
    trainer.stop = lambda: interrupts.signum or 0
    try:
      complete = trainer.follow()
    except errors.MachineLost:
      if trainer.checkpoint:
        _save(_folder(path, config, options.logdir), coordinator, *trainer.checkpoint())
      raise
    except Exception as error:
      if crash_folder.is_environment_failure(error) and not interrupts():
        crash_folder.save_fatal(
          _folder(path, config, options.logdir),
          trainer.train_env.batch_env.failure_budget,
          trainer.step,
          error,
        )
      raise
  if complete:
    print("Machine 0 has finished the run.")
    return training_run.TrainingOutcome(path, trainer.step, True, 0, "finished")
  reason, exit_code = _stop_reason(trainer, cluster, interrupts)
  print(f"Stopped{reason}. Machine 0 has saved the run.")
  return training_run.TrainingOutcome(path, trainer.step, False, exit_code, f"stopped{reason}")


def _stop_reason(
  trainer: Any, cluster: cluster_lib.Cluster, interrupts: interrupts_lib.Interrupts
) -> tuple[str, int]:
  """See `TrainingRun.stop_reason`; names the machine and the signal."""
  task, signum = trainer.stopped_by or (cluster.task, interrupts.signum or signal.SIGTERM)
  return f" by {signal.Signals(signum).name} on {cluster.name(task)}", 128 + signum


def _save(
  folder: run_folder.RunFolder,
  coordinator: run_lock.Owner | None,
  arrays: dict[str, Any],
  metadata: dict[str, Any],
) -> None:
  """Saves the state from before the latest epoch, after machine 0 was lost."""
  step = metadata["step"]
  try:
    with folder.locked(lost=coordinator):
      checkpoint.save(folder.checkpoints, step, arrays, metadata)
    message = f"Saved the run at step {step:,} in {folder.path}."
  except config_lib.ConfigError as error:
    message = f"This machine did not save the run: {error}"
  print(message, file=sys.stderr, flush=True)


def _folder(path: pathlib.Path, config: config_lib.Config, logdir: str) -> run_folder.RunFolder:
  """Returns the run folder, or a new one if this machine cannot access it."""
  try:
    return run_folder.RunFolder(path)
  except config_lib.ConfigError:
    name = path.name.partition("-")[2]
    return run_folder.create(logdir, name, config)
