"""Runs a trial of a sweep: trains in a process of its own."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import optuna

from agents import config as config_lib
from agents import errors
from agents.environments.workers import pool
from agents.reports import results
from agents.sweeps import search_space
from agents.training.run_folder import run_folder

_MAX_RESTARTS = 3  # Restarts of a trial after its process is killed.
_POLL_SECONDS = 0.5  # Interval of checking the process and its metrics.


class TrialFailed(errors.RunError):
  """Training ended with an error."""


class TrialInterrupted(Exception):
  """The sweep ends before the trial, which is resumed later."""


@dataclasses.dataclass
class TrialRunner:
  """Trains with the settings that a study suggests."""

  # Returns the config of a run with settings by dotted key, or raises
  # ConfigError if they are invalid.
  build: Callable[[dict[str, Any]], config_lib.Config]
  # Returns the command-line arguments of `train` for settings.
  arguments: Callable[[dict[str, Any]], list[str]]
  space: search_space.SearchSpace  # Settings to try.
  logdir: pathlib.Path  # Folder of the trials.
  # Trials at the same time. A single trial uses all cores; several trials use
  # one core each and no worker processes.
  num_parallel: int
  stop: Callable[[], bool]  # Returns whether the sweep is interrupted.

  def __post_init__(self):
    cores = (sorted(os.sched_getaffinity(0))
             if hasattr(os, "sched_getaffinity") else range(pool.num_cores()))
    # Cores of the next trials; `pop` and `append` are thread-safe.
    self._cores = ["all"] if self.num_parallel == 1 else [
        str(cores[index % len(cores)]) for index in range(self.num_parallel)]

  def __call__(self, trial: optuna.Trial) -> float:
    """Runs a trial until its budget is used up.

    Args:
      trial: Trial of a study.

    Returns:
      Return of the last evaluation with the mean action.

    Raises:
      TrialPruned: If other trials were better at the same step, or if the
        settings are invalid or make training diverge.
      TrialFailed: If training ended with an error.
      TrialInterrupted: If the sweep was interrupted.
    """
    settings = self.space.suggest(trial)
    trial.set_user_attr("arguments", self.arguments(settings))
    number = first_number(trial)
    settings["seed"] = self.build({}).seed + number
    try:
      config = self.build(settings)
    except config_lib.ConfigError as error:
      trial.set_user_attr("why", f"invalid settings: {error}")
      raise optuna.TrialPruned from None
    folder = self.logdir / f"trial-{number:04}"
    folder.mkdir(parents=True, exist_ok=True)
    monitor = _Monitor(trial, config, folder)
    core = self._cores.pop()
    try:
      self._train(monitor, core, self.arguments(settings))
    finally:
      self._cores.append(core)
    if monitor.score is None:
      trial.set_user_attr("why", "no evaluation episode ended")
      raise TrialFailed(f"Trial {trial.number}: no evaluation episode ended.")
    return monitor.score

  def _train(self, monitor: _Monitor, core: str, arguments: list[str]):
    """Trains until the process succeeds; restart it if it is killed."""
    trial, output = monitor.trial, monitor.folder / "output.txt"
    for _ in range(1 + _MAX_RESTARTS):
      code = self._run_process(monitor, core, arguments, output)
      if code == 0:
        return
      if code == errors.TrainingDiverged.exit_code:
        trial.set_user_attr("why", "diverged")
        raise optuna.TrialPruned
      if code > 0 and code - 128 not in (signal.SIGINT, signal.SIGTERM):
        break
    reason = f"failed with exit code {code}"
    trial.set_user_attr("why", f"{reason}, see {output}")
    lines = output.read_text(errors="replace").splitlines()[-20:]
    raise TrialFailed("\n".join([f"Trial {trial.number} {reason}:", *lines]))

  def _run_process(self, monitor: _Monitor, core: str, arguments: list[str],
                   output: pathlib.Path) -> int:
    """Trains in a process until it ends, and returns its exit code."""
    if self.stop():
      raise TrialInterrupted
    command = [sys.executable, "-m", "agents.sweeps.trial_launcher", core,
               sys.executable, "-m", "agents", "train",
               *([] if core == "all" else ["--no-env-processes"])]
    if runs := run_folder.with_config(monitor.folder, monitor.config):
      command += ["--resume", str(runs[0].path)]
    else:
      command += ["--logdir", str(monitor.folder), *arguments]
    with open(output, "ab") as file:
      process = subprocess.Popen(
          command, stdout=file, stderr=subprocess.STDOUT,
          stdin=subprocess.DEVNULL, start_new_session=True)  # Ignores Ctrl-C.
    try:
      code = None
      while code is None:
        with contextlib.suppress(subprocess.TimeoutExpired):
          code = process.wait(_POLL_SECONDS)
        monitor.report()
        if self.stop():
          raise TrialInterrupted
      return code
    finally:
      if process.poll() is None:
        process.terminate()  # Saves a checkpoint.
        process.wait()


@dataclasses.dataclass
class _Monitor:
  """Reports the evaluations of a run to its trial."""

  trial: optuna.Trial
  config: config_lib.Config
  folder: pathlib.Path  # Folder of the trial, which contains the run folder.
  score: float | None = None  # Return of the last evaluation that has one.
  reported: set[int] = dataclasses.field(default_factory=set)

  def report(self):
    """Reports new evaluations; raise TrialPruned if the trial is pruned."""
    step = 0
    with contextlib.suppress(config_lib.ConfigError):  # The run has no folder.
      for row in results.read(run_folder.find(self.folder).path).phase("eval"):
        step, self.score = row["step"], row["return_mean"]
        # Optuna compares trials by the index of the evaluation, because the
        # steps of evaluations differ between trials.
        index = step // self.config.every("eval_every")
        if index not in self.reported:
          self.trial.report(self.score, index)
          self.reported.add(index)
    if 0 < step < self.config.steps and self.trial.should_prune():
      self.trial.set_user_attr("why", f"pruned after {step:,} steps")
      raise optuna.TrialPruned


def first_number(trial: optuna.Trial | optuna.trial.FrozenTrial) -> int:
  """Returns the number that names the folder of a trial.

  Args:
    trial: Trial of a study.

  Returns:
    Number of the trial that `trial` resumes, or its own.
  """
  return trial.user_attrs.get("number", trial.number)
