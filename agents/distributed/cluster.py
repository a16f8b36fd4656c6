"""Addresses of the machines that train together, and their connection.

As in TensorFlow, `TF_CONFIG` describes the cluster; Kubernetes, Slurm and
Vertex AI can set it. The options --cluster and --task take precedence over it.
"""

import contextlib
import errno
import json
import os
import re
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from agents import config as config_lib

_CONNECT_SECONDS = 120.0  # Limit for all machines to connect.
_NOTICE_SECONDS = 5.0  # Interval of messages about missing machines.
_ROLES = "chief", "worker"  # Roles in TF_CONFIG, in the order of the machines.


class Cluster(NamedTuple):
  """Machines that train together."""

  addresses: tuple[str, ...]  # host:port of each machine.
  task: int  # Index of this machine; machine 0 has the run folder.

  def name(self, task: int) -> str:
    """Returns the name of a machine in messages.

    Args:
      task: Index of the machine.
    """
    return f"machine {task} ({self.addresses[task]})"

  def unreachable(self) -> dict[int, str]:
    """Returns the reason for each other machine that refuses a connection."""
    reasons = {}
    for task, address in enumerate(self.addresses):
      if task != self.task:
        try:
          socket.create_connection(_split(address), 1.0).close()
        except OSError as error:
          reasons[task] = error.strerror or str(error)
    return reasons

  def describe_lost(self, error: str) -> str:
    """Returns a sentence that names the lost machines, if they are known.

    Args:
      error: Message of TensorFlow.
    """
    named = {int(task) for task in re.findall(r"/task:(\d+)", error)
             if int(task) != self.task}
    # Other machines may be unreachable because they lost the same machine and
    # ended. Machines that the error names are therefore preferred.
    unreachable = set(self.unreachable())
    tasks = sorted(named & unreachable or named or unreachable)
    names = " and ".join(map(self.name, tasks)) or "another machine"
    return f"Lost {names}."


def find(addresses: str | None, task: str | None,
         environ: Mapping[str, str] = os.environ) -> Cluster | None:
  """Returns the cluster to train on; None for training on this machine only.

  Args:
    addresses: Comma-separated host:port of the machines; None reads TF_CONFIG.
    task: Index of this machine among the addresses.
    environ: Environment variables that may contain TF_CONFIG.

  Raises:
    ConfigError: If the description of the cluster is invalid.
  """
  if (addresses is None) != (task is None):
    raise config_lib.ConfigError(
        "--cluster and --task belong together: --cluster "
        "host0:port,host1:port is the same on all machines, --task 0, 1, ... "
        "is the index of each machine.")
  if addresses is not None and task is not None:
    if not task.isdigit():
      raise config_lib.ConfigError(
          f"--task {task}: expected the number of a machine, from 0.")
    return _make_cluster(addresses.split(","), int(task), "--cluster")
  try:
    return _from_tf_config(json.loads(environ.get("TF_CONFIG", "{}")))
  except config_lib.ConfigError:
    raise
  except (ValueError, TypeError, KeyError, AttributeError) as error:
    raise config_lib.ConfigError(
        f"TF_CONFIG can't be used ({type(error).__name__}: {error}). Expected "
        'JSON such as {"cluster": {"worker": ["host0:2222", "host1:2222"]}, '
        '"task": {"type": "worker", "index": 0}}.') from None


def _from_tf_config(data: dict[str, Any]) -> Cluster | None:
  cluster, task = data.get("cluster") or {}, data.get("task") or {}
  if not cluster:
    return None
  if unknown := sorted(set(cluster) - set(_ROLES)):
    raise config_lib.ConfigError(
        f"TF_CONFIG names a {unknown[0]}, but training supports only machines "
        "of type worker or chief.")
  members = {(role, index): address for role in _ROLES
             for index, address in enumerate(cluster.get(role, ()))}
  member = task["type"], int(task["index"])
  if member not in members:
    raise config_lib.ConfigError(
        f"TF_CONFIG: its cluster has no {member[0]} {member[1]}.")
  return _make_cluster(
      [*members.values()], [*members].index(member), "TF_CONFIG")


def _make_cluster(addresses: list[str], task: int, source: str
                  ) -> Cluster | None:
  """Checks the addresses; returns None if this is the only machine."""
  addresses = [address.strip() for address in addresses]
  for address in addresses:
    host, port = _split(address)
    if not host or not 0 < port < 65536:
      raise config_lib.ConfigError(
          f"{source}: '{address}' is not an address. Expected host:port.")
  if len(set(addresses)) < len(addresses):
    raise config_lib.ConfigError(f"{source} names an address twice.")
  if task >= len(addresses):
    raise config_lib.ConfigError(
        f"{source} has {len(addresses)} machines, 0 to {len(addresses) - 1}, "
        f"but no machine {task}.")
  return Cluster(tuple(addresses), task) if len(addresses) > 1 else None


def _split(address: str) -> tuple[str, int]:
  host, _, port = address.rpartition(":")
  return host.strip("[]"), int(port) if port.isdigit() else 0


@contextlib.contextmanager
def start_watchdog(cluster: Cluster, timeout: float = _CONNECT_SECONDS
                   ) -> Iterator[None]:
  """Context that reports missing machines, and ends the process after a while.

  TensorFlow waits for an hour without a message.

  Args:
    cluster: Machines that connect within the context.
    timeout: Seconds until the process ends.

  Yields:
    None.

  Raises:
    ConfigError: If another program uses the port of this machine.
  """
  _check_own_address(cluster)
  connected = threading.Event()
  thread = threading.Thread(
      target=_watch, args=(cluster, timeout, connected), daemon=True)
  thread.start()
  try:
    yield
  finally:
    connected.set()
    thread.join()


def _check_own_address(cluster: Cluster):
  """Raises ConfigError if another program uses the port of this machine."""
  host, port = _split(cluster.addresses[cluster.task])
  name = cluster.name(cluster.task)
  family = socket.AF_INET6 if ":" in host else socket.AF_INET
  with socket.socket(family) as server:
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
      server.bind((host, port))
    except OSError as error:
      if error.errno == errno.EADDRINUSE:
        raise config_lib.ConfigError(
            f"This can't be {name}: {error.strerror}. Is another program at "
            "that port?") from None
      # Not an error: in a container, the external address is that of the host.
      print(f"Note: This is {name}, but does not have that address "
            f"({error.strerror or error}).\nCheck that --task is the index "
            "of this machine.", file=sys.stderr, flush=True)


def _watch(cluster: Cluster, timeout: float, connected: threading.Event):
  """Prints missing machines; ends the process after `timeout` seconds."""
  deadline = time.monotonic() + timeout
  while not connected.wait(_NOTICE_SECONDS):
    missing = [f"{cluster.name(task)}: {reason}"
               for task, reason in cluster.unreachable().items()]
    late = time.monotonic() >= deadline
    print("\nConfigError: The other machines did not connect within "
          f"{timeout:.0f} seconds." if late else "Waiting for other machines.",
          *missing or [
              "All machines answer, but do not join. Check that all have the "
              "same --cluster,\nand each machine its own --task."],
          sep="\n", file=sys.stderr, flush=True)
    if late:
      os._exit(2)  # The main thread waits in TensorFlow.
