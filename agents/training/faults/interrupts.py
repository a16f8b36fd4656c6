"""Ctrl-C and SIGTERM: finish the epoch, or give up on it, but do end.

Python runs its signal handlers between two graph calls only, so a thread
watches the signals as they arrive.
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
from typing import Any

_SECONDS_TO_FINISH = 4.0  # Then environments are no longer waited for.
_SECONDS_TO_END = 9.3  # Then the process ends, whatever it is doing.
_SECONDS_TO_SAY = 0.3  # Why.


class Interrupts:
  """Context in which the two signals are requests to stop.

  The attribute `signum` is the signal that came, or None. A second Ctrl-C
  ends the process at once; its workers follow by themselves.
  """

  def __init__(self):
    self.signum: int | None = None
    self.farewell = "Nothing was saved."  # Printed when it ends the process.
    # Readable when waiting for the environments must end.
    self.give_up_fd, self._give_up = os.pipe()

  @property
  def exit_code(self) -> int:
    return 128 + (self.signum or 0)

  def __call__(self) -> bool:
    """Whether to stop."""
    return self.signum is not None

  def __enter__(self) -> Interrupts:
    self._arrivals, sender = socket.socketpair()
    sender.setblocking(False)
    self._sender = sender
    self._handlers = self.renew()
    self._old_fd = signal.set_wakeup_fd(
        sender.fileno(), warn_on_full_buffer=False)
    self._thread = threading.Thread(target=self._watch, daemon=True)
    self._thread.start()
    return self

  def renew(self) -> dict[signal.Signals, Any]:
    """Take the signals, also from those that took them since; return whose
    they were."""
    handlers: dict[signal.Signals, Any] = {}
    for signum in (signal.SIGINT, signal.SIGTERM):
      # Python does not notice what C++ has done, nor put back what is there.
      handlers[signum] = signal.signal(signum, signal.SIG_DFL)
      signal.signal(signum, lambda *_: None)
    return handlers

  def __exit__(self, *_):
    signal.set_wakeup_fd(self._old_fd)
    for signum, handler in self._handlers.items():
      signal.signal(signum, handler)
    self._sender.close()  # Ends the thread.
    self._thread.join()
    self._arrivals.close()
    os.close(self._give_up)
    os.close(self.give_up_fd)

  def _watch(self):
    deadlines: list[float] = []
    while True:
      wait = max(0.0, deadlines[0] - time.monotonic()) if deadlines else None
      if not select.select([self._arrivals], [], [], wait)[0]:
        deadlines.pop(0)
        if deadlines:
          os.write(self._give_up, b"\0")
          continue
        self._end("It took too long to stop.")
      arrived = self._arrivals.recv(1)
      if not arrived:
        return
      if arrived[0] not in (signal.SIGINT, signal.SIGTERM):
        continue
      if self.signum is None:
        self.signum = arrived[0]
        now = time.monotonic()
        deadlines = [now + _SECONDS_TO_FINISH, now + _SECONDS_TO_END]
        _say(f"\n{signal.Signals(self.signum).name}: finishing the epoch; "
             "Ctrl-C again ends at once.")
      elif arrived[0] == signal.SIGINT:
        self._end("Ended at once.")

  def _end(self, why: str):
    _say(f"{why} {self.farewell}")
    os._exit(self.exit_code)


def _say(text: str):
  """Print, unless nobody reads it; a full pipe would be waited for forever."""
  def say():
    with contextlib.suppress(OSError):
      print(text, file=sys.stderr, flush=True)
  thread = threading.Thread(target=say, daemon=True)
  thread.start()
  thread.join(_SECONDS_TO_SAY)
