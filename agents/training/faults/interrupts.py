"""Signals to stop save a run, and end its process within ten seconds.

The signals are SIGINT (Ctrl-C), SIGTERM, and SIGHUP (a closed terminal).

During a graph call, Python runs no signal handlers, so a thread watches for the
signals. Usually the main thread finishes the epoch, saves the run and ends the
process. If the epoch takes too long, the watching thread saves the state from
before the epoch and ends the process.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from agents.environments.data import lost_output
from agents.training.run_folder import run_lock

_SIGNALS = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
# Times of the actions after the first signal.
_SECONDS_FOR_STEPS = 4.0  # The trainer stops waiting for environments.
_SECONDS_FOR_EPOCH = 6.0  # The watching thread saves if an epoch is running.
_SECONDS_TO_END = 9.3  # The watching thread ends the process.
_SECONDS_TO_PRINT = 0.3  # Maximum duration of printing a message.


class Interrupts:
  """Context in which SIGINT, SIGTERM and SIGHUP are requests to stop.

  A second Ctrl-C ends the process at once; its workers end by themselves. In
  this context, output to a closed terminal or pipe is discarded.

  The attribute `signum` is the number of the first signal, or None. The text
  `farewell` is printed when the watching thread ends the process. The file
  descriptor `give_up_fd` becomes readable when the trainer must stop waiting
  for environments.
  """

  def __init__(self) -> None:
    self.signum: int | None = None
    self.farewell = "Nothing was saved."
    self.give_up_fd, self._give_up = os.pipe()
    self._saving = threading.Lock()  # Locked while the watching thread saves.
    self._save: Callable[[], None] | None = None

  @property
  def exit_code(self) -> int:
    """Exit code of a process that ends because of the signal."""
    return 128 + (self.signum or 0)

  def __call__(self) -> bool:
    """Returns whether a signal has requested to stop."""
    return self.signum is not None

  def __enter__(self) -> Interrupts:
    self._output = lost_output.discarded()
    self._output.__enter__()
    self._arrivals, self._sender = socket.socketpair()
    self._sender.setblocking(False)
    self._handlers = self.install_handlers()
    self._old_fd = signal.set_wakeup_fd(self._sender.fileno(), warn_on_full_buffer=False)
    self._thread = threading.Thread(target=self._watch, daemon=True)
    self._thread.start()
    return self

  def __exit__(self, *_: object) -> None:
    signal.set_wakeup_fd(self._old_fd)
    for signum, handler in self._handlers.items():
      signal.signal(signum, handler)
    self._sender.close()  # Ends the watching thread.
    self._thread.join()
    self._arrivals.close()
    os.close(self._give_up)
    os.close(self.give_up_fd)
    self._output.__exit__(None, None, None)

  def install_handlers(self) -> dict[signal.Signals, Any]:
    """Installs the signal handlers.

    Call this method again if a library has replaced the handlers.

    Returns:
      The previous Python handler of each signal.
    """
    # Also replaces handlers that C++ code has installed. The command `nohup`
    # ignores SIGHUP, so that a run outlives its terminal.
    return {
      signum: signal.signal(signum, lambda *_: None)
      for signum in _SIGNALS
      if signum != signal.SIGHUP or signal.getsignal(signum) != signal.SIG_IGN
    }

  @contextlib.contextmanager
  def save_on_timeout(self, save: Callable[[], None]) -> Iterator[None]:
    """Context of an epoch, during which the watching thread may save.

    Args:
      save: Saves the state from before the epoch; runs in another thread.
    """
    self._save = save
    try:
      yield
    finally:
      # Waits if the watching thread saves, until that thread ends the process.
      with self._saving:
        self._save = None

  def _watch(self) -> None:
    """Receives signals, and acts at each deadline after the first signal."""
    deadlines: list[tuple[float, Callable[[], Any]]] = []
    arrivals = select.poll()  # Unlike `select`, accepts descriptors above 1023.
    arrivals.register(self._arrivals, select.POLLIN)
    while True:
      wait = max(0.0, deadlines[0][0] - time.monotonic()) if deadlines else None
      if not arrivals.poll(None if wait is None else 1000 * wait):
        deadlines.pop(0)[1]()
        continue
      if not (arrived := self._arrivals.recv(1)):
        return
      signum, now = arrived[0], time.monotonic()
      if self.signum is None and signum in _SIGNALS:
        self.signum = signum
        deadlines = [
          (now + _SECONDS_FOR_STEPS, lambda: os.write(self._give_up, b"\0")),
          (now + _SECONDS_FOR_EPOCH, self._save_and_end),
          (now + _SECONDS_TO_END, lambda: self._end("It took too long to stop.")),
        ]
        _print(f"\n{signal.Signals(signum).name}: finishing the epoch; Ctrl-C again ends at once.")
      elif signum == signal.SIGINT:
        self._end("Ended at once.")

  def _save_and_end(self) -> None:
    """Saves the state from before the epoch, if one is in progress."""
    with self._saving:
      if self._save is not None:
        ended = _wait_for(self._try_to_save, _SECONDS_TO_END - _SECONDS_FOR_EPOCH)
        self._end(
          "The epoch took too long and was given up." if ended else "It took too long to save."
        )

  def _try_to_save(self) -> None:
    assert self._save
    try:
      self._save()
    except Exception as error:
      _print(f"The epoch was given up and could not be saved: {error}")

  def _end(self, reason: str) -> None:
    _print(f"{reason} {self.farewell}")
    _wait_for(run_lock.clear, _SECONDS_TO_PRINT)
    os._exit(self.exit_code)


def _print(text: str) -> None:
  """Prints in a thread, and waits briefly, because a full pipe blocks."""

  def write() -> None:
    with contextlib.suppress(OSError):
      print(text, file=sys.stderr, flush=True)

  _wait_for(write, _SECONDS_TO_PRINT)


def _wait_for(function: Callable[[], None], seconds: float) -> bool:
  """Calls a function in a thread; returns whether it ends within `seconds`."""
  thread = threading.Thread(target=function, daemon=True)
  thread.start()
  thread.join(seconds)
  return not thread.is_alive()
