import subprocess
import sys
import threading
import time

import optuna
import pytest

from agents import config as config_lib
from agents.sweeps import study as study_lib
from agents.sweeps import trial_runner
from tests import command


@pytest.fixture
def storage(tmp_path):
  return f"sqlite:///{tmp_path / 'study.db'}"


def _study(storage, about=None):
  return study_lib.Study(storage, "name", about or {"steps": 1}, 20)


def _run(study, trials, amount, at_once=1, stop=lambda: False):
  told = []
  study.run(trials, amount, at_once, stop, told.append)
  return told


def _square(trial):
  return -(trial.suggest_float("x", -10, 10) - 2) ** 2


@pytest.mark.parametrize("at_once", [1, 3])
def test_so_many_trials_are_run_and_the_best_stands_first(storage, at_once):
  told = _run(_study(storage), _square, 15, at_once)
  assert len(told) == 15
  study = _study(storage)
  assert len(study.ended) == len(study.best) == 15
  values = [trial.value for trial in study.best]
  assert values == sorted(values, reverse=True)
  assert abs(study.best[0].params["x"] - 2) < 2


def test_trials_of_before_count(storage):
  _run(_study(storage), _square, 3)
  assert len(_run(_study(storage), _square, 5)) == 2
  assert not _run(_study(storage), _square, 5)


def test_so_many_run_side_by_side(storage):
  barrier = threading.Barrier(2, timeout=30)
  def meet(trial):
    barrier.wait()
    return 0.0
  assert len(_run(_study(storage), meet, 4, at_once=2)) == 4


def test_what_was_stopped_goes_on_with_the_same_values(storage):
  stopping, tried = [], []
  def stopped(trial):
    tried.append(trial.suggest_float("x", 0, 1))
    if len(tried) == 2:
      stopping.append(True)
      raise trial_runner.TrialInterrupted
    return 0.0
  told = _run(_study(storage), stopped, 4, stop=lambda: bool(stopping))
  assert len(told) == 1
  numbers = []
  def go_on(trial):
    numbers.append((trial_runner.first_number(trial),
                    trial.suggest_float("x", 0, 1)))
    return 1.0
  study = _study(storage)
  assert len(_run(study, go_on, 4)) == 3
  assert numbers[0] == (1, tried[1])
  assert len(study.ended) == 4


@pytest.mark.slow
def test_others_go_on_with_trials_of_a_process_that_was_killed(
    storage, monkeypatch):
  monkeypatch.setattr(study_lib, "_HEARTBEAT", 1)
  monkeypatch.setattr(study_lib, "_GRACE", 2)
  study = _study(storage)
  process = subprocess.Popen(
      [sys.executable, "-c", f"""
import time
from agents.sweeps import study as study_lib
study_lib._HEARTBEAT, study_lib._GRACE = 1, 2
study = study_lib.Study({storage!r}, "name", {{"steps": 1}}, 20)
def hang(trial):
  print(trial.suggest_float("x", 0, 1), flush=True)
  time.sleep(100)
study.run(hang, 1, 1, lambda: False, print)
"""], stdout=subprocess.PIPE, text=True, cwd=command.ROOT)
  value = float(process.stdout.readline())
  waiting = []
  def go_on(trial):
    waiting.append(time.monotonic())
    return trial.suggest_float("x", 0, 1)
  killed = time.monotonic()
  process.kill()
  process.communicate()
  told, = _run(study, go_on, 1)  # Not before nobody else is at it.
  assert waiting[0] > killed + 1
  assert told.value == value and trial_runner.first_number(told) == 0


@pytest.mark.slow
def test_who_was_killed_before_the_first_sign_of_life_is_missed(
    storage, monkeypatch):
  monkeypatch.setattr(study_lib, "_HEARTBEAT", 1)
  monkeypatch.setattr(study_lib, "_GRACE", 2)
  optuna.create_study(  # Without any sign of life.
      study_name="name", storage=storage, direction="maximize").ask()
  deadline = time.monotonic() + 60
  told, = _run(_study(storage), _square, 1,
               stop=lambda: time.monotonic() > deadline)
  assert trial_runner.first_number(told) == 0


def test_no_two_go_on_with_the_same_trial(storage):
  stopping = []
  def stopped(trial):
    trial.suggest_float("x", 0, 1)
    stopping.append(True)
    raise trial_runner.TrialInterrupted
  barrier = threading.Barrier(4, timeout=30)
  def stopped_together(trial):
    barrier.wait()
    stopped(trial)
  study = _study(storage)
  for _ in range(5):
    stopping.clear()
    _run(study, stopped_together, 4, at_once=4, stop=lambda: bool(stopping))
  numbers = []
  def go_on(trial):
    numbers.append(trial_runner.first_number(trial))
    return trial.suggest_float("x", 0, 1)
  _run(study, go_on, 4, at_once=4)
  assert sorted(numbers) == [0, 1, 2, 3]


def test_an_unexpected_error_ends_it_whoever_had_it(storage):
  barrier = threading.Barrier(2, timeout=30)
  def one_of_them(trial):
    barrier.wait()
    return 1 / trial.number
  with pytest.raises(ZeroDivisionError):
    _run(_study(storage), one_of_them, 2, at_once=2)


def test_pruned_trials_and_failed_ones_count(storage):
  def some(trial):
    x = trial.suggest_int("x", 0, 9)
    if trial.number == 1:
      trial.set_user_attr("why", "failed")
      raise trial_runner.TrialFailed("Something.")
    if trial.number == 2:
      trial.report(1.0, 0)
      raise optuna.TrialPruned
    return x
  study = _study(storage)
  told = _run(study, some, 4)
  assert [trial.number for trial in told] == [0, 1, 2, 3]
  assert sorted(trial.number for trial in study.best) == [0, 3]


def test_failures_in_a_row_end_it(storage):
  def fail(trial):
    if trial.number in (2, 3):
      return 0.0
    trial.set_user_attr("why", "failed")
    raise trial_runner.TrialFailed(f"Trial {trial.number}.")
  with pytest.raises(trial_runner.TrialFailed, match="Trial 6."):
    _run(_study(storage), fail, 20)


def test_trials_behind_the_median_are_pruned(storage):
  def learn(trial):
    for turn in range(1, 21):
      trial.report(turn * (1 if trial.number < 6 else -1), turn)
      if trial.should_prune():
        trial.set_user_attr("turn", turn)
        raise optuna.TrialPruned
    return 20.0
  told = _run(_study(storage), learn, 8)
  assert [trial.user_attrs.get("turn") for trial in told] == 6 * [None] + [5, 5]


def test_a_study_is_about_one_thing(storage):
  _study(storage, {"steps": 1, "space": {"a": [1]}})
  _study(storage, {"steps": 1, "space": {"a": [1]}, "younger": 3})
  with pytest.raises(config_lib.ConfigError, match="began with another space"):
    _study(storage, {"steps": 1, "space": {"a": [2]}})


@pytest.mark.parametrize("url", [
    "sqlite:////nowhere/at/all.db", "nonsense", "mysql://host/name"])
def test_a_storage_that_can_not_be_used_is_told(url, monkeypatch):
  monkeypatch.setattr(study_lib, "_MOST_ATTEMPTS", 1)
  with pytest.raises(config_lib.ConfigError, match=f"{url} can't be used"):
    _study(url)


def test_processes_may_begin_at_the_same_time(storage):
  code = f"""
from agents.sweeps import study as study_lib
study = study_lib.Study({storage!r}, "name", {{"steps": 1}}, 20)
study.run(lambda trial: trial.suggest_float("x", 0, 1), 12, 2,
          lambda: False, print)
"""
  processes = [subprocess.Popen([sys.executable, "-c", code], cwd=command.ROOT)
               for _ in range(3)]
  assert [process.wait(timeout=100) for process in processes] == [0, 0, 0]
  assert 12 <= len(_study(storage).ended) <= 12 + 3 * 2
