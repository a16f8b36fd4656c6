"""Which machines train together, and how they find each other.

They are told as TensorFlow's clusters are: by `TF_CONFIG`, which Kubernetes,
Slurm and Vertex AI set or let one set, or by hand.
"""

from __future__ import annotations

import errno
import json
import os
import re
import socket
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any
from typing import NamedTuple

from agents import config as config_lib

_PATIENCE = 120.0  # Seconds to wait for others to begin.
_NOTICE = 5.0  # Seconds until it is said who is waited for, and between.
_ROLES = ("chief", "worker")  # Of TF_CONFIG's, the first machines first.


class Cluster(NamedTuple):
  """Machines that train together, of which this is one."""

  addresses: tuple[str, ...]  # host:port of each.
  task: int  # Which one this is.

  @property
  def is_coordinator(self) -> bool:
    """Whether this machine has the run folder."""
    return not self.task

  def name(self, task: int) -> str:
    return f"machine {task} ({self.addresses[task]})"

  def silent(self) -> dict[int, str]:
    """Return the other machines that can't be reached now, and why."""
    found = {}
    for task, address in enumerate(self.addresses):
      if task != self.task:
        host, port = _split(address)
        try:
          socket.create_connection((host, port), 1.0).close()
        except OSError as error:
          found[task] = error.strerror or str(error)
    return found

  def blame(self, error: str) -> str:
    """Say which machine is lost, as far as that is known.

    Args:
      error: What TensorFlow says.
    """
    named = {int(task) for task in re.findall(r"/task:(\d+)", error)
             if int(task) != self.task}
    silent = set(self.silent())  # Some because they have lost it, too.
    tasks = sorted(named & silent or named or silent)
    names = " and ".join(map(self.name, tasks)) or "another machine"
    return f"Lost {names}."


def find(addresses: str | None, task: str | None,
         environ: Mapping[str, str] = os.environ) -> Cluster | None:
  """Return the machines to train on; None: this one alone, as ever.

  Args:
    addresses: host:port of each machine, with commas between them.
    task: Which of them this is, from 0.
    environ: Whose TF_CONFIG is read if there are no addresses.
  Raises:
    ConfigError: If they make no sense.
  """
  if (addresses is None) != (task is None):
    raise config_lib.ConfigError(
        "--cluster and --task belong together: --cluster "
        "host0:port,host1:port is the same on all machines, --task 0, 1, ... "
        "says which of them this is.")
  if addresses is not None and task is not None:
    if not task.isdigit():
      raise config_lib.ConfigError(
          f"--task {task}: expected the number of a machine, from 0.")
    return _checked(addresses.split(","), int(task), "--cluster")
  if "TF_CONFIG" not in environ:
    return None
  try:
    told = json.loads(environ["TF_CONFIG"])
    return _of_tf_config(told)
  except config_lib.ConfigError:
    raise
  except (ValueError, TypeError, KeyError, AttributeError) as error:
    raise config_lib.ConfigError(
        f"TF_CONFIG can't be used ({type(error).__name__}: {error}). Expected "
        'such as {"cluster": {"worker": ["host0:2222", "host1:2222"]}, "task": '
        '{"type": "worker", "index": 0}}.') from None


def _of_tf_config(told: dict[str, Any]) -> Cluster | None:
  cluster, task = told.get("cluster") or {}, told.get("task") or {}
  if not cluster:
    return None
  if others := sorted(set(cluster) - set(_ROLES)):
    raise config_lib.ConfigError(
        f"TF_CONFIG names a {others[0]}, for which there is nothing to do: "
        "all machines are workers, of which one may be called chief.")
  places = [(role, index) for role in _ROLES
            for index in range(len(cluster.get(role, ())))]
  place = task["type"], int(task["index"])
  if place not in places:
    raise config_lib.ConfigError(
        f"TF_CONFIG: there is no {place[0]} {place[1]} in its cluster.")
  return _checked([cluster[role][index] for role, index in places],
                  places.index(place), "TF_CONFIG")


def _checked(addresses: list[str], task: int, source: str) -> Cluster | None:
  addresses = [address.strip() for address in addresses]
  for address in addresses:
    host, port = _split(address)
    if not host or not 0 < port < 65536:
      raise config_lib.ConfigError(
          f"{source}: '{address}' is no address. Expected host:port.")
  if len(set(addresses)) < len(addresses):
    raise config_lib.ConfigError(f"{source} names an address twice.")
  if task >= len(addresses):
    raise config_lib.ConfigError(
        f"{source} has {len(addresses)} machines, 0 to {len(addresses) - 1}; "
        f"there is no machine {task}.")
  return Cluster(tuple(addresses), task) if len(addresses) > 1 else None


def _split(address: str) -> tuple[str, int]:
  host, _, port = address.rpartition(":")
  return host.strip("[]"), int(port) if port.isdigit() else 0


class StartWatchdog:
  """Context in which other machines are waited for, but not forever.

  TensorFlow waits in silence and for an hour; this says for whom, and ends the
  process where that is no use.
  """

  def __init__(self, cluster: Cluster, patience: float = _PATIENCE):
    self._cluster = cluster
    self._patience = patience
    self._over = threading.Event()
    self._thread = threading.Thread(target=self._watch, daemon=True)

  def __enter__(self):
    host, port = _split(self._cluster.addresses[self._cluster.task])
    with socket.socket(
        socket.AF_INET6 if ":" in host else socket.AF_INET) as server:
      server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
      name = self._cluster.name(self._cluster.task)
      try:
        server.bind((host, port))
      except OSError as error:
        if error.errno == errno.EADDRINUSE:
          raise config_lib.ConfigError(
              f"This can't be {name}: {error.strerror}. Is another program at "
              "that port?") from None
        # Which it need not have, as within a container.
        print(f"Note: This is {name}, but does not have that address "
              f"({error.strerror or error}). Is --task that of this machine?",
              file=sys.stderr, flush=True)
    self._thread.start()

  def __exit__(self, *_):
    self._over.set()
    self._thread.join()

  def _watch(self):
    begin = time.monotonic()
    while not self._over.wait(_NOTICE):
      silent = self._cluster.silent()
      missing = "; ".join(f"{self._cluster.name(task)}: {reason}"
                          for task, reason in silent.items()) or (
          "all answer, but do not join. Do all have the same --cluster, and "
          "each its own --task?")
      if time.monotonic() < begin + self._patience:
        print(f"Waiting for other machines. {missing}", file=sys.stderr,
              flush=True)
        continue
      print(f"\nConfigError: The other machines did not come within "
            f"{self._patience:.0f} seconds. {missing}", file=sys.stderr,
            flush=True)
      os._exit(2)
