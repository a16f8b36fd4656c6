"""The trials of a sweep, kept in a storage that processes can share."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

import optuna
import sqlalchemy

from agents import config as config_lib
from agents.sweeps import trial_runner

_HEARTBEAT = 10  # Seconds between signs of life of a running trial.
_GRACE = 60  # Seconds without any, before somebody else goes on with it.
_MOST_ATTEMPTS = 3  # To open a storage.
_MOST_FAILURES = 3  # In a row, before the sweep ends.
_TrialState = optuna.trial.TrialState


class Study:
  """A sweep that stops at a number of trials, whoever ran them.

  Suggestions are those of a tree-structured Parzen estimator (Bergstra et al.,
  2011). A trial is pruned that is below the median of the others' evaluations
  at the same part of the budget (Golovin et al., 2017), after a quarter of it.

  Args:
    storage: URL of a database.
    name: Of the study.
    about: Plain data that must be the same wherever trials are run.
    evaluations: Of a trial.
  Raises:
    ConfigError: If the storage can't be used, or has a study of this name that
      is about something else.
  """

  def __init__(self, storage: str, name: str, about: dict[str, Any],
               evaluations: int):
    for attempt in range(_MOST_ATTEMPTS):
      try:
        self._storage = _open(storage)
        self._study = _create(self._storage, name, evaluations)
        break
      except Exception as error:  # Whatever this database's driver raises.
        if attempt == _MOST_ATTEMPTS - 1:
          raise config_lib.ConfigError(
              f"--storage {storage} can't be used: {error}") from error
        time.sleep(1)  # Another process may be creating the tables.
    self._watched: set[int] = set()
    before = self._study.user_attrs.get("about", about)
    if differing := [key for key, value in about.items()
                     if before.get(key, value) != value]:
      raise config_lib.ConfigError(
          f"the study {name} in {storage} began with another "
          f"{', '.join(differing)}; give the same, or another --study.")
    self._study.set_user_attr("about", about)

  @property
  def ended(self) -> list[optuna.trial.FrozenTrial]:
    """Trials that nobody goes on with, with a value, pruned or failed."""
    return [trial for trial in self._study.get_trials(deepcopy=False)
            if trial.state in (_TrialState.COMPLETE, _TrialState.PRUNED)
            or (trial.state == _TrialState.FAIL and "why" in trial.user_attrs)]

  @property
  def best(self) -> list[optuna.trial.FrozenTrial]:
    """Trials that came to their end, the best one first."""
    return sorted(
        self._study.get_trials(deepcopy=False, states=(_TrialState.COMPLETE,)),
        key=lambda trial: -trial.values[0])

  def run(self, trials: Callable[[optuna.Trial], float], amount: int,
          at_once: int, stop: Callable[[], bool],
          tell: Callable[[optuna.trial.FrozenTrial], None]):
    """Run trials until so many have ended, of this and of other processes.

    Args:
      trials: Runs one and returns its value; see `trial_runner.TrialRunner`.
      amount: How many must have ended in all.
      at_once: How many to run side by side.
      stop: Asked time and again whether to leave off.
      tell: Called with each trial that has ended here.
    Raises:
      TrialFailed: If several in a row have failed.
    """
    failures: list[trial_runner.TrialFailed] = []  # In a row.
    errors: list[Exception] = []  # Optuna loses some, with several threads.
    def run_one(trial):
      try:
        value = trials(trial)
      except trial_runner.TrialFailed as error:
        failures.append(error)
        raise
      except optuna.TrialPruned:
        failures.clear()
        raise
      except Exception as error:
        if not isinstance(error, trial_runner.TrialInterrupted):
          errors.append(error)
        raise
      failures.clear()
      return value
    def after(study, trial):
      if trial.state == _TrialState.FAIL and "why" not in trial.user_attrs:
        again(study, trial)
      else:
        tell(trial)
      if stop() or len(failures) >= _MOST_FAILURES or self._left(amount) <= 0:
        study.stop()
    while not stop() and len(self.ended) < amount:
      with _quiet():
        optuna.storages.fail_stale_trials(self._study)
      self._watch()
      if (left := self._left(amount)) > 0:
        self._study.optimize(
            run_one, n_trials=left, n_jobs=at_once,
            catch=(trial_runner.TrialFailed, trial_runner.TrialInterrupted),
            callbacks=[after])
        if errors:
          raise errors[0]
      else:
        time.sleep(1)  # Others are at it; should they die, we go on.
      if len(failures) >= _MOST_FAILURES:
        raise failures[-1]

  def _left(self, amount: int) -> int:
    """Return how many trials nobody runs or has run."""
    return amount - len(self.ended) - len(self._running)

  @property
  def _running(self) -> list[optuna.trial.FrozenTrial]:
    return self._study.get_trials(
        deepcopy=False, states=(_TrialState.RUNNING,))

  def _watch(self):
    """Give a sign of life, once, for each trial that runs: of one that died
    before its first, Optuna would never miss the next."""
    for trial in self._running:
      if trial._trial_id not in self._watched:
        self._watched.add(trial._trial_id)
        self._storage.record_heartbeat(trial._trial_id)


def again(study: optuna.Study, trial: optuna.trial.FrozenTrial):
  """Let somebody go on with a trial that was broken off."""
  study.enqueue_trial(
      trial.params, {"number": trial_runner.first_number(trial)})


def _open(url: str) -> optuna.storages.RDBStorage:
  # Several threads and processes write to SQLite, one after the other.
  patience = ({"connect_args": {"timeout": 60}} if url.startswith("sqlite")
              else None)
  with _quiet():
    storage = optuna.storages.RDBStorage(
        url, engine_kwargs=patience, heartbeat_interval=_HEARTBEAT,
        grace_period=_GRACE, heartbeat_stale_trial_callback=again)
  if storage.engine.name == "sqlite":
    _lock_before_reading(storage.engine)
  return storage


def _create(storage: optuna.storages.RDBStorage, name: str, evaluations: int
            ) -> optuna.Study:
  """Create a study, or open the one that there is."""
  return optuna.create_study(
      storage=storage, study_name=name, direction="maximize",
      sampler=optuna.samplers.TPESampler(), load_if_exists=True,
      pruner=optuna.pruners.MedianPruner(n_warmup_steps=evaluations // 4))


def _lock_before_reading(engine: sqlalchemy.Engine):
  """Let no two take the same waiting trial.

  Other databases lock the row that a transaction reads to change it. Python's
  SQLite begins a transaction only with what it writes, unless it is told to.
  """
  def connected(connection, _):
    connection.isolation_level = None  # Nothing begins by itself.
  def begun(connection):
    connection.exec_driver_sql("BEGIN IMMEDIATE")
  sqlalchemy.event.listen(engine, "connect", connected)
  sqlalchemy.event.listen(engine, "begin", begun)
  engine.dispose()  # The connections that there were.


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
  """Leave out that heartbeats are experimental."""
  with warnings.catch_warnings():
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    yield
