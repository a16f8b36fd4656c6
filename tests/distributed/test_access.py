"""Only machines with the shared secret join a cluster."""

import functools
import json
import os
import re
import subprocess
import sys
import time

import pytest

from agents import config
from agents.distributed import access, cluster
from tests.distributed import machines
from tests.support import command

_ADDRESSES = ("host0:1", "host1:2", "host2:3")
_LOCAL = cluster.Cluster(("127.0.0.1:1", "localhost:2", "[::1]:3"), 0)


def _authenticate(secrets, communicators=None):
  communicators = communicators or machines.communicators(len(secrets))
  machines.run(
    [
      functools.partial(access.authenticate, each, cluster.Cluster(_ADDRESSES, task, secret))
      for task, (each, secret) in enumerate(zip(communicators, secrets, strict=True))
    ],
    communicators[0].group,
  )


def test_machines_with_equal_secrets_are_accepted():
  _authenticate([b"equal"] * 3)


@pytest.mark.parametrize("task, secrets", [(1, [b"a", b"b", b"a"]), (2, [b"a", b"a", b"b"])])
def test_machine_with_another_secret_is_named(task, secrets):
  with pytest.raises(config.ConfigError, match=f"machine (0|{task}) .* has another secret"):
    _authenticate(secrets)


def test_missing_secret_is_an_error():
  with pytest.raises(config.ConfigError, match="needs a secret"):
    _authenticate([b""] * 2)


class _Repeats(machines.ThreadCommunicator):
  """Sends the latest message of machine 0 in place of its own message."""

  def all_gather_bytes(self, value):
    sent = self.group.exchange(self.rank, value)
    return self.group.exchange(self.rank, sent[0] if self.rank else value)


def test_repeated_messages_of_another_machine_are_rejected():
  group = machines.communicators(2)[0].group
  with pytest.raises(config.ConfigError, match="machine 1 .* has another secret"):
    _authenticate([b"equal"] * 2, [_Repeats(rank, group) for rank in range(2)])


def test_secret_file_is_read_without_line_break(tmp_path):
  path = tmp_path / "secret"
  path.write_text("0123456789abcdef\n")
  assert access.read_secret(str(path), _LOCAL) == b"0123456789abcdef"


@pytest.mark.parametrize(
  "content, error",
  [(None, "secret: No such file"), ("short\n" + " " * 20, "fewer than 16 bytes. `head -c 32")],
)
def test_unusable_secret_file_is_an_error(content, error, tmp_path):
  if content:
    (tmp_path / "secret").write_text(content)
  with pytest.raises(config.ConfigError, match=error):
    access.read_secret(str(tmp_path / "secret"), _LOCAL)


def test_several_hosts_without_a_secret_file_are_an_error():
  with pytest.raises(config.ConfigError, match="needs --cluster-secret-file FILE. `head"):
    access.read_secret(None, cluster.Cluster(("127.0.0.1:1", *_ADDRESSES), 0))


def test_processes_on_one_host_share_a_secret_that_other_users_cannot_read(tmp_path, monkeypatch):
  monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
  first = access.read_secret(None, _LOCAL)
  assert len(first) == 32 and first == access.read_secret(None, _LOCAL)
  (file,) = (tmp_path / "batched-ppo").iterdir()
  assert file.stat().st_mode & 0o777 == 0o600
  monkeypatch.setenv("XDG_STATE_HOME", str(file))  # Not a folder.
  with pytest.raises(config.ConfigError, match="needs --cluster-secret-file FILE"):
    access.read_secret(None, _LOCAL)


def test_warning_names_listening_addresses_and_the_hosts_to_allow(capsys):
  access.warn_of_open_port(cluster.Cluster(_ADDRESSES, 1))
  printed = capsys.readouterr().err
  assert "Machine 1 (host1:2) listens on 0.0.0.0:2 and [::]:2, which" in printed
  assert "lo" in printed
  assert "Close the port to all hosts except host0, host2;" in printed


def _netns(name, *args, **options):
  return subprocess.run(["ip", "netns", "exec", name, *args], **options)


@pytest.fixture
def hosts():
  """Three network namespaces: two machines of a cluster, and another host."""
  names = [f"bppo{os.getpid()}{letter}" for letter in "abc"]
  try:
    subprocess.run(["nft", "--version"], check=True, capture_output=True)
    for name in names:
      subprocess.run(["ip", "netns", "add", name], check=True, capture_output=True)
  except (OSError, subprocess.CalledProcessError) as error:
    pytest.skip(f"needs nft, and the right to create network namespaces: {error}")
  try:
    run = functools.partial(_netns, check=True)
    run(names[0], "ip", "link", "add", "bridge0", "type", "bridge")
    for number, name in enumerate(names[1:], 1):
      peer = ["peer", "name", "eth0", "netns", name]
      run(names[0], "ip", "link", "add", f"port{number}", "type", "veth", *peer)
      run(names[0], "ip", "link", "set", f"port{number}", "up", "master", "bridge0")
    for number, name in enumerate(names):
      link = "eth0" if number else "bridge0"
      for address in (f"10.0.0.{number + 1}/24", f"fd00::{number + 1}/64"):
        nodad = ["nodad"] if ":" in address else []
        run(name, "ip", "address", "add", address, "dev", link, *nodad)
      run(name, "ip", "link", "set", link, "up")
      run(name, "ip", "link", "set", "lo", "up")
    yield names
  finally:
    for name in names:
      subprocess.run(["ip", "netns", "delete", name], check=True)


_SERVER = """
import socket
with socket.create_server(("::", 2222), family=socket.AF_INET6, dualstack_ipv6=True) as server:
  print("ready", flush=True)
  while True:
    server.accept()[0].close()
"""
_CLIENT = """
import encodings.idna, os, socket, sys
os.setuid(int(sys.argv[2]))
socket.create_connection((sys.argv[1], 2222), 0.5)
"""


@pytest.mark.slow
def test_firewall_rules_of_the_documentation_admit_only_the_machines(hosts, tmp_path):
  text = (command.ROOT / "docs/scaling.md").read_text()
  (rules,) = re.findall(r"`batched-ppo.nft`:\n\n```text\n(.*?)```", text, re.DOTALL)
  path = tmp_path / "rules"
  path.write_text(rules.replace("alice", "root"))

  def reaches(host, address, user=0):
    arguments = [sys.executable, "-c", _CLIENT, address, str(user)]
    return _netns(host, *arguments, capture_output=True).returncode == 0

  server = subprocess.Popen(
    ["ip", "netns", "exec", hosts[0], sys.executable, "-c", _SERVER], stdout=subprocess.PIPE
  )
  try:
    assert server.stdout.readline()
    deadline = time.monotonic() + 20
    while not all(reaches(hosts[2], address) for address in ("10.0.0.1", "fd00::1")):
      assert time.monotonic() < deadline
    assert reaches(hosts[0], "127.0.0.1", user=65534)
    for host in hosts[:2]:
      _netns(host, "nft", "-f", str(path), check=True)
    assert reaches(hosts[1], "10.0.0.1") and reaches(hosts[0], "10.0.0.1")
    assert not reaches(hosts[2], "10.0.0.1") and not reaches(hosts[2], "fd00::1")
    for host in hosts[:2]:  # Other users of the machines.
      assert not reaches(host, "10.0.0.1", user=65534)
    for host in hosts[:2]:
      listed = _netns(host, "nft", "--json", "list", "ruleset", check=True, capture_output=True)
      assert json.loads(listed.stdout)["nftables"]
      _netns(host, "nft", "delete", "table", "inet", "batched_ppo", check=True)
    assert reaches(hosts[2], "10.0.0.1")
  finally:
    server.kill()
    server.communicate()
