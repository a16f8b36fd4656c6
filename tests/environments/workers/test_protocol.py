"""Messages arrive whole, or their absence is noticed."""

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
  one, other = socket.socketpair()
  with one, other:
    yield one, other


def test_every_byte_that_wakes_a_worker_means_one_thing():
  bytes_ = [bytes([number]) for number in range(protocol.BLOCKS)] + [
      protocol.REQUEST, protocol.DESCRIPTOR]
  assert len(set(bytes_)) == len(bytes_) == 256
  assert all(len(byte) == 1 for byte in bytes_)
  assert protocol.ACK != protocol.RESULT


@pytest.mark.parametrize("message", [
    None, ("reset", (0, [1, 2])), protocol.Answer({3: {"step": 2}}),
    protocol.Answer(warnings=("one", "two")), {"text": "naïve", "tuple": (1.5,)}
])
def test_what_is_sent_is_received(ends, message):
  protocol.send(ends[0], protocol.RESULT, message)
  assert ends[1].recv(1) == protocol.RESULT
  assert protocol.receive(ends[1]) == message


def test_order_is_kept(ends):
  for number in range(5):
    protocol.send(ends[0], b"", number)
  assert [protocol.receive(ends[1]) for _ in range(5)] == [0, 1, 2, 3, 4]


def test_pickled_messages_are_not_pickled_again(ends):
  protocol.send(ends[0], b"", pickle.dumps("text"))
  assert protocol.receive(ends[1]) == "text"


def test_functions_travel(ends):
  number = 3
  protocol.send(ends[0], b"", lambda: number)
  assert protocol.receive(ends[1])() == 3


def test_messages_larger_than_any_buffer(ends):
  array = np.arange(1_000_000)
  thread = threading.Thread(target=protocol.send, args=(ends[0], b"", array))
  thread.start()
  received = protocol.receive(ends[1])
  thread.join()
  np.testing.assert_array_equal(received, array)


@pytest.mark.parametrize("num_bytes", [0, 3, 8, 20])
def test_end_of_the_other_side(ends, num_bytes):
  data = pickle.dumps("a text of some length")
  whole = len(data).to_bytes(8, "big") + data
  assert num_bytes < len(whole)
  ends[0].sendall(whole[:num_bytes])
  ends[0].close()
  with pytest.raises(EOFError):
    protocol.receive(ends[1])


def test_portable_leaves_what_can_travel():
  value = {"text": "a", 3: [1.5, None], "array": np.arange(3), "nested": {}}
  copy = protocol.portable(value)
  np.testing.assert_equal(copy, value)
  assert copy["array"] is value["array"]


def test_portable_describes_what_cannot():
  lock = threading.Lock()
  generator = (number for number in ())
  value = {"good": 1, "bad": lock, "nested": {"good": 2, "bad": generator}}
  copy = protocol.portable(value)
  assert copy["good"] == 1 and copy["nested"]["good"] == 2
  assert copy["bad"] == repr(lock)
  assert "generator" in copy["nested"]["bad"]
  cloudpickle.dumps(copy)


def test_portable_describes_what_can_only_be_pickled():
  # To be built again it would need two arguments.
  error = faulty_envs.Unbuildable(1, 2)
  assert cloudpickle.dumps(error)
  assert protocol.portable(error) == repr(error)
