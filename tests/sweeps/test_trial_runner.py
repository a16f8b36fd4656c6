"""A trial does not compete with another process that trains its run."""

import pathlib
import signal
import sys
import threading
import time

import optuna
import pytest

from agents import configs
from agents.environments.workers import process
from agents.sweeps import trial_launcher, trial_runner
from agents.training.run_folder import checkpoint, run_folder


def test_trial_waits_until_no_other_process_trains_its_run(tmp_path, capsys):
  run = run_folder.create(str(tmp_path), "name", configs.load("pendulum")[1])
  runner = trial_runner.TrialRunner(None, None, None, tmp_path, 1, stop=lambda: False)
  trial = optuna.create_study().ask()
  thread = threading.Thread(target=runner._wait_for_lock, args=[trial, run], daemon=True)
  with run.locked():
    thread.start()
    output, deadline = "", time.monotonic() + 20
    while not output and time.monotonic() < deadline:
      output += capsys.readouterr().out
      time.sleep(0.01)
    assert output.startswith(f"Trial 0 waits: {run.path} is being trained by another process")
    assert thread.is_alive()
  thread.join(timeout=20)
  assert not thread.is_alive()


def _monitor(folder):
  return trial_runner._Monitor(optuna.create_study().ask(), configs.load("pendulum")[1], folder)


def _runner(folder):
  return trial_runner.TrialRunner(None, None, None, folder, 1, stop=lambda: False)


def test_programs_of_a_trial_ignore_packages_in_the_current_folder(tmp_path, monkeypatch):
  for name in ("agents", "json"):
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("raise SystemExit('executed')")
  monkeypatch.setattr(sys, "path", [each for each in sys.path if each not in ("", ".")])
  output = tmp_path / "output.txt"
  monkeypatch.chdir(tmp_path)
  code = _runner(tmp_path)._run_process(_monitor(tmp_path), "all", ["--config", "?"], output)
  assert (code, "no such config" in output.read_text()) == (2, True)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_trial_restarts_after_a_signal(signum, tmp_path, monkeypatch):
  code = -signum if signum == signal.SIGKILL else 128 + signum
  codes, monitor = [code, code, 0], _monitor(tmp_path)
  runner = _runner(tmp_path)

  def run(monitor, core, arguments, output):
    monitor.complete = len(codes) == 1
    return codes.pop(0)

  monkeypatch.setattr(runner, "_run_process", run)
  runner._train(monitor, "all", [])
  assert not codes


def test_error_of_the_disk_does_not_end_the_sweep(tmp_path, monkeypatch):
  run_folder.create(str(tmp_path), "name", configs.load("pendulum")[1])

  def fail(self):
    raise checkpoint.ReadError("Input/output error")

  monkeypatch.setattr(run_folder.RunFolder, "complete", property(fail))
  monkeypatch.setattr(trial_runner.results, "read", lambda path: _Complete())
  monitor = _monitor(tmp_path)
  monitor.report()
  assert not monitor.complete


class _Complete:
  complete = True


def test_process_of_a_complete_run_is_killed(tmp_path, monkeypatch):
  assert trial_runner._SECONDS_TO_END == trial_launcher._SECONDS_TO_END == 15.0  # As documented.
  monkeypatch.setattr(trial_runner, "_SECONDS_TO_END", 0.1)
  # Hangs without a reaction to SIGTERM.
  hang = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(1000)"
  python = process.python
  monkeypatch.setattr(process, "python", lambda code: python(hang if "__main__" in code else code))
  monitor = _monitor(tmp_path)
  monitor.complete = True
  code = _runner(tmp_path)._run_process(monitor, "all", [], pathlib.Path(tmp_path, "output.txt"))
  assert code == -signal.SIGKILL
