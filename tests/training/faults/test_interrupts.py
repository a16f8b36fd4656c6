"""Signals stop a run, save it, or end the process in time."""

import contextlib
import fcntl
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time

import pytest

from agents.training.faults import interrupts as interrupts_lib
from tests.support import command

# Blocks in a C function, as a TensorFlow graph does. During such a call, Python
# runs no signal handlers.
_BLOCKING = """
import contextlib, ctypes, os, signal, sys, threading, time
from agents.training.faults import interrupts as interrupts_lib
interrupts_lib._SECONDS_FOR_STEPS = 0.3
interrupts_lib._SECONDS_FOR_EPOCH = 0.6
interrupts_lib._SECONDS_TO_END = {to_end}
interrupts_lib._SECONDS_TO_PRINT = 0.2
def save():
{save}
with interrupts_lib.Interrupts() as interrupts:
  interrupts.farewell = "To resume: train."
  epoch = interrupts.save_on_timeout(save)
  with epoch if {in_epoch} else contextlib.nullcontext():
    for delay in {delays}:
      threading.Timer(delay, os.kill, (os.getpid(), signal.{signal})).start()
    libc = ctypes.CDLL(None)
    end = time.time() + 60
    while time.time() < end:
      libc.usleep(10_000_000)
"""
_SAVE = '  print("Saved.", file=sys.stderr, flush=True)'


def _block(name, delays, in_epoch=False, save=_SAVE, to_end=3.0, stderr=subprocess.PIPE):
  code = _BLOCKING.format(signal=name, delays=delays, in_epoch=in_epoch, save=save, to_end=to_end)
  return subprocess.run(
    [sys.executable, "-c", code], cwd=command.ROOT, stderr=stderr, text=True, timeout=30
  )


def _wait_for(condition):
  deadline = time.monotonic() + 10
  while not condition():
    assert time.monotonic() < deadline
    time.sleep(0.01)


def test_signal_requests_to_stop_and_handlers_are_restored():
  before = signal.getsignal(signal.SIGINT)
  with interrupts_lib.Interrupts() as interrupts:
    assert not interrupts()
    os.kill(os.getpid(), signal.SIGTERM)
    _wait_for(interrupts)
    assert interrupts.exit_code == 143
    # The deadline for steps of environments has not passed.
    assert not select.select([interrupts.give_up_fd], [], [], 0)[0]
  assert signal.getsignal(signal.SIGINT) is before


def test_waiting_for_environments_ends_before_the_epoch_is_abandoned(monkeypatch):
  monkeypatch.setattr(interrupts_lib, "_SECONDS_FOR_STEPS", 0.1)
  with interrupts_lib.Interrupts() as interrupts:
    os.kill(os.getpid(), signal.SIGTERM)
    assert select.select([interrupts.give_up_fd], [], [], 10)[0]


def test_hangup_requests_to_stop_unless_it_is_ignored():
  before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # `nohup` does this.
  try:
    with interrupts_lib.Interrupts() as interrupts:
      os.kill(os.getpid(), signal.SIGHUP)
      os.kill(os.getpid(), signal.SIGTERM)
      _wait_for(interrupts)
      assert interrupts.exit_code == 128 + signal.SIGTERM
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    with interrupts_lib.Interrupts() as interrupts:
      os.kill(os.getpid(), signal.SIGHUP)
      _wait_for(interrupts)
      assert interrupts.exit_code == 128 + signal.SIGHUP
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_DFL
  finally:
    signal.signal(signal.SIGHUP, before)


# Prints until a signal arrives, and then creates a file.
_PRINTING = """
import pathlib, sys, time
from agents.training.faults import interrupts as interrupts_lib
with interrupts_lib.Interrupts() as interrupts:
  while not interrupts():
    print("step", flush=True)
    time.sleep(0.01)
  for file in (sys.stdout, sys.stderr):
    print("saving", file=file, flush=True)
  pathlib.Path(sys.argv[1]).touch()
sys.exit(interrupts.exit_code)
"""


@contextlib.contextmanager
def _printing(path, **options):
  with subprocess.Popen(
    [sys.executable, "-c", _PRINTING, str(path)], cwd=command.ROOT, **options
  ) as process:
    try:
      yield process
    finally:
      process.kill()


def test_closed_terminal_ends_a_process_after_it_has_saved(tmp_path):
  terminal, program_end = pty.openpty()

  def control_terminal():
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)

  with _printing(
    tmp_path / "saved",
    stdin=program_end,
    stdout=program_end,
    stderr=program_end,
    start_new_session=True,
    preexec_fn=control_terminal,
  ) as process:
    os.close(program_end)
    assert os.read(terminal, 4) == b"step"
    os.close(terminal)  # The kernel sends SIGHUP, and later writes raise EIO.
    assert process.wait(20) == 128 + signal.SIGHUP
  assert (tmp_path / "saved").exists()


def test_process_continues_after_the_reader_of_its_output_has_ended(tmp_path):
  with _printing(tmp_path / "saved", stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
    assert process.stdout.readline() == b"step\n"
    process.stdout.close()
    time.sleep(0.2)  # The process prints several times.
    assert process.poll() is None
    process.terminate()
    assert process.wait(20) == 128 + signal.SIGTERM
  assert (tmp_path / "saved").exists()


@pytest.mark.slow
def test_process_ends_in_time_without_saving_outside_of_epochs():
  done = _block("SIGTERM", [0.1], to_end=1.0)
  assert done.returncode == 143
  assert "It took too long to stop. To resume: train." in done.stderr
  assert "Saved." not in done.stderr


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGHUP])
def test_epoch_that_takes_too_long_is_abandoned_and_saved(signum):
  done = _block(signum.name, [0.1], in_epoch=True)
  assert done.returncode == 128 + signum
  assert (
    done.stderr.index(f"{signum.name}: finishing the epoch")
    < done.stderr.index("Saved.")
    < done.stderr.index("The epoch took too long and was given up. To resume: train.")
  )


def test_process_ends_in_time_although_saving_takes_too_long():
  done = _block("SIGTERM", [0.1], in_epoch=True, to_end=1.0, save="  time.sleep(60)")
  assert done.returncode == 143
  assert "It took too long to save. To resume: train." in done.stderr


def test_error_while_saving_is_printed_and_the_process_ends():
  done = _block("SIGTERM", [0.1], in_epoch=True, save='  raise OSError("The disk is full.")')
  assert done.returncode == 143
  assert "could not be saved: The disk is full." in done.stderr
  assert "To resume: train." in done.stderr


@pytest.mark.slow
def test_process_ends_in_time_although_its_output_is_not_read():
  read, write = os.pipe()
  os.set_blocking(write, False)
  try:
    with contextlib.suppress(BlockingIOError):
      while True:
        os.write(write, bytes(1000))
    os.set_blocking(write, True)
    assert _block("SIGTERM", [0.1], to_end=1.0, stderr=write).returncode == 143
  finally:
    os.close(read)
    os.close(write)


def test_second_ctrl_c_ends_the_process_at_once():
  done = _block("SIGINT", [0.1, 0.3], to_end=30.0)
  assert done.returncode == 130
  assert "Ended at once." in done.stderr


def test_epoch_that_ends_in_time_is_not_saved_by_the_thread(monkeypatch):
  monkeypatch.setattr(interrupts_lib, "_SECONDS_FOR_EPOCH", 0.2)
  saved = []
  with interrupts_lib.Interrupts() as interrupts:
    with interrupts.save_on_timeout(lambda: saved.append(1)):
      os.kill(os.getpid(), signal.SIGTERM)
      _wait_for(interrupts)
    time.sleep(0.5)  # The deadline passes outside of the epoch.
  assert not saved
