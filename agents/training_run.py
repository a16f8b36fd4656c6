"""Trains one run on this machine.

`python train.py` calls `train`. Notebooks can call it, too:

    from agents import configs
    from agents import training_run

    name, config = configs.load("pendulum")
    outcome = training_run.train(training_run.Options(config, name))
"""

import contextlib
import os
import pathlib
import shlex
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from agents import config as config_lib
from agents.commands import parsing
from agents.environments import backends
from agents.environments import train_env as train_env_lib
from agents.environments.making import make
from agents.environments.workers import pool, start_workers
from agents.loggers import base
from agents.training import compile_cache, early_end, fork
from agents.training.faults import interrupts as interrupts_lib
from agents.training.monitoring import progress, quiet_imports
from agents.training.run_folder import checkpoint, run_folder
from agents.videos import render_pool

# Builds a trainer from the settings and the worker processes.
MakeTrainer = Callable[[config_lib.Config, pool.WorkerPool | None], Any]


class Options(NamedTuple):
  """Settings of a run, and of the process that trains it."""

  # Settings of the run; None if another machine of a cluster provides them.
  config: config_lib.Config | None
  # A new run folder is named <time>-<name>.
  name: str = "run"
  # Parent folder of a new run folder.
  logdir: str = "~/logdir"
  # Existing run to resume; None starts a new run.
  folder: run_folder.RunFolder | None = None
  # False steps the environments in this process; results do not change.
  env_processes: bool = True
  # Folders with modules that the config of an existing run may name.
  code: tuple[str, ...] = ()
  # Checkpoint whose variables a new run starts with; None initializes them.
  origin: fork.Origin | None = None
  # Conditions under which the run ends before its budget is used up.
  end: early_end.EarlyEnd | None = None

  def for_this_process(self, config: config_lib.Config) -> config_lib.Config:
    """Returns the settings of the run, changed by the options of this process.

    Args:
      config: Settings of the run.
    """
    return config if self.env_processes else config.override({"env_processes": False})


class TrainingOutcome(NamedTuple):
  """State of a run after its training has ended in this process."""

  path: pathlib.Path  # Run folder.
  step: int  # Environment steps of the run.
  complete: bool  # Whether the budget is used up and the policy is evaluated.
  # 0 if complete or ended early, 128 + signal number after a signal, else 1.
  exit_code: int
  reason: str  # Why training ended, such as "finished" or "stopped by SIGTERM".


def train(options: Options, interrupts: interrupts_lib.Interrupts | None = None) -> TrainingOutcome:
  """Trains a new run, or resumes one.

  Args:
    options: Settings and folder of the run.
    interrupts: Requests to stop this process; by default Ctrl-C, SIGTERM and
      SIGHUP.

  Raises:
    ConfigError: If the run cannot be trained with these settings.
    RunError: If training fails for a reason outside of this package.
  """
  if interrupts is None:
    with interrupts_lib.Interrupts() as interrupts:
      return train(options, interrupts)
  # Environments may change the working directory of this process later.
  options = options._replace(logdir=os.path.abspath(os.path.expanduser(options.logdir)))
  config, render_variables = prepare(options)
  folder = options.folder or run_folder.create(options.logdir, options.name, config)
  run = TrainingRun(
    folder,
    options.for_this_process(config),
    render_variables,
    interrupts,
    options.origin,
    options.end,
  )
  with folder.locked():
    return run.train()


def check(config: config_lib.Config) -> None:
  """Checks environments, symmetry and custom classes; prints notes.

  Args:
    config: Settings of the run.

  Raises:
    ConfigError: If the run cannot be trained with these settings.
  """
  notes = make.check(config.env, needs_rendering=config.video_every is not None)
  with (
    quiet_imports.quiet_imports() if ":" in config.env.backend else contextlib.nullcontext()
  ):  # Custom classes may import TensorFlow.
    notes += backends.check(config)
  if config.algorithm.update_every:
    make.max_length(config.env)  # Raises if whole episodes have no time limit.
  for note in notes:
    progress.note(f"Note: {note}")
  if config.has_custom_classes or config.algorithm.symmetry:
    with quiet_imports.quiet_imports():  # Custom classes import TensorFlow.
      from agents import build
    build.check(config)
  if config.logger:
    with quiet_imports.quiet_imports():  # Loggers may import TensorFlow.
      base.find(config.logger)


def prepare(options: Options) -> tuple[config_lib.Config, dict[str, str]]:
  """Checks the settings of a run, and whether the environment can be rendered.

  A resumed run continues without videos if rendering fails on this machine.

  Args:
    options: Settings and folder of the run.

  Returns:
    Settings of the run, and environment variables for processes that render.

  Raises:
    ConfigError: If the run cannot be trained with these settings.
    RenderingFailed: If rendering fails, and observations or the videos of a new
      run need it.
  """
  config = options.config
  assert config
  check(config)
  if config.env.renders and not options.for_this_process(config).env_processes:
    raise config_lib.ConfigError(
      "The wrapper Pixels needs worker processes, because OpenGL and TensorFlow can crash in one "
      "process: set env_processes=true, without --no-env-processes."
    )
  if not (config.video_every or config.env.renders):
    return config, {}
  constructor = make.MakeEnv(config.env, render_mode="rgb_array")
  try:
    return config, render_pool.find_gl_backend(constructor)
  except render_pool.RenderingFailed as error:
    if config.env.renders or not options.folder:
      raise
    progress.note(f"Note: No videos: {error}")
    return config.override({"video_every": None}), {}


def print_changes(folder: run_folder.RunFolder) -> None:
  """Prints which packages and code have changed since a run began.

  Args:
    folder: Run folder.
  """
  if changes := folder.changes():
    progress.note(
      "These packages or files have changed since this run began. Results "
      f"may differ in the last bits: {', '.join(changes)}."
    )


@contextlib.contextmanager
def open_trainer(
  config: config_lib.Config,
  interrupts: interrupts_lib.Interrupts,
  make_trainer: MakeTrainer | None = None,
  variables: dict[str, str] | None = None,
) -> Iterator[Any]:
  """Context manager that provides a trainer with its worker processes.

  Args:
    config: Settings of the run in this process.
    interrupts: Requests to stop this process.
    make_trainer: Builds the trainer; by default `build.trainer`.
    variables: Environment variables of the worker processes; by default, those
      with which they can render observations.

  Yields:
    `trainer.Trainer` of the run.

  Raises:
    ConfigError: If the parts of the run do not fit each other.
  """
  workers = train_env = trainer = None
  if variables is None:
    variables = render_pool.worker_variables(config)
  with compile_cache.compile_cache():
    try:
      # The workers build environments while this process imports TensorFlow.
      workers = start_workers.start_workers(config, interrupts.give_up_fd, variables)
      if not make_trainer:
        train_env = train_env_lib.build_in_background(config, workers)
      with quiet_imports.quiet_imports():
        from agents import build

        build.setup(config)
      if make_trainer:
        trainer = make_trainer(config, workers)
      else:
        trainer = build.trainer(config, workers, train_env)
      if train_env:
        train_env.wait_until_built()
      yield trainer
    finally:
      if workers:
        workers.close()
      for part in (trainer, train_env):
        if part:
          part.close()


class TrainingRun:
  """Trains a run in its folder until its budget is used up.

  Training resumes from the newest checkpoint if the folder contains one.

  Args:
    folder: Run folder.
    config: Settings of the run in this process.
    render_variables: Environment variables for processes that render.
    interrupts: Requests to stop this process.
    origin: See `Options`.
    end: See `Options`.
  """

  def __init__(
    self,
    folder: run_folder.RunFolder,
    config: config_lib.Config,
    render_variables: dict[str, str],
    interrupts: interrupts_lib.Interrupts,
    origin: fork.Origin | None = None,
    end: early_end.EarlyEnd | None = None,
  ) -> None:
    self._folder = folder
    self._config = folder.config = config
    self._render_variables = render_variables
    self._interrupts = interrupts
    self._origin = origin
    self._end = end
    self._resumes = bool(checkpoint.paths(folder.checkpoints))
    self._resume_hint = f"To resume: {parsing.command('train')} {shlex.quote(str(folder.path))}"
    interrupts.farewell = self._resume_hint

  def train(self, make_trainer: MakeTrainer | None = None) -> TrainingOutcome:
    """Trains until the budget is used up or a request to stop arrives.

    Args:
      make_trainer: Builds the trainer; by default `build.trainer`.

    Raises:
      ConfigError: If the parts of the run do not fit each other.
      RunError: If training fails for a reason outside of this package.
    """
    folder = self._folder
    with contextlib.ExitStack() as stack:
      try:
        trainer = stack.enter_context(
          open_trainer(self._config, self._interrupts, make_trainer, self._render_variables)
        )
        if self._origin:
          progress.note(fork.load(trainer.algorithm, self._origin))
      except Exception:
        if not self._resumes:
          # Otherwise, commands would select this empty run as the newest one.
          shutil.rmtree(folder.path)
        raise
      from agents.training.monitoring import run_summary

      loop = self.make_loop(trainer)
      if self._resumes:
        loop.resume()
        folder.extend(self._config)
      else:
        loop.start()
      print(run_summary.beginning(folder, trainer, loop.step), flush=True)
      try:
        loop.run()
      except Exception:
        saved = checkpoint.paths(folder.checkpoints)
        hint = self._resume_hint if saved else "No checkpoint was saved."
        print(f"Failed after {loop.step:,} steps.\n{hint}", file=sys.stderr)
        raise
    if self.stop() and not loop.complete:
      reason, exit_code = self.stop_reason()
      print(f"Stopped after {loop.step:,} steps{reason}.\n{self._resume_hint}")
      return TrainingOutcome(folder.path, loop.step, False, exit_code, f"stopped{reason}")
    path, logdir = (shlex.quote(str(path)) for path in (folder.path, folder.path.parent))
    if loop.end_reason:
      print(f"Ended after {loop.step:,} steps: {loop.end_reason}.")
      next_command = self._resume_hint
    else:
      print(f"Finished {loop.step:,} steps.")
      extend = f"{parsing.command('train')} {path} --steps {2 * self._config.steps}"
      next_command = f"To extend: {extend}"
    print(
      run_summary.end(folder),
      next_command,
      f"To watch: {parsing.command('visualize')} {path}",
      f"To compare: tensorboard --logdir {logdir}",
      sep="\n",
    )
    reason = f"ended early: {loop.end_reason}" if loop.end_reason else "finished"
    return TrainingOutcome(folder.path, loop.step, loop.complete, 0, reason)

  def stop(self) -> bool:
    """Returns whether training must end after the current epoch."""
    return self._interrupts()

  def stop_reason(self) -> tuple[str, int]:
    """Returns a text with the reason of a stop, and the exit code."""
    exit_code = self._interrupts.exit_code
    return f" by {signal.Signals(exit_code - 128).name}", exit_code

  def make_loop(self, trainer: Any) -> Any:
    """Returns the `loop.Loop` that trains the run.

    Args:
      trainer: `trainer.Trainer` of the run.
    """
    from agents.training import loop as loop_lib

    return loop_lib.Loop(
      trainer,
      self._folder,
      self.stop,
      self._render_variables,
      self._interrupts.save_on_timeout,
      self._end,
    )
