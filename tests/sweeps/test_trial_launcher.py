import os
import subprocess
import sys

_PRINT = "import os; print(os.sched_getaffinity(0), 'TF_CONFIG' in os.environ)"


def test_program_runs_on_its_core_and_outside_of_a_cluster():
  core = max(os.sched_getaffinity(0))
  done = subprocess.run(
    [sys.executable, "-m", "agents.sweeps.trial_launcher", str(core), sys.executable, "-c", _PRINT],
    env={**os.environ, "TF_CONFIG": "{}"},
    text=True,
    capture_output=True,
  )
  assert done.stdout == f"{{{core}}} False\n", done.stderr
