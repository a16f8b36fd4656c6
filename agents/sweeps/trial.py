"""A trial is a run of training, in a process of its own."""

from __future__ import annotations

import os
import pathlib
import queue
import signal
import subprocess
import sys
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

import optuna

from agents import config as config_lib
from agents import errors
from agents.environments.workers import pool
from agents.reports import results
from agents.sweeps import space as space_lib
from agents.training.run_folder import run_folder

_MOST_KILLS = 3  # Of one trial's process.
_SECONDS_TO_LOOK = 0.5


class TrialFailed(errors.RunError):
  """Training ended with an error."""


class Stopped(Exception):
  """The sweep is to end, and the trial is to go on another time."""


class Trials:
  """Trains with what the study suggests, and tells it how that goes.

  Args:
    build: Returns the config of a run with some settings, by dotted keys, or
      raises ConfigError if they don't go together.
    arguments: Returns the arguments with which `train` trains with them.
    space: Of the settings to try.
    logdir: Folder for the runs.
    at_once: Trials side by side. A single one has all cores; of several, each
      has one, and no processes for its environments.
    stop: Asked time and again whether to leave off.
  """

  def __init__(self, build: Callable[[dict[str, Any]], config_lib.Config],
               arguments: Callable[[dict[str, Any]], list[str]],
               space: space_lib.Space, logdir: pathlib.Path, at_once: int,
               stop: Callable[[], bool]):
    self._build = build
    self._arguments = arguments
    self._space = space
    self._logdir = logdir
    self._at_once = at_once
    self._stop = stop
    self._cores: queue.Queue[str] = queue.Queue()
    for core in _cores(at_once):
      self._cores.put(core)

  def __call__(self, trial: optuna.Trial) -> float:
    """Return the last return of a trial, by the mean action.

    Raises:
      TrialPruned: If others were better at the time, or the settings can't be
        or made training diverge: the study learns to avoid these.
      TrialFailed: If training ended with an error.
      Stopped: If the trial is to go on another time.
    """
    core = self._cores.get()
    try:
      return self._train(trial, core)
    finally:
      self._cores.put(core)

  def _train(self, trial: optuna.Trial, core: str) -> float:
    number = first_number(trial)
    settings = self._space.suggest(trial)
    trial.set_user_attr("arguments", self._arguments(settings))
    settings["seed"] = self._build({}).seed + number
    try:
      config = self._build(settings)
    except config_lib.ConfigError as error:
      trial.set_user_attr("why", f"settings that can't be: {error}")
      raise optuna.TrialPruned from None
    place = self._logdir / f"trial-{number:04}"
    place.mkdir(parents=True, exist_ok=True)
    told: set[int] = set()
    for _ in range(1 + _MOST_KILLS):
      if self._stop():
        raise Stopped
      code = self._run(trial, core, place, config, settings, told)
      if code == 0:
        break
      if code == errors.TrainingDiverged.exit_code:
        trial.set_user_attr("why", "diverged")
        raise optuna.TrialPruned
      if code > 0 and code - 128 not in (signal.SIGINT, signal.SIGTERM):
        raise TrialFailed(_failure(trial, code, place))
      # It was killed, and goes on from its checkpoint.
    else:
      raise TrialFailed(_failure(trial, code, place))
    scores = [row["return_mean"] for row in _evaluations(place)]
    if not scores:
      trial.set_user_attr("why", "no episode of an evaluation came to an end")
      raise TrialFailed(f"Trial {trial.number}: {trial.user_attrs['why']}.")
    return scores[-1]

  def _run(self, trial: optuna.Trial, core: str, place: pathlib.Path,
           config: config_lib.Config, settings: dict[str, Any], told: set[int]
           ) -> int:
    """Train in a process until that ends, and return its exit code."""
    with open(place / "output.txt", "ab") as output:
      process = subprocess.Popen(
          self._command(core, place, config, settings), stdout=output,
          stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
          start_new_session=True)  # Ctrl-C is for us alone.
    try:
      ended = False
      while not ended:
        try:
          process.wait(_SECONDS_TO_LOOK)
          ended = True
        except subprocess.TimeoutExpired:
          pass
        step = None
        for row in _evaluations(place):
          step = row["step"]
          # Counted, because steps are not quite the same in all trials.
          turn = step // config.every("eval_every")
          if turn not in told:
            trial.report(row["return_mean"], turn)
            told.add(turn)
        if step and step < config.steps and trial.should_prune():
          trial.set_user_attr("why", f"pruned after {step:,} steps")
          raise optuna.TrialPruned
        if self._stop():
          raise Stopped
      return process.returncode
    finally:
      if process.poll() is None:
        process.terminate()  # Saves a checkpoint.
        process.wait()

  def _command(self, core: str, place: pathlib.Path,
               config: config_lib.Config, settings: dict[str, Any]
               ) -> list[str]:
    child = [sys.executable, "-m", "agents.sweeps.child", core, sys.executable,
             "-m", "agents", "train"]
    if core != "all":
      child.append("--no-env-processes")
    if folder := run_folder.resumable(place, config):
      return [*child, "--resume", str(folder.path)]
    return [*child, "--logdir", str(place), *self._arguments(settings)]


def first_number(trial: optuna.Trial | optuna.trial.FrozenTrial) -> int:
  """Return the number of the trial that this one goes on from, or its own."""
  return trial.user_attrs.get("number", trial.number)


def _cores(at_once: int) -> list[str]:
  """Return a core for each of the trials side by side."""
  if at_once == 1:
    return ["all"]
  cores = (sorted(os.sched_getaffinity(0))
           if hasattr(os, "sched_getaffinity") else range(pool.cores()))
  return [str(cores[number % len(cores)]) for number in range(at_once)]


def _evaluations(place: pathlib.Path) -> Iterator[dict[str, Any]]:
  """Return all evaluations of the newest run that have a score."""
  try:
    run = results.read(run_folder.find(place).path)
  except config_lib.ConfigError:  # It has not begun yet.
    return
  yield from run.phase("eval")


def _failure(trial: optuna.Trial, code: int, place: pathlib.Path) -> str:
  """Return what there is to say of a run that failed, and keep it."""
  path = place / "output.txt"
  trial.set_user_attr("why", f"failed with exit code {code}, see {path}")
  last = "\n".join(path.read_text(errors="replace").splitlines()[-20:])
  return f"Trial {trial.number} failed with exit code {code}:\n{last}"
