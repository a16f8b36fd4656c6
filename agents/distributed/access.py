"""Checks which programs may join a cluster, and warns of open ports.

TensorFlow's server accepts connections without authentication. The shared
secret shows only that the machines of a run belong together. The ports must be
closed to all other hosts; docs/scaling.md has rules for a firewall.
"""

import contextlib
import hashlib
import hmac
import os
import pathlib
import socket
import sys
import tempfile
from typing import Any

from agents import config as config_lib
from agents.distributed import cluster as cluster_lib
from agents.training.run_folder import user_modules

_MIN_SECRET_BYTES = 16
_NONCE_BYTES = 32


def read_secret(path: str | None, cluster: cluster_lib.Cluster) -> bytes:
  """Reads the secret that all machines of a cluster share.

  Processes on one host share a secret of this user, unless `path` is given.

  Args:
    path: Option --cluster-secret-file.
    cluster: Addresses of the machines.

  Raises:
    ConfigError: If the option is missing, or the file cannot be used.
  """
  advice = "`head -c 32 /dev/urandom | base64 > FILE` creates one; copy it to all machines."
  if path is None:
    if all(map(_is_loopback, cluster.addresses)):
      with contextlib.suppress(OSError):
        return _own_secret()
    raise config_lib.ConfigError(f"a cluster needs --cluster-secret-file FILE. {advice}")
  try:
    secret = pathlib.Path(path).expanduser().read_bytes().strip()
  except OSError as error:
    raise config_lib.ConfigError(f"--cluster-secret-file {path}: {error.strerror}.") from None
  if len(secret) < _MIN_SECRET_BYTES:
    raise config_lib.ConfigError(
      f"--cluster-secret-file {path}: the secret has fewer than {_MIN_SECRET_BYTES} bytes. {advice}"
    )
  return secret


def _is_loopback(address: str) -> bool:
  host = address.rpartition(":")[0]
  return host in ("localhost", "[::1]") or host.startswith("127.")


def _own_secret() -> bytes:
  """Creates or reads a secret that other users cannot read."""
  folder = user_modules.state_folder()
  folder.mkdir(parents=True, exist_ok=True)
  path = folder / "cluster-secret"
  with tempfile.NamedTemporaryFile(dir=folder) as file:  # Other users can't read it.
    file.write(os.urandom(_NONCE_BYTES))
    file.flush()
    with contextlib.suppress(FileExistsError):
      os.link(file.name, path)
  return path.read_bytes()


def warn_of_open_port(cluster: cluster_lib.Cluster) -> None:
  """Prints the addresses on which TensorFlow's server of this machine listens.

  Args:
    cluster: Addresses of the machines.
  """
  port = cluster.addresses[cluster.task].rpartition(":")[2]
  interfaces = ", ".join(name for _, name in socket.if_nameindex())
  others = ", ".join(
    address.rpartition(":")[0]
    for task, address in enumerate(cluster.addresses)
    if task != cluster.task
  )
  print(
    f"{cluster.name(cluster.task).capitalize()} listens on 0.0.0.0:{port} and [::]:{port}, which "
    f"are all network interfaces ({interfaces}).\n"
    f"Warning: programs that reach port {port} can run code on this machine. Close the port to "
    f"all hosts except {others}; see docs/scaling.md.",
    file=sys.stderr,
    flush=True,
  )


def authenticate(communicator: Any, cluster: cluster_lib.Cluster) -> None:
  """Checks that all machines have the same secret, without sending it.

  Must precede all other messages. Each machine sends a random number, and then
  a digest of the secret, all random numbers and its own index.

  Args:
    communicator: `collectives.Communicator` of the machines.
    cluster: Addresses of the machines, and the secret.

  Raises:
    ConfigError: If there is no secret, or the secret of a machine differs.
  """
  if not cluster.secret:
    raise config_lib.ConfigError("a cluster needs a secret; see `access.read_secret`.")
  nonces = b"".join(communicator.all_gather_bytes(os.urandom(_NONCE_BYTES)))

  def digest(rank: int) -> bytes:
    return hmac.digest(cluster.secret, nonces + rank.to_bytes(4, "big"), hashlib.sha256)

  for rank, received in enumerate(communicator.all_gather_bytes(digest(communicator.rank))):
    if not hmac.compare_digest(received, digest(rank)):
      raise config_lib.ConfigError(
        f"{cluster.name(rank)} has another secret. All machines need the same contents of "
        "--cluster-secret-file."
      )
