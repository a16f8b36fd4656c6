"""Runs commands in separate processes, and compares run folders."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np

from agents.training.run_folder import checkpoint
from tests.support import forked

ROOT = pathlib.Path(__file__).parents[2]

# Arguments of a run with four pendulum environments. Episodes of 200 steps end
# after every fourth update of 50 steps per environment.
SMALL = (
  "--config",
  "pendulum",
  "--set",
  "num_envs=4",
  "--set",
  "algorithm.segment_length=50",
  "--set",
  "algorithm.minibatch_size=50",
  "--set",
  "algorithm.update_epochs=2",
  "--set",
  "eval_episodes=3",
  "--set",
  "stagger=false",
)
# Arguments that train a robot for a moment, without compilation.
EAGER_REACHER = (
  *("train.py", "--config", "reacher", "--eager"),
  *("--set", "num_envs=4", "--set", "algorithm.segment_length=64"),
  *("--set", "algorithm.update_epochs=1"),
)
SMALL_STEPS = 2_000
# Arguments of a run with the algorithm of 2017. Each update learns from six
# episodes of 20 steps. The run is eager, because compilation would take longer
# than the updates.
PAPER = (
  "--config",
  "pendulum",
  "--preset",
  "paper",
  "--seed",
  "1",
  "--eager",
  "--set",
  "num_envs=4",
  "--set",
  "algorithm.update_every=6",
  "--set",
  "algorithm.update_epochs=2",
  "--set",
  "env.max_length=20",
  "--set",
  "eval_episodes=2",
)
PAPER_STEPS = 500


def run(script: str, *args: str, cwd: pathlib.Path) -> subprocess.CompletedProcess:
  """Runs `train.py` or `visualize.py` in a fork, and waits for its end."""
  process = start(script, *args, cwd=cwd)
  output, _ = process.communicate(timeout=600)
  return subprocess.CompletedProcess(args, process.returncode, output)


def start(
  script: str, *args: str, cwd: pathlib.Path, variables: dict[str, str] | None = None
) -> forked.Process:
  """Starts a script in a fork, with additional environment variables."""
  return forked.Process(ROOT / script, list(map(str, args)), cwd, variables or {})


def run_agents(*args: str, cwd: pathlib.Path) -> subprocess.CompletedProcess:
  """Runs `python -m agents` in a fork, and waits for its end."""
  process = forked.Process("agents", list(map(str, args)), cwd, {})
  output, _ = process.communicate(timeout=300)
  return subprocess.CompletedProcess(args, process.returncode, output)


def start_interpreter(
  script: str, *args: str, cwd: pathlib.Path, variables: dict[str, str] | None = None
) -> subprocess.Popen:
  """Starts a script in a new interpreter, as users do.

  Tests of start-up, exit and output of commands need a new interpreter.
  """
  return subprocess.Popen(
    [sys.executable, str(ROOT / script), *map(str, args)],
    cwd=cwd,
    env={**os.environ, **(variables or {})},
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
  )


def run_folder(logdir: pathlib.Path) -> pathlib.Path:
  """Returns the only run folder in a logdir."""
  (folder,) = logdir.iterdir()
  return folder


def document(output: str) -> dict:
  """Returns the JSON document at the end of an output that has both streams."""
  return json.loads(output[output.rindex("\n{\n") :])


def rows(folder: pathlib.Path) -> list[dict]:
  """Returns the rows of `metrics.jsonl` without fields that depend on time."""
  time_fields = "seconds", "steps_per_second", "step_limit"
  return [
    {
      name: value
      for name, value in json.loads(line).items()
      if name not in time_fields and not name.endswith(("_share", "_memory"))
    }
    for line in (folder / "metrics.jsonl").read_text().splitlines()
  ]


def interrupt(
  process: subprocess.Popen, signum: signal.Signals, folder_ready, patience: float = 60.0
) -> tuple[int, str]:
  """Sends a signal once `folder_ready()`; returns exit code and output.

  The process must end within the limit in docs/reliability.md, ten seconds.
  """
  deadline = time.monotonic() + patience
  while not folder_ready() and process.poll() is None:
    assert time.monotonic() < deadline, "The run did not start."
    time.sleep(0.05)
  process.send_signal(signum)
  output, _ = process.communicate(timeout=10)
  return process.returncode, output


def assert_same_checkpoints(first: pathlib.Path, second: pathlib.Path):
  """Asserts that the newest checkpoints of two run folders are bit-equal.

  Only metadata that depends on time may differ.
  """
  first, second = (checkpoint.newest(folder / "checkpoints") for folder in (first, second))
  assert first.name == second.name
  (arrays, metadata), (other_arrays, other_metadata) = map(checkpoint.load, (first, second))
  assert arrays.keys() == other_arrays.keys()
  for name in arrays:
    array, other = arrays[name], other_arrays[name]
    np.testing.assert_array_equal(array, other, err_msg=name)
    assert array.tobytes() == other.tobytes(), name
  for name in ("step", "done", "scores", "lengths", "reward_parts"):
    assert metadata[name] == other_metadata[name]
