"""Runs a trial of a sweep: trains in a process of its own."""

from __future__ import annotations

import contextlib
import os
import pathlib
import queue
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


class TrialRunner:
  """Trains with the settings that a study suggests.

  Args:
    build: Returns the config of a run with settings by dotted key, or raises
      ConfigError if they are invalid.
    arguments: Returns the command-line arguments of `train` for settings.
    space: Settings to try.
    logdir: Folder of the trials.
    num_parallel: Trials at the same time. A single trial uses all cores;
      several trials use one core each and no worker processes.
    stop: Returns whether the sweep is interrupted.
  """

  def __init__(self, build: Callable[[dict[str, Any]], config_lib.Config],
               arguments: Callable[[dict[str, Any]], list[str]],
               space: search_space.SearchSpace, logdir: pathlib.Path,
               num_parallel: int, stop: Callable[[], bool]):
    self._build = build
    self._arguments = arguments
    self._space = space
    self._logdir = logdir
    self._stop = stop
    self._cores: queue.Queue[str] = queue.Queue()
    for core in _cores(num_parallel):
      self._cores.put(core)

  def __call__(self, trial: optuna.Trial) -> float:
    """Run a trial until its budget is used up.

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
    settings = self._space.suggest(trial)
    trial.set_user_attr("arguments", self._arguments(settings))
    number = first_number(trial)
    settings["seed"] = self._build({}).seed + number
    try:
      config = self._build(settings)
    except config_lib.ConfigError as error:
      trial.set_user_attr("why", f"invalid settings: {error}")
      raise optuna.TrialPruned from None
    folder = self._logdir / f"trial-{number:04}"
    folder.mkdir(parents=True, exist_ok=True)
    monitor = _Monitor(trial, config, folder)
    core = self._cores.get()
    try:
      self._train(monitor, core, self._arguments(settings))
    finally:
      self._cores.put(core)
    return monitor.last_score()

  def _train(self, monitor: _Monitor, core: str, arguments: list[str]):
    """Train until the process succeeds; restart it if it is killed."""
    for _ in range(1 + _MAX_RESTARTS):
      code = self._run_process(monitor, core, arguments)
      if code == 0:
        return
      if code == errors.TrainingDiverged.exit_code:
        monitor.trial.set_user_attr("why", "diverged")
        raise optuna.TrialPruned
      if code > 0 and code - 128 not in (signal.SIGINT, signal.SIGTERM):
        break
    raise monitor.failure(code)

  def _run_process(self, monitor: _Monitor, core: str, arguments: list[str]
                   ) -> int:
    """Train in a process until it ends, and return its exit code."""
    if self._stop():
      raise TrialInterrupted
    command = [sys.executable, "-m", "agents.sweeps.trial_process", core,
               sys.executable, "-m", "agents", "train"]
    if core != "all":
      command.append("--no-env-processes")
    if runs := run_folder.with_config(monitor.folder, monitor.config):
      command += ["--resume", str(runs[0].path)]
    else:
      command += ["--logdir", str(monitor.folder), *arguments]
    with open(monitor.output, "ab") as output:
      process = subprocess.Popen(
          command, stdout=output, stderr=subprocess.STDOUT,
          stdin=subprocess.DEVNULL, start_new_session=True)  # Ignores Ctrl-C.
    try:
      code = None
      while code is None:
        with contextlib.suppress(subprocess.TimeoutExpired):
          code = process.wait(_POLL_SECONDS)
        monitor.report()
        if self._stop():
          raise TrialInterrupted
      return code
    finally:
      if process.poll() is None:
        process.terminate()  # Saves a checkpoint.
        process.wait()


class _Monitor:
  """Reports the evaluations of a run to its trial.

  Attributes:
    trial: Trial of a study.
    config: Configuration of the run.
    folder: Folder of the trial, which contains the run folder.
    output: File with the console output of the run.
  """

  def __init__(self, trial: optuna.Trial, config: config_lib.Config,
               folder: pathlib.Path):
    self.trial = trial
    self.config = config
    self.folder = folder
    self.output = folder / "output.txt"
    self._reported: set[int] = set()

  def report(self):
    """Report new evaluations; raise TrialPruned if the trial is pruned."""
    step = 0
    for row in self._evaluations():
      step = row["step"]
      # The index, because the steps of evaluations differ between trials.
      index = step // self.config.every("eval_every")
      if index not in self._reported:
        self.trial.report(row["return_mean"], index)
        self._reported.add(index)
    if 0 < step < self.config.steps and self.trial.should_prune():
      self.trial.set_user_attr("why", f"pruned after {step:,} steps")
      raise optuna.TrialPruned

  def last_score(self) -> float:
    """Return the last score; raise TrialFailed if the run has none."""
    evaluations = self._evaluations()
    if not evaluations:
      reason = "no evaluation episode ended"
      self.trial.set_user_attr("why", reason)
      raise TrialFailed(f"Trial {self.trial.number}: {reason}.")
    return evaluations[-1]["return_mean"]

  def failure(self, code: int) -> TrialFailed:
    """Return an error with the last output, and add it to the trial."""
    reason = f"failed with exit code {code}"
    self.trial.set_user_attr("why", f"{reason}, see {self.output}")
    lines = self.output.read_text(errors="replace").splitlines()[-20:]
    return TrialFailed(
        "\n".join([f"Trial {self.trial.number} {reason}:", *lines]))

  def _evaluations(self) -> list[dict[str, Any]]:
    """Return all evaluations with a score, none before the run starts."""
    try:
      return results.read(run_folder.find(self.folder).path).phase("eval")
    except config_lib.ConfigError:
      return []


def first_number(trial: optuna.Trial | optuna.trial.FrozenTrial) -> int:
  """Return the number that names the folder of a trial.

  Args:
    trial: Trial of a study.
  Returns:
    Number of the trial that `trial` resumes, or its own.
  """
  return trial.user_attrs.get("number", trial.number)


def _cores(num_parallel: int) -> list[str]:
  """Return a core for each of the parallel trials."""
  if num_parallel == 1:
    return ["all"]
  cores = (sorted(os.sched_getaffinity(0))
           if hasattr(os, "sched_getaffinity") else range(pool.num_cores()))
  return [str(cores[index % len(cores)]) for index in range(num_parallel)]
