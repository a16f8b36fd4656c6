"""Messages arrive completely, or the receiver raises EOFError."""

import pickle
import socket
import threading

import cloudpickle
import numpy as np
import pytest

from agents.environments.workers import protocol
from tests.environments import faulty_envs


@pytest.fixture
def ends():
  """Both ends of a connection."""
  local, remote = socket.socketpair()
  with local, remote:
    yield local, remote


def _send(connection, message):
  """Sends a request without the first byte, which `receive` does not read."""
  connection.sendall(protocol.encode(protocol.REQUEST, message)[1:])


def test_every_byte_to_a_worker_has_one_meaning():
  commands = [bytes([number]) for number in range(protocol.MAX_BLOCKS)] + [
    protocol.REQUEST,
    protocol.DESCRIPTOR,
  ]
  assert len(set(commands)) == len(commands) == 256
  assert all(len(byte) == 1 for byte in commands)


def test_every_byte_from_a_worker_has_one_meaning():
  answers = {protocol.ACK, protocol.RESULT, protocol.ALIVE}
  assert len(answers) == 3 and all(len(byte) == 1 for byte in answers)


@pytest.mark.parametrize(
  "message",
  [
    None,
    ("reset", (0, [1, 2])),
    protocol.Answer({3: {"step": 2}}),
    protocol.Answer(warnings=("one", "two")),
    {"text": "naïve", "tuple": (1.5,)},
  ],
)
def test_received_message_equals_the_sent_one(ends, message):
  ends[0].sendall(protocol.encode(protocol.RESULT, message))
  assert ends[1].recv(1) == protocol.RESULT
  assert protocol.receive(ends[1].recv) == message


def test_messages_arrive_in_order(ends):
  for number in range(5):
    _send(ends[0], number)
  assert [protocol.receive(ends[1].recv) for _ in range(5)] == [0, 1, 2, 3, 4]


def test_pickled_messages_are_not_pickled_again(ends):
  _send(ends[0], pickle.dumps("text"))
  assert protocol.receive(ends[1].recv) == "text"


def test_local_functions_can_be_sent(ends):
  number = 3
  _send(ends[0], lambda: number)
  assert protocol.receive(ends[1].recv)() == 3


def test_messages_may_be_larger_than_the_buffers(ends):
  array = np.arange(1_000_000)
  thread = threading.Thread(target=_send, args=(ends[0], array))
  thread.start()
  received = protocol.receive(ends[1].recv)
  thread.join()
  np.testing.assert_array_equal(received, array)


@pytest.mark.parametrize("num_bytes", [0, 3, 8, 20])
def test_incomplete_message_is_an_error(ends, num_bytes):
  data = protocol.encode(protocol.REQUEST, "a text of some length")[1:]
  assert num_bytes < len(data)
  ends[0].sendall(data[:num_bytes])
  ends[0].close()
  with pytest.raises(EOFError):
    protocol.receive(ends[1].recv)


def test_picklable_keeps_values_that_can_be_pickled():
  value = {"text": "a", 3: [1.5, None], "array": np.arange(3), "nested": {}}
  copy = protocol.picklable(value)
  np.testing.assert_equal(copy, value)
  assert copy["array"] is value["array"]


def test_picklable_replaces_other_values_with_their_repr():
  lock = threading.Lock()
  generator = (number for number in ())
  value = {"good": 1, "bad": lock, "nested": {"good": 2, "bad": generator}}
  copy = protocol.picklable(value)
  assert copy["good"] == 1 and copy["nested"]["good"] == 2
  assert copy["bad"] == repr(lock)
  assert "generator" in copy["nested"]["bad"]
  cloudpickle.dumps(copy)


def test_picklable_replaces_values_that_cannot_be_unpickled():
  error = faulty_envs.FailsToUnpickleError(1, 2)
  assert cloudpickle.dumps(error)
  assert protocol.picklable(error) == repr(error)
