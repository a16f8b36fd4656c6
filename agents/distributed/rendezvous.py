"""Waits until all machines of a cluster are ready to connect.

While TensorFlow connects the machines, it holds the interpreter's lock, so that
this process could neither print the missing machines nor react to signals.
Therefore all machines first wait for each other by sockets, on the ports that
TensorFlow will use.
"""

from __future__ import annotations

import contextlib
import errno
import faulthandler
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator

from agents import config as config_lib
from agents import errors
from agents.distributed import cluster as cluster_lib

_CONNECT_SECONDS = 120.0  # Limit for each wait.
_NOTICE_SECONDS = 2.0  # Time until the first message about missing machines.
_REPEAT_SECONDS = 10.0  # Time between two such messages.
_POLL_SECONDS = 0.2
# Answers of a machine. Its port is later used by TensorFlow's server, which
# begins with a SETTINGS frame of HTTP/2 (RFC 9113, section 6.5).
_STARTING, _READY = b"starting", b"ready"


class Rendezvous:
  """Context in which this machine answers on its port, until all are ready.

  Args:
    cluster: Addresses of the machines.
    stop: Returns whether this process must end.

  Raises:
    ConfigError: If another program uses the port of this machine.
  """

  def __init__(self, cluster: cluster_lib.Cluster, stop: Callable[[], bool]) -> None:
    self._cluster = cluster
    self._stop = stop
    self._ready = False

  def __enter__(self) -> Rendezvous:
    self._server = _listen(self._cluster)
    self._thread = threading.Thread(target=self._answer, daemon=True)
    self._thread.start()
    return self

  def __exit__(self, *_: object) -> None:
    with contextlib.suppress(OSError):
      self._server.shutdown(socket.SHUT_RDWR)  # Ends the thread.
    self._thread.join()
    self._server.close()

  def wait_for_start(self) -> None:
    """Waits until all machines have started.

    Raises:
      ConfigError: If a machine is missing after `_CONNECT_SECONDS`.
      RunError: If this process must end.
    """
    self._wait(lambda answer: True)

  def wait_until_ready(self) -> None:
    """Waits until all machines have called this method.

    Raises:
      ConfigError: If a machine is missing after `_CONNECT_SECONDS`.
      RunError: If this process must end.
    """
    self._ready = True
    self._wait(lambda answer: answer != _STARTING)

  def _answer(self) -> None:
    """Sends the state of this machine to each client."""
    with contextlib.suppress(OSError):
      while True:
        client, _ = self._server.accept()
        with client, contextlib.suppress(OSError):
          client.send(_READY if self._ready else _STARTING)

  def _wait(self, accept: Callable[[bytes], bool]) -> None:
    """Waits until all other machines give an answer that is accepted."""
    start = time.monotonic()
    next_notice = start + _NOTICE_SECONDS
    while True:
      missing = "\n".join(self._missing(accept))
      if self._stop():
        raise errors.RunError("Stopped before all machines were connected.")
      if not missing:
        return
      now = time.monotonic()
      if now > start + _CONNECT_SECONDS:
        raise config_lib.ConfigError(
          f"the other machines did not connect within {_CONNECT_SECONDS:.0f} seconds.\n{missing}"
        )
      if now > next_notice:
        next_notice = now + _REPEAT_SECONDS
        print(
          f"Waiting for other machines, for at most {_CONNECT_SECONDS:.0f} seconds.\n{missing}",
          file=sys.stderr,
          flush=True,
        )
      time.sleep(_POLL_SECONDS)

  def _missing(self, accept: Callable[[bytes], bool]) -> Iterator[str]:
    """Yields a line for each machine without an accepted answer."""
    for task in range(len(self._cluster.addresses)):
      if task != self._cluster.task and not self._stop():
        try:
          with socket.create_connection(self._cluster.host_and_port(task), 1.0) as connection:
            answer = connection.recv(len(_STARTING))
          if not (answer in (_STARTING, _READY) or answer[3:4] == b"\x04"):
            yield f"{self._cluster.name(task)}: another program uses its port"
          elif not accept(answer):
            yield f"{self._cluster.name(task)}: is starting"
        except TimeoutError:
          yield f"{self._cluster.name(task)}: does not answer"
        except OSError as error:
          yield f"{self._cluster.name(task)}: {error.strerror or error}"


@contextlib.contextmanager
def time_limit(seconds: float = 60.0) -> Iterator[None]:
  """Context that ends this process after a time limit, or on a signal.

  Also works while native code holds the interpreter's lock. Then the traceback
  is printed.

  Args:
    seconds: Time limit.

  Yields:
    None.
  """
  for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(signum) != signal.SIG_IGN:
      signal.signal(signum, signal.SIG_DFL)
  faulthandler.dump_traceback_later(seconds, exit=True)
  try:
    yield
  finally:
    faulthandler.cancel_dump_traceback_later()


def _listen(cluster: cluster_lib.Cluster) -> socket.socket:
  """Listens on the port of this machine, on all interfaces like TensorFlow.

  Prints a note if the host does not have the address of this machine. Raises
  ConfigError if another program uses the port.
  """
  host, port = cluster.host_and_port(cluster.task)
  name = cluster.name(cluster.task)
  try:
    try:
      socket.create_server((host, port), family=_family(host)).close()
    except OSError as error:
      if error.errno == errno.EADDRINUSE:
        raise
      # Only a note, because a container does not have the external address of
      # its host.
      print(
        f"Note: This host does not have the address of {name} "
        f"({error.strerror or error}).\nCheck that --task is the index "
        "of this machine.",
        file=sys.stderr,
        flush=True,
      )
    dual = socket.has_dualstack_ipv6()
    return socket.create_server(("", port), family=_family(":" * dual), dualstack_ipv6=dual)
  except OSError as error:
    raise config_lib.ConfigError(
      f"This process can't listen as {name}: {error.strerror}. Does another program use that port?"
    ) from None


def _family(host: str) -> socket.AddressFamily:
  return socket.AF_INET6 if ":" in host else socket.AF_INET
