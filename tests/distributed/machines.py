"""Simulates the machines of a cluster with threads of one process."""

import threading
from collections.abc import Callable
from concurrent import futures
from typing import Any

import tensorflow as tf

from agents import config as config_lib
from agents import errors
from agents.distributed import build_distributed, collectives

CONFIG = config_lib.Config().override(
  {
    "env.id": "tests.toy:Target",
    "env_processes": False,
    "num_envs": 4,
    "eval_episodes": 3,
    "steps": 96,
    "algorithm.segment_length": 8,
    "algorithm.minibatch_size": 16,
    "algorithm.update_epochs": 1,
    "algorithm.learning_rate": 1e-2,
    "network.policy_layers": [4],
    "network.value_layers": [4],
  }
)
# Episodes of unequal length. In each epoch, environment 0 plays 2 episodes, and
# environment 1 plays 1 episode.
EPISODES = CONFIG.override(
  {
    "env.id": "tests.toy:Uneven",
    "env.kwargs.max_length": 6,
    "env.max_length": 7,
    "num_envs": 2,
    "algorithm.segment_length": None,
    "algorithm.update_every": 3,
    "algorithm.minibatch_size": None,
  }
)


class _Group:
  """Exchanges the values of all machines in each operation."""

  def __init__(self, size: int):
    self.size = size
    self.barrier = threading.Barrier(size, timeout=60)
    self._values: list[Any] = [None] * size

  def exchange(self, rank: int, value: Any) -> list[Any]:
    """Returns the value of each machine."""
    self._values[rank] = value
    try:
      self.barrier.wait()
      values = list(self._values)
      self.barrier.wait()
    except threading.BrokenBarrierError:
      raise errors.MachineLost("Another thread has failed.") from None
    return values


class ThreadCommunicator(collectives.Communicator):
  """Collective operations between threads, without graphs."""

  def __init__(self, rank: int, group: _Group):
    super().__init__(rank, group.size)
    self.group = group

  def all_gather(self, structure: Any) -> tuple[list[Any], tf.Tensor]:
    """See `Communicator.all_gather`."""
    gathered = self.group.exchange(self.rank, structure)
    return gathered, tf.constant(0.0, tf.float64)

  def all_gather_bytes(self, value: bytes) -> list[bytes]:
    """See `Communicator.all_gather_bytes`."""
    return self.group.exchange(self.rank, value)

  def all_reduce(self, tensor: tf.Tensor) -> tf.Tensor:
    """See `Communicator.all_reduce`."""
    return tf.add_n(self.group.exchange(self.rank, tensor))


def communicators(world_size: int) -> list[ThreadCommunicator]:
  """Returns the communicator of each machine."""
  group = _Group(world_size)
  return [ThreadCommunicator(rank, group) for rank in range(world_size)]


def trainers(config: config_lib.Config, world_size: int) -> list[Any]:
  """Returns the trainer of each machine."""
  return [
    build_distributed.trainer(config, None, communicator)
    for communicator in communicators(world_size)
  ]


def run(functions: list[Callable[[], Any]], group: _Group | None = None) -> list[Any]:
  """Calls one function per machine in threads, and returns their results.

  Args:
    functions: One function per machine.
    group: Group of the machines. After an error in one thread, the operations
      of all other threads raise MachineLost.
  """

  def call(function):
    try:
      return function()
    except BaseException:
      if group:
        group.barrier.abort()
      raise

  with futures.ThreadPoolExecutor(len(functions)) as executor:
    running = [executor.submit(call, function) for function in functions]
  failures = [each.exception() for each in running if each.exception()]
  # Raises other errors first, because they cause MachineLost in other threads.
  failures.sort(key=lambda error: isinstance(error, errors.MachineLost))
  if failures:
    raise failures[0]
  return [each.result() for each in running]
