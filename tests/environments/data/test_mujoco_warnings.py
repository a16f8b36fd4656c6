"""MuJoCo's warnings are shown once, and never written to a file."""

import re

import pytest

from tests.environments import scripts

# Numbers that are none make the simulation unstable, whatever its version.
_UNSTABLE = """
import contextlib
import numpy as np
from agents import config
from agents.environments import batch_env
from agents.environments.making import make
from agents.environments.workers import pool as workers_lib

def play(workers):
  constructor = make.MakeEnv(config.Env({env_id!r}))
  with batch_env.BatchEnv([constructor] * 4, workers) as batch:
    batch.reset()
    for _ in range(20):
      with contextlib.suppress(ValueError):  # The rewards are none, either.
        batch.step(np.full((4, 6), np.nan))

if {processes}:
  with workers_lib.WorkerPool(2) as workers:
    play(workers)
    play(workers)
else:
  play(None)
  play(None)
"""


@pytest.mark.parametrize("processes", [False, True])
@pytest.mark.parametrize("env_id", [
    "HalfCheetah-v5", "tests.environments.faulty_envs:make_cheetah",
    "tests.environments.faulty_envs:make_cheetah_if_possible"])
def test_each_warning_once_and_no_file(processes, env_id, tmp_path):
  _, stderr = scripts.run(
      _UNSTABLE.format(processes=processes, env_id=env_id), tmp_path)
  shown = re.findall("MuJoCo: (.{30})", stderr)
  assert any("Nan, Inf" in text for text in shown)
  assert len(set(shown)) == len(shown)
  assert stderr.count("Nan, Inf") == sum("Nan, Inf" in text for text in shown)
  assert not list((tmp_path / "cwd").iterdir())


def test_only_new_kinds_are_shown(tmp_path):
  stdout, stderr = scripts.run("""
from agents.environments.data import mujoco_warnings as mujoco_log
mujoco_log.warn("Huge value 1.5 at DOF 3.\\n")
mujoco_log.warn("Huge value 2.75 at DOF 12.")
mujoco_log.warn("Contact buffer is full.")
shown = []
mujoco_log.capture(shown.append)
mujoco_log.warn("Contact buffer is full.")
mujoco_log.warn("Something new.")
mujoco_log.capture()
mujoco_log.warn("Something newer.")
print(shown)
""", tmp_path)
  assert stderr.splitlines() == [
      "MuJoCo: Huge value 1.5 at DOF 3.", "MuJoCo: Contact buffer is full."]
  assert stdout.strip() == "['Something new.', 'Something newer.']"


def test_mujoco_is_not_imported_for_it(tmp_path):
  stdout, _ = scripts.run("""
import sys
from agents.environments.data import mujoco_warnings as mujoco_log
from agents.environments.workers import worker_main as worker
mujoco_log.capture()
print("mujoco" in sys.modules)
""", tmp_path)
  assert stdout.strip() == "False"
