"""A trial does not compete with another process that trains its run."""

import threading
import time

import optuna

from agents import configs
from agents.sweeps import trial_runner
from agents.training.run_folder import run_folder


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
