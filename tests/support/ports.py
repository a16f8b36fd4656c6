"""Free ports for servers that tests start later."""

import contextlib
import random
import socket

# Ports below the range from which Linux takes the local ports of connections
# (32768 to 60999). A connection of another test therefore cannot take such a
# port before the server starts.
_PORTS = range(20_000, 32_000)


def free(count: int) -> list[int]:
  """Returns different ports on which no program listens.

  Args:
    count: Number of ports.
  """
  ports: list[int] = []
  with contextlib.ExitStack() as stack:
    for port in random.SystemRandom().sample(_PORTS, len(_PORTS)):
      server = stack.enter_context(socket.socket())
      with contextlib.suppress(OSError):
        server.bind(("127.0.0.1", port))
        ports.append(port)
      if len(ports) == count:
        break
  return ports
