"""Trials use their core, and end even if they hang."""

import os
import signal
import subprocess
import sys

import pytest

_PRINT = "import os; print(os.sched_getaffinity(0), 'TF_CONFIG' in os.environ)"
_LAUNCH = """
from agents.sweeps import trial_launcher
trial_launcher._SECONDS_TO_END = 0.5
trial_launcher.main()
"""
# Reaction to SIGTERM, and code that waits.
_WAIT = {
  # Locks a mutex twice, in native code that keeps the interpreter's lock, so
  # that the reaction comes before this code or never.
  "native": ("None", "for _ in range(2): ctypes.PyDLL(None).pthread_mutex_lock(mutex)"),
  "python": ("sys.exit(143)", "time.sleep(1000)"),
}


def _start(code, core="all", **options):
  return subprocess.Popen(
    [sys.executable, "-c", _LAUNCH, core, sys.executable, "-c", code],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    start_new_session=True,
    text=True,
    **options,
  )


def test_program_runs_on_its_core_and_outside_of_a_cluster():
  core = max(os.sched_getaffinity(0))
  process = _start(_PRINT, str(core), env={**os.environ, "TF_CONFIG": "{}"})
  with process:
    assert process.stdout.read() == f"{{{core}}} False\n"
  assert process.returncode == 0


@pytest.mark.parametrize(
  "wait, code", [("native", -signal.SIGKILL), ("python", 128 + signal.SIGTERM)]
)
def test_program_ends_after_its_parent(wait, code):
  reaction, statement = _WAIT[wait]
  process = _start(
    "import ctypes, signal, sys, time\n"
    f"signal.signal(signal.SIGTERM, lambda *_: {reaction})\n"
    "mutex = ctypes.create_string_buffer(64)\n"
    "print('ready', flush=True)\n"
    f"{statement}"
  )
  assert process.stdout.readline() == "ready\n"
  process.stdin.close()
  try:
    assert process.wait(timeout=20) == code
  finally:
    process.kill()
    process.wait()
    process.stdout.close()
