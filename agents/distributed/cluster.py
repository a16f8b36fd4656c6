"""Addresses of the machines of a cluster.

The environment variable `TF_CONFIG` describes the cluster in the format of
TensorFlow. Cluster managers, such as Kubernetes and Vertex AI, can set this
variable. The options --cluster and --task take precedence over `TF_CONFIG`.
"""

import json
import os
import re
import socket
from collections.abc import Mapping
from typing import Any, NamedTuple

from agents import config as config_lib

_ROLES = "chief", "worker"  # Roles in TF_CONFIG, in the order of indices.


class Cluster(NamedTuple):
  """Machines that train together."""

  addresses: tuple[str, ...]  # host:port of each machine.
  task: int  # Index of this machine; machine 0 has the run folder.
  secret: bytes = b""  # Equal on all machines, see `access`.

  def name(self, task: int) -> str:
    """Returns the name of a machine in messages.

    Args:
      task: Index of the machine.
    """
    return f"machine {task} ({self.addresses[task]})"

  def host_and_port(self, task: int) -> tuple[str, int]:
    """Returns the address of a machine for sockets.

    Args:
      task: Index of the machine.
    """
    return _split(self.addresses[task])

  def unreachable(self) -> dict[int, str]:
    """Tries to connect to every other machine.

    Returns:
      Error message of each connection that failed, by index of the machine.
    """
    reasons = {}
    for task in range(len(self.addresses)):
      if task != self.task:
        try:
          socket.create_connection(self.host_and_port(task), 1.0).close()
        except OSError as error:
          reasons[task] = error.strerror or str(error)
    return reasons

  def describe_lost(self, error: str) -> str:
    """Returns a sentence such as "Lost machine 1 (host1:2222).".

    Args:
      error: Error message of TensorFlow, which may contain the indices of the
        lost machines.
    """
    named = {int(task) for task in re.findall(r"/task:(\d+)", error) if int(task) != self.task}
    # Machines in the error message take precedence. Any other machine may be
    # unreachable only because it ended after it lost the same machine.
    unreachable = set(self.unreachable())
    tasks = sorted(named & unreachable or named or unreachable)
    names = " and ".join(map(self.name, tasks)) or "another machine"
    return f"Lost {names}."


def find(
  addresses: str | None, task: str | None, environ: Mapping[str, str] = os.environ
) -> Cluster | None:
  """Reads the description of the cluster from options or from TF_CONFIG.

  Args:
    addresses: Option --cluster, comma-separated host:port of all machines. If
      None, TF_CONFIG describes the cluster.
    task: Option --task, the index of this machine in `addresses`.
    environ: Environment variables, which may contain TF_CONFIG.

  Returns:
    The cluster, or None if the run trains on this machine only.

  Raises:
    ConfigError: If the description of the cluster is invalid.
  """
  if (addresses is None) != (task is None):
    raise config_lib.ConfigError(
      "--cluster and --task belong together: --cluster "
      "host0:port,host1:port is the same on all machines, --task 0, 1, ... "
      "is the index of each machine."
    )
  if addresses is not None and task is not None:
    if not task.isdigit():
      raise config_lib.ConfigError(f"--task {task}: expected the index of a machine, from 0.")
    return _make_cluster(addresses.split(","), int(task), "--cluster")
  try:
    return _from_tf_config(json.loads(environ.get("TF_CONFIG", "{}")))
  except config_lib.ConfigError:
    raise
  except (ValueError, TypeError, KeyError, AttributeError) as error:
    raise config_lib.ConfigError(
      f"TF_CONFIG can't be used ({type(error).__name__}: {error}). Expected "
      'JSON such as {"cluster": {"worker": ["host0:2222", "host1:2222"]}, '
      '"task": {"type": "worker", "index": 0}}.'
    ) from None


def _from_tf_config(data: dict[str, Any]) -> Cluster | None:
  cluster, task = data.get("cluster") or {}, data.get("task") or {}
  if not cluster:
    return None
  if unknown := sorted(set(cluster) - set(_ROLES)):
    raise config_lib.ConfigError(
      f"TF_CONFIG contains machines of type {unknown[0]}, but training "
      "supports only the types worker and chief."
    )
  members = {
    (role, index): address for role in _ROLES for index, address in enumerate(cluster.get(role, ()))
  }
  member = task["type"], int(task["index"])
  if member not in members:
    raise config_lib.ConfigError(
      f"TF_CONFIG: this machine is {member[0]} {member[1]}, but the cluster "
      f"has no {member[0]} {member[1]}."
    )
  return _make_cluster([*members.values()], [*members].index(member), "TF_CONFIG")


def _make_cluster(addresses: list[str], task: int, source: str) -> Cluster | None:
  """Checks the addresses; returns None for a cluster of one machine."""
  addresses = [address.strip() for address in addresses]
  for address in addresses:
    host, port = _split(address)
    if not host or not 0 < port < 65536:
      raise config_lib.ConfigError(f"{source}: '{address}' is not an address. Expected host:port.")
  if len(set(addresses)) < len(addresses):
    raise config_lib.ConfigError(f"{source} names an address twice.")
  if task >= len(addresses):
    raise config_lib.ConfigError(
      f"{source} has {len(addresses)} machines, 0 to {len(addresses) - 1}, but no machine {task}."
    )
  return Cluster(tuple(addresses), task) if len(addresses) > 1 else None


def _split(address: str) -> tuple[str, int]:
  """Returns host and port; the port is 0 if it is not a number."""
  host, _, port = address.rpartition(":")
  return host.strip("[]"), int(port) if port.isdigit() else 0
