"""Machines wait for each other, name missing machines, and end on signals."""

import contextlib
import re
import signal
import socket
import subprocess
import sys
import threading

import pytest

from agents import config as config_lib
from agents import errors
from agents.distributed import cluster as cluster_lib
from agents.distributed import rendezvous
from tests.support import command, ports


def _cluster(task=0, num_machines=2):
  addresses = tuple(f"127.0.0.1:{port}" for port in ports.free(num_machines))
  return cluster_lib.Cluster(addresses, task)


@pytest.fixture(autouse=True)
def brief(monkeypatch):
  monkeypatch.setattr(rendezvous, "_POLL_SECONDS", 0.01)


@pytest.mark.parametrize(
  "other, reason",
  [
    ("127.0.0.1:1", "Connection refused"),
    pytest.param("nowhere.invalid:1", ".+", marks=pytest.mark.slow),
  ],
)
def test_missing_machine_is_named_and_the_wait_ends(other, reason, monkeypatch, capsys):
  monkeypatch.setattr(rendezvous, "_NOTICE_SECONDS", 0.1)
  monkeypatch.setattr(rendezvous, "_CONNECT_SECONDS", 1.0)
  machines = _cluster()._replace(addresses=(_cluster().addresses[0], other))
  missing = f"machine 1 \\({other}\\): {reason}"
  with pytest.raises(config_lib.ConfigError) as caught:
    with rendezvous.Rendezvous(machines, bool) as meeting:
      meeting.wait_for_start()
  printed = f"Waiting for other machines, for at most 1 seconds.\n{missing}\n"
  assert re.fullmatch(printed, capsys.readouterr().err)
  message = f"the other machines did not connect within 1 seconds.\n{missing}"
  assert re.fullmatch(message, str(caught.value))


def test_request_to_stop_ends_the_wait():
  stop = threading.Event()
  threading.Timer(0.2, stop.set).start()
  with pytest.raises(errors.RunError, match="Stopped before all machines were connected"):
    with rendezvous.Rendezvous(_cluster(), stop.is_set) as meeting:
      meeting.wait_for_start()


def test_machines_wait_until_all_machines_are_ready():
  machines = _cluster(num_machines=3)
  meetings = [rendezvous.Rendezvous(machines._replace(task=task), bool) for task in range(3)]
  waiting = [threading.Thread(target=each.wait_until_ready) for each in meetings]
  with meetings[0], meetings[1]:
    waiting[0].start()
    waiting[1].start()
    with meetings[2]:
      for meeting in meetings:
        meeting.wait_for_start()
      waiting[0].join(timeout=0.2)
      assert waiting[0].is_alive() and waiting[1].is_alive()
      waiting[2].start()
      for thread in waiting:
        thread.join(timeout=20)
  assert not any(thread.is_alive() for thread in waiting)


@pytest.mark.slow
def test_server_of_tensorflow_counts_as_ready():
  # TensorFlow's server uses the port after the rendezvous of its machine.
  code = """
import sys, tensorflow as tf
server = tf.distribute.Server({"worker": [sys.argv[1]]}, "worker", 0)
print("listens", flush=True)
input()
"""
  machines = _cluster()
  with subprocess.Popen(
    [sys.executable, "-c", code, machines.addresses[1]],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    stderr=subprocess.DEVNULL,
  ) as process:
    assert process.stdout.readline()
    with rendezvous.Rendezvous(machines, bool) as meeting:
      meeting.wait_until_ready()
    process.kill()


@pytest.mark.parametrize(
  "answer, text", [(b"", "does not answer"), (b"SSH-2.0-OpenSSH", "another program uses its port")]
)
def test_port_that_no_machine_answers_is_named(answer, text, monkeypatch):
  monkeypatch.setattr(rendezvous, "_CONNECT_SECONDS", 0.3)
  machines = _cluster()
  with socket.create_server(machines.host_and_port(1)) as server:

    def serve():
      with contextlib.suppress(OSError):
        while True:
          clients.append(server.accept()[0])
          clients[-1].send(answer)

    clients = []
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    with rendezvous.Rendezvous(machines, bool) as meeting:
      with pytest.raises(config_lib.ConfigError, match=f"machine 1 .*: {text}"):
        meeting.wait_for_start()
    server.shutdown(socket.SHUT_RDWR)
    thread.join()
    for client in clients:
      client.close()


def test_missing_machines_are_named_within_five_seconds():
  assert rendezvous._NOTICE_SECONDS + 1.0 <= 5.0  # A connection takes up to a second.
  assert rendezvous._CONNECT_SECONDS == 120.0  # As documented.


def test_port_of_another_program_is_an_error():
  machines = _cluster()
  with socket.create_server(machines.host_and_port(0)):
    with pytest.raises(config_lib.ConfigError, match="Does another program use that port?"):
      with rendezvous.Rendezvous(machines, bool):
        pass


def test_address_of_another_machine_prints_a_note(capsys):
  # A container, for example, does not have the external address of its host.
  port = _cluster().host_and_port(0)[1]
  machines = cluster_lib.Cluster((f"192.0.2.1:{port}", "192.0.2.2:1"), 0)
  with rendezvous.Rendezvous(machines, bool):
    pass
  assert f"does not have the address of machine 0 (192.0.2.1:{port})" in capsys.readouterr().err


_NATIVE = """
import ctypes, signal
from agents.distributed import rendezvous
signal.signal(signal.SIGINT, lambda *_: None)
signal.signal(signal.SIGTERM, lambda *_: None)
mutex = ctypes.create_string_buffer(64)
with rendezvous.time_limit({seconds}):
  print("ready", flush=True)
  for _ in range(2):  # Locks the mutex twice, and keeps the interpreter's lock.
    ctypes.PyDLL(None).pthread_mutex_lock(mutex)
"""


@pytest.mark.parametrize(
  "seconds, signum, code",
  [(0.1, None, 1), (100, signal.SIGINT, -signal.SIGINT), (100, signal.SIGTERM, -signal.SIGTERM)],
)
def test_native_code_that_hangs_ends_on_a_signal_or_after_its_time_limit(seconds, signum, code):
  with subprocess.Popen(
    [sys.executable, "-c", _NATIVE.format(seconds=seconds)],
    cwd=command.ROOT,
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
  ) as process:
    try:
      assert process.stdout.readline() == "ready\n"
      if signum:
        process.send_signal(signum)
      _, stderr = process.communicate(timeout=20)
    finally:
      process.kill()
  assert process.returncode == code
  assert signum or stderr.startswith("Timeout (0:00:00.1")
