"""Each MuJoCo warning is printed once, and no warning is written to a file."""

import re

import pytest

from tests.environments import scripts

# NaN actions make the simulation of every MuJoCo version unstable.
_UNSTABLE = """
import contextlib
import numpy as np
from agents import config
from agents.environments import batch_env
from agents.environments.making import make
from agents.environments.workers import pool

def play(workers):
  constructor = make.MakeEnv(config.Env({env_id!r}))
  with batch_env.BatchEnv([constructor] * 4, workers) as batch:
    batch.reset()
    for _ in range(20):
      with contextlib.suppress(ValueError):  # Rewards are NaN, too.
        batch.step(np.full((4, 6), np.nan))

if {processes}:
  with pool.WorkerPool(2) as workers:
    play(workers)
    play(workers)
else:
  play(None)
  play(None)
"""


@pytest.mark.parametrize("processes", [pytest.param(False, marks=pytest.mark.slow), True])
@pytest.mark.parametrize(
  "env_id",
  [
    "HalfCheetah-v5",
    *(
      pytest.param(name, marks=pytest.mark.slow)
      for name in (
        "tests.environments.faulty_envs:make_cheetah",
        "tests.environments.faulty_envs:make_cheetah_if_possible",
      )
    ),
  ],
)
def test_each_warning_is_printed_once_and_written_to_no_file(processes, env_id, tmp_path):
  _, stderr = scripts.run(_UNSTABLE.format(processes=processes, env_id=env_id), tmp_path)
  stderr = stderr.replace("\n", " ")  # Long lines are wrapped.
  shown = re.findall("MuJoCo: (.{30})", stderr)
  assert any("Nan, Inf" in text for text in shown)
  assert len(set(shown)) == len(shown)
  assert stderr.count("Nan, Inf") == sum("Nan, Inf" in text for text in shown)
  assert not list((tmp_path / "cwd").iterdir())


def test_warnings_that_differ_only_in_numbers_are_printed_once(tmp_path):
  stdout, stderr = scripts.run(
    """
from agents.environments.data import mujoco_warnings
mujoco_warnings.warn("Huge value 1.5 at DOF 3.\\n")
mujoco_warnings.warn("Huge value 2.75 at DOF 12.")
mujoco_warnings.warn("Contact buffer is full.")
mujoco_warnings.warn("compiler attribute 'settotalmass' is deprecated")
shown = []
mujoco_warnings.capture(shown.append)
mujoco_warnings.warn("Contact buffer is full.")
mujoco_warnings.warn("Something new.")
mujoco_warnings.capture()
mujoco_warnings.warn("Something newer.")
print(shown)
""",
    tmp_path,
  )
  assert stderr.splitlines() == [
    "MuJoCo: Huge value 1.5 at DOF 3.",
    "MuJoCo: Contact buffer is full.",
  ]
  assert stdout.strip() == "['Something new.', 'Something newer.']"


def test_capture_does_not_import_mujoco(tmp_path):
  stdout, _ = scripts.run(
    """
import sys
from agents.environments.data import mujoco_warnings
from agents.environments.workers import worker_main
mujoco_warnings.capture()
print("mujoco" in sys.modules)
""",
    tmp_path,
  )
  assert stdout.strip() == "False"
