from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys

from agents.training.faults import interrupts as interrupts_lib
from tests import command

# Waits in one call into C, as a graph does, where no Python handler can run.
HANGING = """
import ctypes, os, signal, threading, time
from agents.training.faults import interrupts as interrupts_lib
interrupts_lib._SECONDS_TO_FINISH = 0.5
interrupts_lib._SECONDS_TO_END = 1.0
with interrupts_lib.Interrupts() as interrupts:
  for delay in {delays}:
    threading.Timer(delay, os.kill, (os.getpid(), signal.{signal})).start()
  libc = ctypes.CDLL(None)
  end = time.time() + 60
  while time.time() < end:
    libc.usleep(10_000_000)
"""


def hang(name, delays, stderr=subprocess.PIPE):
  code = HANGING.format(signal=name, delays=delays)
  return subprocess.run([sys.executable, "-c", code], cwd=command.ROOT,
                        stderr=stderr, text=True, timeout=30)


def test_signal_is_a_request():
  before = signal.getsignal(signal.SIGINT)
  with interrupts_lib.Interrupts() as interrupts:
    assert not interrupts()
    os.kill(os.getpid(), signal.SIGTERM)
    for _ in range(1000):
      if interrupts():
        break
      select.select([], [], [], 0.01)
    assert interrupts()
    assert interrupts.exit_code == 143
    # Nobody has to give up yet.
    assert not select.select([interrupts.give_up_fd], [], [], 0)[0]
  assert signal.getsignal(signal.SIGINT) is before


def test_gives_up_in_time_and_ends_at_last():
  done = hang("SIGTERM", [0.1])
  assert done.returncode == 143
  assert "It took too long to stop." in done.stderr


def test_ends_also_where_nobody_reads_what_it_prints():
  read, write = os.pipe()
  os.set_blocking(write, False)
  try:
    with contextlib.suppress(BlockingIOError):
      while True:
        os.write(write, bytes(1000))
    os.set_blocking(write, True)
    assert hang("SIGTERM", [0.1], write).returncode == 143
  finally:
    os.close(read)
    os.close(write)


def test_second_ctrl_c_ends_at_once():
  done = hang("SIGINT", [0.1, 0.3])
  assert done.returncode == 130
  assert "Ended at once." in done.stderr
