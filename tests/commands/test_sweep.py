"""Runs sweeps from the command line; kills and interrupts their processes."""

import os
import pathlib
import re
import signal
import time

import numpy as np
import optuna
import pytest
from tensorboard.backend.event_processing import event_accumulator

from agents.commands import sweep
from agents.training.run_folder import checkpoint, run_folder
from tests.behaviour.docs import shell_commands
from tests.support import command, forked

SPACE = """\
algorithm.learning_rate: {low: 1e-5, high: 1e-2, log: true}
network.policy_layers: [[8], [16, 16]]
"""
# Environment with steps that wait after the second evaluation until the file
# `open` exists, so that no run finishes before.
GATE = """\
import os, time
import gymnasium

class Gate(gymnasium.Wrapper):
  num_steps = 0

  def step(self, action):
    Gate.num_steps += 1
    while Gate.num_steps > 500 and not os.path.exists("open"):
      time.sleep(0.05)
    return self.env.step(action)

def make() -> gymnasium.Env:
  return Gate(gymnasium.make("Pendulum-v1"))
"""
# Eager, because compilation would take longer than the run.
ARGS = (
  "--config",
  "pendulum",
  "--steps",
  "800",
  "--set",
  "eager=true",
  "--set",
  "num_envs=4",
  "--set",
  "algorithm.segment_length=25",
  "--set",
  "algorithm.minibatch_size=50",
  "--set",
  "algorithm.update_epochs=1",
  "--set",
  "eval_episodes=2",
  "--set",
  "eval_every=200",
  "--set",
  "checkpoint_every=100",
  "--set",
  "env.max_length=20",
  "--seed",
  "5",
)
PBT = "--sampler", "pbt"
GATED = "--set", "env.id=gate:make"


def _start(cwd, *args, space=SPACE):
  (cwd / "space.yaml").write_text(space)
  (cwd / "gate.py").write_text(GATE)
  arguments = ["sweep", *ARGS, "--space", "space.yaml", "--logdir", "logdir", *args]
  return forked.Process("agents", arguments, cwd, {"PYTHONPATH": str(command.ROOT)})


def _study(cwd):
  return optuna.load_study(
    study_name="pendulum", storage=f"sqlite:///{cwd / 'logdir' / 'pendulum' / 'study.db'}"
  )


def _trainers(cwd) -> list[int]:
  """Returns the ids of the processes that train in a folder."""
  pids = []
  for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
    try:
      words = path.read_bytes().split(b"\0")
      # The guard of a trial is a fork of the launcher.
      is_guard = any(b"trial_launcher" in word for word in words)
      if b"train" in words and not is_guard and os.readlink(path.parent / "cwd") == str(cwd):
        pids.append(int(path.parent.name))
    except OSError:
      pass  # The process has just ended.
  return pids


def _wait_for(condition, timeout=120):
  deadline = time.monotonic() + timeout
  while not (result := condition()):
    assert time.monotonic() < deadline
    time.sleep(0.1)
  return result


def _wait_for_checkpoint(cwd, step=200):
  """Waits for a checkpoint at this step or later, and returns its path."""

  def saved():
    return [
      path
      for path in cwd.glob("logdir/pendulum/trial-*/*/checkpoints/checkpoint-*.npz")
      if checkpoint.load(path)[1]["step"] >= step
    ]

  return _wait_for(saved)[0]


@pytest.mark.slow
def test_killed_runs_are_resumed_and_the_best_trial_is_printed(tmp_path):
  process = _start(tmp_path, "--trials", "2", *GATED)
  saved = _wait_for_checkpoint(tmp_path)
  for pid in _trainers(tmp_path):
    os.kill(pid, signal.SIGKILL)
  (tmp_path / "open").touch()
  output, _ = process.communicate(timeout=300)
  assert process.returncode == 0, output
  returns = dict(re.findall(r"^Trial (\d): return (\S+);", output, re.MULTILINE))
  assert set(returns) == {"0", "1"}
  # The killed run has printed its beginning twice.
  assert (saved.parents[2] / "output.txt").read_text().count("\nbatch ") == 2
  assert "2 trials have ended; 2 of them are complete." in output
  trials = _study(tmp_path).get_trials()
  folders = [
    run_folder.find(tmp_path / f"logdir/pendulum/trial-{number:04}") for number in range(2)
  ]
  for trial, folder in zip(trials, folders, strict=True):
    config = folder.config
    assert config.seed == 5 + trial.number
    assert config.algorithm.learning_rate == (trial.params["algorithm.learning_rate"])
    evals = [row for row in command.rows(folder.path) if row["phase"] == "eval"]
    assert [row["step"] for row in evals] == [200, 400, 600, 800]
    assert trial.value == evals[-1]["return_mean"]
    assert trial.intermediate_values == {row["step"] // 200: row["return_mean"] for row in evals}
  best = max(trials, key=lambda trial: trial.value)
  arguments = re.search(r"To train with the best: (.*)", output)[1]
  assert "--set steps=800 --set seed=5 " in arguments
  printed = shell_commands.run_forked(f"{arguments} --print-config", tmp_path)
  assert (f"algorithm.learning_rate: {best.params['algorithm.learning_rate']}") in printed
  # The report and TensorBoard can read the runs.
  report = command.run_agents("report", "logdir/pendulum", cwd=tmp_path)
  assert "(2 runs)" in report.stdout
  for folder in folders:
    (file,) = folder.path.glob("events.out.*")
    events = event_accumulator.EventAccumulator(str(file))
    events.Reload()
    content = str(events.summary_metadata["_hparams_/session_start_info"])
    assert "algorithm.learning_rate" in content


@pytest.mark.slow
def test_interrupted_sweep_resumes_its_trials(tmp_path):
  process = _start(tmp_path, "--trials", "2", *GATED)
  saved = _wait_for_checkpoint(tmp_path)
  process.send_signal(signal.SIGINT)
  _wait_for(lambda: "SIGTERM: finishing" in (saved.parents[2] / "output.txt").read_text())
  (tmp_path / "open").touch()
  output, _ = process.communicate(timeout=60)
  assert process.returncode == 128 + signal.SIGINT
  assert "Stopped. To resume, run the same command." in output
  assert not _trainers(tmp_path)
  output, _ = (process := _start(tmp_path, "--trials", "2", "--json", *GATED)).communicate(
    timeout=300
  )
  assert process.returncode == 0, output
  assert "2 trials have ended; 2 of them are complete." in output
  result = command.document(output)
  assert (result["study"], result["ended"]) == ("pendulum", 2)
  best, second = result["best"]
  assert best["score"] == _study(tmp_path).best_value >= second["score"]
  assert best["settings"] == _study(tmp_path).best_params
  assert "steps=800" in best["arguments"]
  folders = sorted((tmp_path / "logdir" / "pendulum").glob("trial-*"))
  assert [folder.name for folder in folders] == ["trial-0000", "trial-0001"]
  for trial_folder in folders:
    (folder,) = trial_folder.glob("*/")
    assert [row["step"] for row in command.rows(folder) if row["phase"] == "eval"] == [
      200,
      400,
      600,
      800,
    ]
  assert any(map(saved.is_relative_to, folders))


@pytest.mark.slow
def test_interrupted_population_trains_the_same_policies(tmp_path):
  args = ("--sampler", "pbt", "--population", "2", "--generations", "2", "--steps", "400")
  space = "algorithm.learning_rate: {low: 1e-5, high: 1e-2, log: true}\n"
  constant = "--set", "algorithm.lr_schedule=constant"
  variables = []
  for name in ("interrupted", "whole"):
    folder = tmp_path / name
    folder.mkdir()
    if name == "interrupted":
      process = _start(folder, *args, *constant, space=space)
      _wait_for(lambda folder=folder: list(folder.glob("logdir/*/trial-0000/*/checkpoints/*.npz")))
      process.send_signal(signal.SIGINT)
      assert process.wait(timeout=60) == 130
    process = _start(folder, *args, *constant, space=space)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    assert "4 of them are complete" in output
    runs = [
      next(path.glob("*-pendulum")) for path in sorted(folder.glob("logdir/pendulum/trial-*"))
    ]
    configs = [run_folder.RunFolder(run).config for run in runs]
    assert [config.steps for config in configs] == [200] * 4
    best = max((command.rows(run)[-1]["return_mean"], run) for run in runs[:2])[1]
    assert [config.forked_from for config in configs] == [(), ()] + [
      (f"{best.parent.name}/{best.name}@200",)
    ] * 2
    checkpoints = [checkpoint.newest(run / "checkpoints") for run in runs]
    variables.append([checkpoint.load(path)[0] for path in checkpoints])
  for first, second in zip(*variables, strict=True):
    assert all(np.array_equal(first[name], second[name]) for name in first)


@pytest.mark.slow
def test_runs_end_when_their_sweep_is_killed(tmp_path):
  process = _start(tmp_path, "--trials", "2", *GATED)
  _wait_for_checkpoint(tmp_path)
  process.kill()
  process.communicate()
  _wait_for(lambda: not _trainers(tmp_path), timeout=20)


@pytest.mark.slow
def test_failed_runs_are_reported_and_end_the_sweep(tmp_path):
  (tmp_path / "broken.py").write_text("""\
import gymnasium
class Broken(gymnasium.Env):
  observation_space = action_space = gymnasium.spaces.Box(-1, 1, (1,))
  def reset(self, seed=None, options=None):
    raise ValueError("The cable is loose.")
""")
  output, _ = (
    process := _start(tmp_path, "--set", "env.id=broken:Broken", "--at-once", "2")
  ).communicate(timeout=300)
  assert process.returncode == 1
  assert len(
    re.findall(r"^Trial \d: failed with exit code 1, see .*output.txt", output, re.MULTILINE)
  ) in (3, 4)
  assert "The cable is loose." in output


@pytest.mark.slow
def test_only_complete_runs_count_and_hanging_trials_end(tmp_path):
  (tmp_path / "faults.py").write_text("""\
import ctypes, os, sys
import gymnasium

# Each trial has its own seed.
exits, hangs = ("seed=5" in sys.argv), ("seed=6" in sys.argv)

class Faulty(gymnasium.Wrapper):
  num_steps = 0

  def step(self, action):
    Faulty.num_steps += 1
    if exits and Faulty.num_steps > 500:  # After the second evaluation.
      os._exit(0)
    return self.env.step(action)

  def close(self):
    mutex = ctypes.create_string_buffer(64)
    while hangs and Faulty.num_steps > 500:  # Keeps the interpreter's lock.
      ctypes.PyDLL(None).pthread_mutex_lock(mutex)

def make() -> gymnasium.Env:
  return Faulty(gymnasium.make("Pendulum-v1"))
""")
  process = _start(tmp_path, "--set", "env.id=faults:make", "--at-once", "2", "--trials", "3")
  try:
    output, _ = process.communicate(timeout=200)
  finally:
    process.kill()
    for pid in _trainers(tmp_path):
      os.kill(pid, signal.SIGKILL)
  assert process.returncode == 0, output
  assert "Trial 0: ended before its run was complete, see" in output
  assert set(re.findall(r"^Trial (\d): return ", output, re.MULTILINE)) == {"1", "2"}
  assert "3 trials have ended; 2 of them are complete." in output


@pytest.mark.fast_variants(6)
@pytest.mark.parametrize(
  "args, message",
  [
    (["--space", "nowhere.yaml"], "--space nowhere.yaml: "),
    (["--space", "wrong.yaml"], "wrong.yaml: algorithm.learning_rte"),
    (["--trials", "0"], "--trials must be at least 1"),
    (["--at-once", "0"], "--at-once must be at least 1"),
    (["--set", "a=1"], "no field 'a'"),
    (["--config", "pendulm"], "pendulm"),
    (["--storage", "nonsense"], "--storage nonsense can't be used"),
    (["--population", "3"], "--population can't be combined with --sampler tpe"),
    ([*PBT, "--trials", "3"], "--trials can't be combined with --sampler pbt"),
    ([*PBT, "--population", "1"], "--population must be at least 2"),
    (PBT, "space.yaml: network.policy_layers can't change during training"),
    ([*PBT, "--space", "budgets.yaml"], "budgets.yaml: steps can't change during training"),
    ([*PBT, "--space", "rates.yaml"], "Add --set algorithm.lr_schedule=constant"),
    (
      [*PBT, "--space", "rates.yaml", "--set", "algorithm.lr_schedule=kl_adaptive_linear"],
      "lr_schedule=kl_adaptive_linear would lower the learning rate to 0",
    ),
  ],
)
def test_invalid_arguments_are_reported_in_one_line(args, message, tmp_path, capsys, monkeypatch):
  monkeypatch.chdir(tmp_path)
  pathlib.Path("space.yaml").write_text(SPACE)
  pathlib.Path("budgets.yaml").write_text("steps: [1000, 2000]")
  pathlib.Path("rates.yaml").write_text(SPACE.splitlines()[0])
  pathlib.Path("wrong.yaml").write_text("algorithm.learning_rte: [1]")
  with pytest.raises(SystemExit) as error:
    sweep.main(
      ["--config", "pendulum", "--space", "space.yaml", "--logdir", str(tmp_path / "logdir"), *args]
    )
  assert error.value.code == 2
  assert message in capsys.readouterr().err.splitlines()[-1]
