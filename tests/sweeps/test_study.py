import sqlite3
import subprocess
import sys
import threading
import time

import optuna
import pytest

from agents import config as config_lib
from agents.sweeps import study as study_lib
from agents.sweeps import trial_runner
from tests.support import command


@pytest.fixture
def storage(tmp_path):
  return f"sqlite:///{tmp_path / 'study.db'}"


def _study(storage, about=None):
  pruner = optuna.pruners.MedianPruner(n_warmup_steps=5)
  return study_lib.Study(
    storage, "name", about or {"steps": 1}, optuna.samplers.TPESampler(), pruner
  )


def _run(study, run_trial, num_trials, num_parallel=1, stop=lambda: False):
  """Runs trials, and returns the trials that ended."""
  ended = []
  study.run(run_trial, num_trials, num_parallel, stop, ended.append)
  return ended


def _negative_square(trial):
  return -((trial.suggest_float("x", -10, 10) - 2) ** 2)


@pytest.mark.parametrize("num_parallel", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_study_runs_its_number_of_trials_and_sorts_them(storage, num_parallel):
  assert len(_run(_study(storage), _negative_square, 15, num_parallel)) == 15
  study = _study(storage)
  assert len(study.ended) == len(study.best) == 15
  values = [trial.value for trial in study.best]
  assert values == sorted(values, reverse=True)
  assert abs(study.best[0].params["x"] - 2) < 2


@pytest.mark.slow
def test_trials_of_earlier_sweeps_count(storage):
  _run(_study(storage), _negative_square, 3)
  assert len(_run(_study(storage), _negative_square, 5)) == 2
  assert not _run(_study(storage), _negative_square, 5)


def test_trials_run_in_parallel(storage):
  barrier = threading.Barrier(2, timeout=30)

  def meet(trial):
    barrier.wait()
    return 0.0

  assert len(_run(_study(storage), meet, 4, num_parallel=2)) == 4


def test_interrupted_trial_resumes_with_the_same_values(storage):
  stopping, tried = [], []

  def interrupt(trial):
    tried.append(trial.suggest_float("x", 0, 1))
    if len(tried) == 2:
      stopping.append(True)
      raise trial_runner.TrialInterrupted
    return 0.0

  ended = _run(_study(storage), interrupt, 4, stop=lambda: bool(stopping))
  assert len(ended) == 1
  numbers = []

  def resume(trial):
    numbers.append((trial_runner.first_number(trial), trial.suggest_float("x", 0, 1)))
    return 1.0

  study = _study(storage)
  assert len(_run(study, resume, 4)) == 3
  assert numbers[0] == (1, tried[1])
  assert len(study.ended) == 4


@pytest.mark.slow
def test_trials_of_killed_process_are_resumed_by_another(storage, monkeypatch):
  monkeypatch.setattr(study_lib, "_HEARTBEAT_SECONDS", 1)
  monkeypatch.setattr(study_lib, "_GRACE_SECONDS", 2)
  study = _study(storage)
  process = subprocess.Popen(
    [
      sys.executable,
      "-c",
      f"""
import time
import optuna
from agents.sweeps import study as study_lib
study_lib._HEARTBEAT_SECONDS, study_lib._GRACE_SECONDS = 1, 2
study = study_lib.Study(
  {storage!r}, "name", {{"steps": 1}}, optuna.samplers.TPESampler(), optuna.pruners.NopPruner()
)
def hang(trial):
  print(trial.suggest_float("x", 0, 1), flush=True)
  time.sleep(100)
study.run(hang, 1, 1, lambda: False, print)
""",
    ],
    stdout=subprocess.PIPE,
    text=True,
    cwd=command.ROOT,
  )
  value = float(process.stdout.readline())
  start_times = []

  def resume(trial):
    start_times.append(time.monotonic())
    return trial.suggest_float("x", 0, 1)

  killed = time.monotonic()
  process.kill()
  process.communicate()
  # The grace period passes before the trial is resumed.
  (ended,) = _run(study, resume, 1)
  assert start_times[0] > killed + 1
  assert ended.value == value and trial_runner.first_number(ended) == 0


@pytest.mark.filterwarnings("ignore:Heartbeat of storage")
def test_restarted_sweeps_do_not_delay_the_takeover_of_a_trial(storage):
  study = _study(storage)
  trial = study._study.ask()
  study._storage.record_heartbeat(trial._trial_id)
  with sqlite3.connect(storage.removeprefix("sqlite:///")) as database:
    database.execute("UPDATE trial_heartbeats SET heartbeat = datetime('now', '-50 seconds')")
  rows = []
  for _ in range(2):
    _study(storage)._enqueue_stale_trials()
    with sqlite3.connect(storage.removeprefix("sqlite:///")) as database:
      rows.append(database.execute("SELECT * FROM trial_heartbeats").fetchall())
  assert rows[0] == rows[1] and len(rows[0]) == 1
  age = "SELECT julianday('now') - julianday(heartbeat) FROM trial_heartbeats"
  with sqlite3.connect(storage.removeprefix("sqlite:///")) as database:
    assert database.execute(age).fetchone()[0] * 86400 > 40


@pytest.mark.slow
def test_trial_killed_before_its_first_heartbeat_is_resumed(storage, monkeypatch):
  monkeypatch.setattr(study_lib, "_HEARTBEAT_SECONDS", 1)
  monkeypatch.setattr(study_lib, "_GRACE_SECONDS", 2)
  optuna.create_study(  # Starts a trial without a heartbeat.
    study_name="name", storage=storage, direction="maximize"
  ).ask()
  deadline = time.monotonic() + 60
  (ended,) = _run(_study(storage), _negative_square, 1, stop=lambda: time.monotonic() > deadline)
  assert trial_runner.first_number(ended) == 0


@pytest.mark.parametrize("num_parallel", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_sweep_continues_after_another_process_has_failed_a_trial(storage, num_parallel):
  # A process fails trials without signs of life, for example after a sleep of
  # this computer, although their processes still run.
  others = _study(storage)._study._storage

  def run_trial(trial):
    if trial.number == 1:
      others.set_trial_state_values(trial._trial_id, optuna.trial.TrialState.FAIL)
    if trial.number == 2:
      others.set_trial_state_values(trial._trial_id, optuna.trial.TrialState.FAIL)
      trial.report(0.0, 1)
    return trial.number

  ended = _run(_study(storage), run_trial, 4, num_parallel)
  assert sorted(trial.number for trial in ended) == [0, 3, 4, 5]


@pytest.mark.slow
def test_parallel_trials_resume_different_trials(storage):
  stopping = []

  def interrupt(trial):
    trial.suggest_float("x", 0, 1)
    stopping.append(True)
    raise trial_runner.TrialInterrupted

  barrier = threading.Barrier(4, timeout=30)

  def interrupt_together(trial):
    barrier.wait()
    interrupt(trial)

  study = _study(storage)
  for _ in range(2):
    stopping.clear()
    _run(study, interrupt_together, 4, num_parallel=4, stop=lambda: bool(stopping))
  numbers = []

  def resume(trial):
    numbers.append(trial_runner.first_number(trial))
    return trial.suggest_float("x", 0, 1)

  _run(study, resume, 4, num_parallel=4)
  assert sorted(numbers) == [0, 1, 2, 3]


def test_unexpected_error_of_any_thread_ends_the_sweep(storage):
  barrier = threading.Barrier(2, timeout=30)

  def fail_first(trial):
    barrier.wait()
    return 1 / trial.number

  with pytest.raises(ZeroDivisionError):
    _run(_study(storage), fail_first, 2, num_parallel=2)


def test_pruned_and_failed_trials_count(storage):
  def run_trial(trial):
    x = trial.suggest_int("x", 0, 9)
    if trial.number == 1:
      trial.set_user_attr("why", "failed")
      raise trial_runner.TrialFailed("Something.")
    if trial.number == 2:
      trial.report(1.0, 0)
      raise optuna.TrialPruned
    return x

  study = _study(storage)
  ended = _run(study, run_trial, 4)
  assert [trial.number for trial in ended] == [0, 1, 2, 3]
  assert sorted(trial.number for trial in study.best) == [0, 3]


def test_consecutive_failures_end_the_sweep(storage):
  def fail(trial):
    if trial.number in (2, 3):
      return 0.0
    trial.set_user_attr("why", "failed")
    raise trial_runner.TrialFailed(f"Trial {trial.number}.")

  with pytest.raises(trial_runner.TrialFailed, match="Trial 6."):
    _run(_study(storage), fail, 20)


@pytest.mark.slow
def test_trials_below_the_median_are_pruned(storage):
  def learn(trial):
    for index in range(1, 9):
      trial.report(index * (1 if trial.number < 6 else -1), index)
      if trial.should_prune():
        trial.set_user_attr("index", index)
        raise optuna.TrialPruned
    return 20.0

  ended = _run(_study(storage), learn, 8)
  assert [trial.user_attrs.get("index") for trial in ended] == (6 * [None] + [5, 5])


def test_study_with_other_settings_raises_an_error(storage):
  _study(storage, {"steps": 1, "space": {"a": [1]}})
  _study(storage, {"steps": 1, "space": {"a": [1]}, "new_setting": 3})
  with pytest.raises(config_lib.ConfigError, match="began with a different space"):
    _study(storage, {"steps": 1, "space": {"a": [2]}})


@pytest.mark.parametrize("url", ["sqlite:////nowhere/at/all.db", "nonsense", "mysql://host/name"])
def test_unusable_storage_raises_an_error(url, monkeypatch):
  monkeypatch.setattr(study_lib, "_MAX_ATTEMPTS", 1)
  with pytest.raises(config_lib.ConfigError, match=f"{url} can't be used"):
    _study(url)


@pytest.mark.slow
def test_processes_start_a_study_concurrently(storage):
  code = f"""
import optuna
from agents.sweeps import study as study_lib
study = study_lib.Study(
  {storage!r}, "name", {{"steps": 1}}, optuna.samplers.TPESampler(), optuna.pruners.NopPruner()
)
study.run(lambda trial: trial.suggest_float("x", 0, 1), 12, 2,
          lambda: False, print)
"""
  processes = [subprocess.Popen([sys.executable, "-c", code], cwd=command.ROOT) for _ in range(3)]
  assert [process.wait(timeout=100) for process in processes] == [0, 0, 0]
  assert 12 <= len(_study(storage).ended) <= 12 + 3 * 2


def test_number_of_a_killed_trial_is_enqueued_again(storage):
  study = _study(storage)
  study.enqueue([0, 1])
  first, second = study._study.ask(), study._study.ask()
  # The process dies before it adds the successor of the first trial.
  study._study.tell(first, state=optuna.trial.TrialState.FAIL)
  second.set_user_attr("why", "failed")
  study._study.tell(second, state=optuna.trial.TrialState.FAIL)
  study.enqueue([0, 1])
  assert trial_runner.first_number(study._study.ask()) == 0
  study.enqueue([0, 1])
  waiting = study._study.get_trials(states=[optuna.trial.TrialState.WAITING])
  assert not waiting
