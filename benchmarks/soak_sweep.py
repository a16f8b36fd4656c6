"""Kills the processes of a sweep while it runs, and checks its results.

    python -m benchmarks.soak_sweep --trials 20 --every 15

At random times, the process of a trial is killed, or the sweep is killed or
terminated and then started again. At the end, each trial must be complete and
count once, with the score of its run. The benchmark needs Linux, and takes some
minutes.
"""

import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

import optuna

from agents.reports import results
from agents.sweeps import trial_runner
from agents.training.run_folder import run_folder
from benchmarks.common import command_line, machine

_FAULTS = "kill a trial", "kill the sweep", "terminate the sweep"
_SPACE = "algorithm.learning_rate: {low: 1e-4, high: 1e-2, log: true}\n"
_STEPS = 40_000
_STUDY = "study"


def start(folder: pathlib.Path, num_trials: int) -> subprocess.Popen:
  """Starts the sweep, or continues it.

  Args:
    folder: Folder for the runs and the output.
    num_trials: Number of trials.
  """
  (folder / "space.yaml").write_text(_SPACE)
  # With a single evaluation, no trial is pruned.
  settings = f"--steps {_STEPS} --set eval_every={_STEPS} --set checkpoint_every=2000"
  command = f"sweep --config pendulum --space space.yaml --study {_STUDY} --logdir . --at-once 2"
  with open(folder / "log.txt", "ab") as log:
    return subprocess.Popen(
      [sys.executable, "-m", "agents", *command.split(), "--trials", str(num_trials)]
      + settings.split(),
      cwd=folder,
      env={**os.environ, "PYTHONPATH": str(machine.REPOSITORY)},
      stdout=log,
      stderr=log,
    )


def trials(folder: pathlib.Path) -> list[int]:
  """Returns the ids of the processes that train trials.

  Args:
    folder: Current folder of these processes.
  """
  pids = []
  for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
    try:
      words = path.read_bytes().split(b"\0")
      is_trial = b"train" in words and not any(b"trial_launcher" in word for word in words)
      if is_trial and os.readlink(path.with_name("cwd")) == str(folder):
        pids.append(int(path.parent.name))
    except OSError:  # The process has ended, or belongs to another user.
      pass
  return pids


def inject(sweep: subprocess.Popen, fault: str, folder: pathlib.Path, rng: random.Random) -> bool:
  """Causes a fault.

  Args:
    sweep: Process of the sweep.
    fault: One of `_FAULTS`.
    folder: See `start`.
    rng: Chooses a trial.

  Returns:
    Whether there was a process to kill.
  """
  if fault == "kill a trial":
    if pids := trials(folder):
      os.kill(rng.choice(pids), signal.SIGKILL)
    return bool(pids)
  sweep.send_signal(signal.SIGKILL if fault == "kill the sweep" else signal.SIGTERM)
  sweep.wait()
  return True


def check(folder: pathlib.Path, num_trials: int) -> list[str]:
  """Returns messages about missing, repeated and wrong results.

  Args:
    folder: See `start`.
    num_trials: Number of trials.
  """
  study = optuna.load_study(study_name=_STUDY, storage=f"sqlite:///{folder / _STUDY / 'study.db'}")
  complete = study.get_trials(states=[optuna.trial.TrialState.COMPLETE])
  numbers = sorted(map(trial_runner.first_number, complete))
  problems = []
  # Attempts to continue a trial also have numbers, so that there are gaps.
  if len(numbers) != num_trials or len({*numbers}) != num_trials:
    problems.append(f"These trials are complete: {numbers}.")
  for trial in complete:
    name = f"trial-{trial_runner.first_number(trial):04}"
    # A run that was killed before its first checkpoint is not resumed.
    folders = {path.parents[1] for path in (folder / _STUDY / name).glob("*/checkpoints/*.npz")}
    runs = [*map(run_folder.RunFolder, folders)]
    run = runs[0]
    last = results.read(run.path).phase("eval")[-1]
    if len(runs) > 1 or not run.complete or trial.value != last["return_mean"]:
      problems.append(f"{name}: {len(runs)} runs, score {trial.value}, last evaluation {last}.")
  if left := trials(folder):
    problems.append(f"These trials still run: {left}.")
  return problems


def main(argv: list[str] | None = None) -> None:
  """Runs the benchmark."""
  parser = command_line.make_parser(__doc__)
  parser.add_argument("--trials", type=int, default=20, help="number of trials")
  parser.add_argument("--every", type=float, default=15.0, help="mean seconds between two faults")
  parser.add_argument("--seed", type=int, default=0, help="seed of times and faults")
  args = parser.parse_args(argv)
  rng = random.Random(args.seed)
  counts = dict.fromkeys(_FAULTS, 0)
  with tempfile.TemporaryDirectory() as temporary:
    folder = pathlib.Path(temporary).resolve()
    sweep = start(folder, args.trials)
    while True:
      try:
        code = sweep.wait(rng.uniform(0.5, 1.5) * args.every)
        break
      except subprocess.TimeoutExpired:
        fault = rng.choice(_FAULTS)
        counts[fault] += inject(sweep, fault, folder, rng)
        print(f"{time.strftime('%X')}  {fault}", flush=True)
        if sweep.poll() is not None:
          sweep = start(folder, args.trials)
    output = (folder / "log.txt").read_text(errors="replace")
    if code:
      raise machine.ProcessFailed(f"The sweep ended with exit code {code}: {output[-3000:]}")
    problems = check(folder, args.trials)
  print("\n".join([*(f"{fault}: {count} times" for fault, count in counts.items()), *problems]))
  if problems:
    raise SystemExit(1)
  print(f"All {args.trials} trials are complete, and none counts twice.")


if __name__ == "__main__":
  main()
