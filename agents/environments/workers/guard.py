"""A small process that ends this one soon after its parent has ended.

A thread could not do this, because native code that hangs may hold the
interpreter's lock.
"""

import contextlib
import os
import select
import signal


def start(lifeline_fd: int, seconds: float) -> int:
  """Starts the guard of this process, which must lead its process group.

  When the parent has ended, the guard sends SIGTERM to this process. After a
  time limit, the guard kills the process group.

  Args:
    lifeline_fd: Read end of a pipe, which this function closes. Only the parent
      holds the write end.
    seconds: Time to end after SIGTERM.

  Returns:
    File descriptor that must stay open while this process runs.
  """
  guarded = os.getpid()
  alive, own_end = os.pipe()
  if os.fork():
    os.close(alive)
    os.close(lifeline_fd)
    return own_end
  try:
    os.close(own_end)
    for signum in (signal.SIGTERM, signal.SIGHUP):
      signal.signal(signum, signal.SIG_IGN)
    if alive not in _wait(None, alive, lifeline_fd):
      with contextlib.suppress(ProcessLookupError):  # Only children are left.
        os.kill(guarded, signal.SIGTERM)
      if not _wait(seconds, alive):
        os.killpg(guarded, signal.SIGKILL)  # Includes the children.
  finally:
    os._exit(0)


def _wait(seconds: float | None, *descriptors: int) -> list[int]:
  """Waits until one of several pipes is closed; returns the closed ones."""
  poll = select.poll()  # Unlike `select`, accepts descriptors above 1023.
  for descriptor in descriptors:
    poll.register(descriptor, select.POLLIN)
  return [descriptor for descriptor, _ in poll.poll(None if seconds is None else 1000 * seconds)]
