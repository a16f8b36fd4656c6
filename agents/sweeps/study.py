"""Runs the trials of a sweep; a database contains their results."""

import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import optuna
import sqlalchemy

from agents import config as config_lib
from agents.sweeps import trial_runner

_HEARTBEAT_SECONDS = 10  # Time between two heartbeats of a running trial.
# Time without a heartbeat after which another process resumes a trial.
_GRACE_SECONDS = 60
_MAX_ATTEMPTS = 3  # Attempts to open the database.
_MAX_FAILURES = 3  # Number of consecutive failed trials that end the sweep.
_TrialState = optuna.trial.TrialState


class _Recorder:
  """Runs trials, and records how they failed.

  Args:
    run_trial: Runs one trial; see `trial_runner.TrialRunner`.
  """

  def __init__(self, run_trial: Callable[[optuna.Trial], float]) -> None:
    self.failures: list[Exception] = []  # Errors of consecutive failed trials.
    self.errors: list[Exception] = []  # Optuna's threads may drop exceptions.
    self.taken_over: list[int] = []  # Trials that another process has failed.
    self._run_trial = run_trial

  def run(self, trial: optuna.Trial) -> float:
    """Runs a trial; returns its score.

    Args:
      trial: Trial of the study.
    """
    try:
      return self._run_trial(trial)
    except (
      trial_runner.TrialInterrupted,
      optuna.TrialPruned,
      optuna.exceptions.UpdateFinishedTrialError,
    ):
      raise
    except Exception as error:
      failed = isinstance(error, trial_runner.TrialFailed)
      (self.failures if failed else self.errors).append(error)
      raise
    finally:
      if trial.storage.get_trial(trial._trial_id).state.is_finished():
        self.taken_over.append(trial.number)


class Study:
  """A study in a database that several processes can share.

  Args:
    storage: URL of the database.
    name: Name of the study.
    about: Settings that must be the same in all processes, as JSON data.
    sampler: Suggests the settings of trials.
    pruner: Selects trials to prune.

  Raises:
    ConfigError: If the database can't be used, or contains a study with this
      name and other settings.
  """

  def __init__(
    self,
    storage: str,
    name: str,
    about: dict[str, Any],
    sampler: optuna.samplers.BaseSampler,
    pruner: optuna.pruners.BasePruner,
  ) -> None:
    for attempt in range(1, _MAX_ATTEMPTS + 1):
      try:
        self._storage = _open_storage(storage)
        self._study = optuna.create_study(
          storage=self._storage,
          study_name=name,
          direction="maximize",
          sampler=sampler,
          load_if_exists=True,
          pruner=pruner,
        )
        break
      except Exception as error:  # The class depends on the database driver.
        if attempt == _MAX_ATTEMPTS:
          raise config_lib.ConfigError(f"--storage {storage} can't be used: {error}") from error
        time.sleep(1)  # Another process may be creating the tables.
    before = self._study.user_attrs.get("about", about)
    if differing := [key for key, value in about.items() if before.get(key, value) != value]:
      raise config_lib.ConfigError(
        f"the study {name} in {storage} began with a different "
        f"{', '.join(differing)}. Use the same value, or another --study."
      )
    self._study.set_user_attr("about", about)

  @property
  def ended(self) -> list[optuna.trial.FrozenTrial]:
    """Complete, pruned and failed trials; interrupted trials are excluded."""
    return list(filter(has_ended, self._study.get_trials(deepcopy=False)))

  @property
  def best(self) -> list[optuna.trial.FrozenTrial]:
    """Complete trials, the best one first."""
    return sorted(self._in_state(_TrialState.COMPLETE), key=lambda trial: -trial.values[0])

  def enqueue(self, numbers: Iterable[int]) -> None:
    """Adds waiting trials, unless the study contains them already.

    Args:
      numbers: Numbers of the trials; see `trial_runner.first_number`.
    """
    # The process of an interrupted trial may die before it adds the successor.
    known = {
      trial_runner.first_number(trial)
      for trial in self._study.get_trials(deepcopy=False)
      if trial.state != _TrialState.FAIL or has_ended(trial)
    }
    for number in numbers:
      if number not in known:
        self._study.enqueue_trial({}, {"number": number})

  def run(
    self,
    run_trial: Callable[[optuna.Trial], float],
    num_trials: int,
    num_parallel: int,
    stop: Callable[[], bool],
    report: Callable[[optuna.trial.FrozenTrial], None],
  ) -> None:
    """Runs trials until the study has `num_trials` ended trials.

    Trials of other processes and of earlier calls count, too.

    Args:
      run_trial: Runs one trial; see `trial_runner.TrialRunner`.
      num_trials: Number of trials in the study.
      num_parallel: Number of trials that this process runs simultaneously.
      stop: Returns whether the sweep is interrupted.
      report: Called with each trial that ended in this process.

    Raises:
      TrialFailed: If several consecutive trials failed.
    """
    recorder = _Recorder(run_trial)

    def after_trial(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
      if trial.state != _TrialState.FAIL:
        recorder.failures.clear()
      if trial.state == _TrialState.FAIL and "why" not in trial.user_attrs:
        _resume_later(study, trial)
      else:
        report(trial)
      too_many_failures = len(recorder.failures) >= _MAX_FAILURES
      if stop() or too_many_failures or self._num_missing(num_trials) <= 0:
        study.stop()

    caught = trial_runner.TrialFailed, trial_runner.TrialInterrupted
    while not stop() and len(self.ended) < num_trials:
      self._enqueue_stale_trials()
      if (num_missing := self._num_missing(num_trials)) > 0:
        try:
          self._study.optimize(
            recorder.run, num_missing, n_jobs=num_parallel, catch=caught, callbacks=[after_trial]
          )
        except (ValueError, AssertionError):  # Optuna cannot update ended trials.
          if not recorder.taken_over:
            raise
        if recorder.errors:
          raise recorder.errors[0]
      else:
        # If the processes that run the last trials die, this one resumes them.
        time.sleep(1)
      if len(recorder.failures) >= _MAX_FAILURES:
        raise recorder.failures[-1]

  def _enqueue_stale_trials(self) -> None:
    """Enqueues the trials of processes that have died.

    Optuna finds only trials with a heartbeat, so this process records the first
    heartbeat of a running trial if its own process has not done so.
    """
    optuna.storages.fail_stale_trials(self._study)
    query = sqlalchemy.text("SELECT trial_id FROM trial_heartbeats")
    with self._storage.engine.connect() as connection:
      with_heartbeat = set(connection.scalars(query))
    for trial in self._in_state(_TrialState.RUNNING):
      if trial._trial_id not in with_heartbeat:
        self._storage.record_heartbeat(trial._trial_id)

  def _num_missing(self, num_trials: int) -> int:
    """Returns the number of trials that have neither ended nor started."""
    return num_trials - len(self.ended) - len(self._in_state(_TrialState.RUNNING))

  def _in_state(self, state: _TrialState) -> list[optuna.trial.FrozenTrial]:
    return self._study.get_trials(deepcopy=False, states=(state,))


def has_ended(trial: optuna.trial.FrozenTrial) -> bool:
  """Returns whether a trial is complete, pruned or failed.

  Args:
    trial: Trial of a study. Interrupted trials have not ended, because another
      trial continues their runs.
  """
  return trial.state in (_TrialState.COMPLETE, _TrialState.PRUNED) or (
    trial.state == _TrialState.FAIL and "why" in trial.user_attrs
  )


def _resume_later(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
  """Enqueues a new trial that continues the run of an interrupted trial."""
  study.enqueue_trial(trial.params, {"number": trial_runner.first_number(trial)})


def _open_storage(url: str) -> optuna.storages.RDBStorage:
  # Optuna warns that heartbeats are experimental.
  warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
  sqlite = url.startswith("sqlite")
  # SQLite serializes the writes of threads and processes.
  engine_kwargs = {"connect_args": {"timeout": 60, "isolation_level": None}}
  storage = optuna.storages.RDBStorage(
    url,
    engine_kwargs=engine_kwargs if sqlite else None,
    heartbeat_interval=_HEARTBEAT_SECONDS,
    grace_period=_GRACE_SECONDS,
    heartbeat_stale_trial_callback=_resume_later,
  )
  if sqlite:
    # Two processes must not start the same waiting trial. Other databases lock
    # the row that a transaction reads and updates. For SQLite, Python would
    # start a transaction only at the first write. The isolation level None
    # disables this, and the listener starts each transaction before the first
    # read.
    sqlalchemy.event.listen(
      storage.engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE")
    )
  return storage
