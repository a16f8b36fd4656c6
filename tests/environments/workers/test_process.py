"""Errors state why a worker has died, and workers inherit their settings."""

import functools
import os
import signal
import sys

import pytest

from agents.environments import batch_env
from agents.environments.workers import pool as pool_lib
from agents.environments.workers import process as process_lib
from tests import toy
from tests.environments import faulty_envs, rollouts
from tests.environments.workers import interrupts

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="The tests read /proc.")


@pytest.mark.fast_variants(2)
@pytest.mark.parametrize(
  "fault, message",
  [
    (functools.partial(toy.Faulty, "kill"), "SIGKILL.*out of memory"),
    (functools.partial(faulty_envs.Ends, signal.SIGSEGV), "SIGSEGV.*native code"),
    (functools.partial(faulty_envs.Ends, signal.SIGUSR1), "SIGUSR1"),
    (functools.partial(faulty_envs.Ends, code=7), "exited with code 7"),
  ],
  ids=["kill", "segv", "usr1", "code"],
)
def test_death_in_a_step_is_an_error_with_its_cause(fault, message):
  with pool_lib.WorkerPool(2) as workers:
    batch = interrupts.batch_after_one_step([toy.Counter, fault], workers)
    with pytest.raises(process_lib.WorkerDied, match=message) as caught:
      interrupts.step(batch)
    assert f"Worker 1 (process {workers.pids[1]})" in str(caught.value)


def test_death_in_a_constructor_is_an_error_with_its_cause():
  trainer = os.getpid()

  def build():
    if os.getpid() != trainer:
      os._exit(7)
    return toy.Counter()

  with pool_lib.WorkerPool(1) as workers:
    with pytest.raises(process_lib.WorkerDied, match="exited with code 7"):
      batch_env.BatchEnv([build], workers)


def test_other_workers_close_their_environments_after_a_death(tmp_path):
  path = tmp_path / "log"
  constructors = [
    functools.partial(faulty_envs.LogsLifetime, path, "a"),
    functools.partial(toy.Faulty, "kill"),
  ]
  with pytest.raises(process_lib.WorkerDied):
    with (
      pool_lib.WorkerPool(2) as workers,
      interrupts.batch_after_one_step(constructors, workers) as batch,
    ):
      interrupts.step(batch)
  assert rollouts.count_open(path) == {}


def test_environment_variables_reach_the_workers(monkeypatch):
  monkeypatch.setenv("FRUIT", "pear")
  monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
  with (
    pool_lib.WorkerPool(1, variables={"TREE": "oak"}) as workers,
    batch_env.BatchEnv([faulty_envs.ProcessInfo], workers) as batch,
  ):
    assert batch.call("variable", "FRUIT") == ["pear"]
    assert batch.call("variable", "TREE") == ["oak"]
    assert batch.call("variable", "OMP_NUM_THREADS") == ["1"]
  assert "TREE" not in os.environ


def test_entries_of_sys_path_that_are_not_strings_are_ignored(monkeypatch, tmp_path):
  monkeypatch.setattr(sys, "path", [*sys.path, tmp_path])
  with pool_lib.WorkerPool(1) as workers, batch_env.BatchEnv([toy.Counter], workers) as batch:
    batch.reset()
