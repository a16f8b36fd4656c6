"""Runs a trial of a sweep: trains in a separate process."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import signal
import subprocess
import time
from collections.abc import Callable
from typing import Any

import optuna

from agents import config as config_lib
from agents import errors
from agents.environments.workers import pool
from agents.environments.workers import process as process_lib
from agents.reports import results
from agents.sweeps import search_space
from agents.training import fork
from agents.training.run_folder import run_folder

_MAX_RESTARTS = 3  # Number of times that a killed trial is restarted.
_POLL_SECONDS = 0.5  # Interval between checks of the process and its metrics.
_SECONDS_TO_END = 15.0  # Time for the process of a complete run to end.
_LOCK_SECONDS = 600.0  # Limit for another process to release the run folder.


class TrialFailed(errors.RunError):
  """Training ended with an error."""


class TrialInterrupted(Exception):
  """The sweep was interrupted; the trial is resumed later."""


@dataclasses.dataclass
class TrialRunner:
  """Trains with the settings that a study suggests."""

  # Returns the config for settings by dotted key, or raises ConfigError if the
  # settings are invalid.
  build: Callable[[dict[str, Any]], config_lib.Config]
  # Returns the command-line arguments of `train` for settings by dotted key.
  arguments: Callable[[dict[str, Any]], list[str]]
  space: search_space.SearchSpace  # Settings to try.
  logdir: pathlib.Path  # Parent folder of the folders of the trials.
  # Number of simultaneous trials. A single trial uses all cores. Several trials
  # use one core each and no worker processes.
  num_parallel: int
  stop: Callable[[], bool]  # Returns whether the sweep is interrupted.
  # Returns the trial whose run a trial continues, or None. Without this
  # function, all trials start with random weights.
  parent: Callable[[optuna.Study, optuna.Trial], optuna.trial.FrozenTrial | None] | None = None

  def __post_init__(self) -> None:
    cores = (
      sorted(os.sched_getaffinity(0))
      if hasattr(os, "sched_getaffinity")
      else range(pool.num_cores())
    )
    # Free cores. Trials in other threads take and return cores; `pop` and
    # `append` are thread-safe.
    self._cores = (
      ["all"]
      if self.num_parallel == 1
      else [str(cores[index % len(cores)]) for index in range(self.num_parallel)]
    )

  def __call__(self, trial: optuna.Trial) -> float:
    """Runs a trial until the budget of the run is used up.

    Args:
      trial: Trial of a study.

    Returns:
      Mean return of the last evaluation.

    Raises:
      TrialPruned: If the study prunes the trial because of low scores, or if
        the settings are invalid or make training diverge.
      TrialFailed: If training ended with an error.
      TrialInterrupted: If the sweep was interrupted.
    """
    settings = self.space.suggest(trial)
    origin = self._origin(trial)
    source = ["--from", f"{origin.run.path}@{origin.step}"] if origin else []
    trial.set_user_attr("arguments", [*source, *self.arguments(settings)])
    settings["seed"] = self.build({}).seed + first_number(trial)
    try:
      config = self.build(settings | ({"forked_from": origin.lineage} if origin else {}))
    except config_lib.ConfigError as error:
      trial.set_user_attr("why", f"invalid settings: {error}")
      raise optuna.TrialPruned from None
    folder = self.folder(trial)
    folder.mkdir(parents=True, exist_ok=True)
    monitor = _Monitor(trial, config, folder)
    core = self._cores.pop()
    try:
      self._train(monitor, core, [*source, *self.arguments(settings)])
    finally:
      self._cores.append(core)
    if monitor.score is None:
      trial.set_user_attr("why", "no evaluation episode ended")
      raise TrialFailed(f"Trial {trial.number}: no evaluation episode ended.")
    return monitor.score

  def _origin(self, trial: optuna.Trial) -> fork.Origin | None:
    """Returns the final checkpoint of the parent, or None without a parent."""
    parent = self.parent and self.parent(trial.study, trial)
    return fork.find(str(self.folder(parent))) if parent else None

  def folder(self, trial: optuna.Trial | optuna.trial.FrozenTrial) -> pathlib.Path:
    """Returns the folder that contains the run of a trial.

    Args:
      trial: Trial of a study.
    """
    return self.logdir / f"trial-{first_number(trial):04}"

  def _train(self, monitor: _Monitor, core: str, arguments: list[str]) -> None:
    """Trains until the run is complete; restarts killed processes."""
    trial, output = monitor.trial, monitor.folder / "output.txt"
    for _ in range(1 + _MAX_RESTARTS):
      code = self._run_process(monitor, core, arguments, output)
      if monitor.complete:
        return
      if code == errors.TrainingDiverged.exit_code:
        trial.set_user_attr("why", "diverged")
        raise optuna.TrialPruned
      if code >= 0 and code - 128 not in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        break
    reason = f"failed with exit code {code}" if code else "ended before its run was complete"
    trial.set_user_attr("why", f"{reason}, see {output}")
    lines = output.read_text(errors="replace").splitlines()[-20:]
    raise TrialFailed("\n".join([f"Trial {trial.number} {reason}:", *lines]))

  def _run_process(
    self, monitor: _Monitor, core: str, arguments: list[str], output: pathlib.Path
  ) -> int:
    """Trains in a process until it ends or its run is complete.

    Returns:
      Exit code of the process.
    """
    command = [
      *process_lib.python("from agents.sweeps import trial_launcher; trial_launcher.main()"),
      core,
      *process_lib.python("from agents import __main__; sys.exit(__main__.main())"),
      "train",
      *([] if core == "all" else ["--no-env-processes"]),
    ]
    if runs := run_folder.with_config(monitor.folder, monitor.config):
      self._wait_for_lock(monitor.trial, runs[0])
      command += ["--resume", str(runs[0].path)]
    else:
      command += ["--logdir", str(monitor.folder), *arguments]
    if self.stop():
      raise TrialInterrupted
    # In a new session, the process does not receive Ctrl-C. The context closes
    # the pipe. The launcher then ends the process.
    with (
      open(output, "ab") as file,
      subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=file,
        stderr=subprocess.STDOUT,
        start_new_session=True,
      ) as process,
    ):
      while process.returncode is None:
        with contextlib.suppress(subprocess.TimeoutExpired):
          process.wait(_POLL_SECONDS)
        monitor.report()
        if monitor.complete:
          try:
            process.wait(_SECONDS_TO_END)  # The process may still render a video.
          except subprocess.TimeoutExpired:
            process.kill()
          break
        if self.stop():
          raise TrialInterrupted
    return process.wait()

  def _wait_for_lock(self, trial: optuna.Trial, run: run_folder.RunFolder) -> None:
    """Waits until no process, such as one of another sweep, trains a run."""
    deadline, message = time.monotonic() + _LOCK_SECONDS, ""
    # After the time limit, `train` fails with this message.
    while not self.stop() and time.monotonic() < deadline:
      try:
        with run.locked():
          return
      except config_lib.ConfigError as error:
        if str(error) != message:
          message = str(error)
          print(f"Trial {trial.number} waits: {message}", flush=True)
        time.sleep(_POLL_SECONDS)


@dataclasses.dataclass
class _Monitor:
  """Reports the evaluations of a run to Optuna's trial."""

  trial: optuna.Trial
  config: config_lib.Config
  folder: pathlib.Path  # Folder of the trial, which contains the run folder.
  score: float | None = None  # Mean return of the last evaluation with a score.
  # Indices of the reported evaluations.
  reported: set[int] = dataclasses.field(default_factory=set)
  complete: bool = False  # Whether the run has written its final checkpoint.

  def report(self) -> None:
    """Reports new evaluations.

    Raises:
      TrialPruned: If the trial is pruned.
      TrialInterrupted: If another process has taken over the trial.
    """
    if self.trial.storage.get_trial(self.trial._trial_id).state.is_finished():
      raise TrialInterrupted
    step = 0
    # Raises ConfigError until training has created the run folder. Another
    # error, such as one of the disk, may be gone at the next call.
    with contextlib.suppress(config_lib.ConfigError, errors.RunError, OSError):
      run = run_folder.RunFolder(run_folder.newest(self.folder))
      evaluations = results.read(run.path)
      self.complete = evaluations.complete and run.complete
      for row in evaluations.phase("eval"):
        step, self.score = row["step"], row["return_mean"]
        # Optuna compares trials at the same index. The step can't be the index,
        # because trials are evaluated at slightly different steps.
        index = step // self.config.every("eval_every")
        if index not in self.reported:
          self.trial.report(self.score, index)
          self.reported.add(index)
    if 0 < step < self.config.steps and self.trial.should_prune():
      self.trial.set_user_attr("why", f"pruned after {step:,} steps")
      raise optuna.TrialPruned


def first_number(trial: optuna.Trial | optuna.trial.FrozenTrial) -> int:
  """Returns the number in the name of a trial's folder.

  Args:
    trial: Trial of a study.

  Returns:
    Number of the trial that first started the run. It is the trial's own number
    unless the trial resumes an interrupted one.
  """
  return trial.user_attrs.get("number", trial.number)
