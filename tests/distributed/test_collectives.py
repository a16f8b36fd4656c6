"""Processes on one host gather and reduce tensors and objects."""

import subprocess
import sys

import pytest
import tensorflow as tf

from agents import errors
from agents.distributed import collectives
from tests.support import ports

_MACHINE = """
import sys
import numpy as np
import tensorflow as tf
from agents.distributed import build_distributed
from agents.distributed import cluster as cluster_lib

def structure(rank, rows):
  start = tf.constant(1000 * rank)
  return {
      "float": tf.cast(start + tf.range(rows * 3), tf.float32)[:, None] *
               tf.constant([[1.0, 0.5]]),
      "bool": (start + tf.range(rows)) % 3 == 0,
      "byte": tf.cast(tf.range(rows) % 200, tf.uint8)[:, None, None],
      "long": tf.cast(start, tf.int64) * 10 ** 9 + tf.range(2, dtype=tf.int64),
      "none": tf.zeros([rows, 0])}

addresses, rank = sys.argv[1].split(","), int(sys.argv[2])
world_size = len(addresses)
communicator = build_distributed.connect(
    cluster_lib.Cluster(tuple(addresses), rank, b"secret"))

@tf.function(autograph=False, reduce_retracing=True)
def gather(rows):
  return communicator.all_gather(structure(rank, rows))

for rows in (1, 5, 40_000, 0, 7):
  # Each machine sends a different number of rows. 40,000 rows require a second
  # operation.
  gathered, seconds = gather(tf.constant(rows * (rank + 1)))
  assert len(gathered) == world_size
  assert seconds > 0
  for sender, received in enumerate(gathered):
    expected = structure(sender, rows * (sender + 1))
    for name, tensor in expected.items():
      assert received[name].dtype == tensor.dtype
      np.testing.assert_array_equal(received[name], tensor, name)
  value = {"rank": rank, "long": "x" * rows * rank}
  assert communicator.all_gather_object(value) == [
      {"rank": sender, "long": "x" * rows * sender}
      for sender in range(world_size)]
total = communicator.all_reduce(tf.constant([1.0, rank + 1.0]))
np.testing.assert_array_equal(
    total, [world_size, sum(range(world_size + 1))])
"""


@pytest.mark.parametrize(
  "num_rows, world_size, sizes",
  [(4, 2, [2, 2]), (4, 1, [4]), (3, 4, [0, 1, 1, 1]), (7, 3, [2, 2, 3])],
)
def test_local_rows_partition_all_rows(num_rows, world_size, sizes):
  rows = [
    collectives.Communicator(rank, world_size).local_rows(num_rows) for rank in range(world_size)
  ]
  assert [each.stop - each.start for each in rows] == sizes
  assert [index for each in rows for index in range(num_rows)[each]] == [*range(num_rows)]


@pytest.mark.parametrize(
  "error, is_lost",
  [
    (tf.errors.UnavailableError(None, None, "Connection reset"), True),
    (tf.errors.DeadlineExceededError(None, None, "Too late"), True),
    (tf.errors.InternalError(None, None, "Collective ops is aborted"), True),
    (tf.errors.InvalidArgumentError(None, None, "Shapes differ"), False),
  ],
)
def test_only_connection_errors_become_machine_lost(error, is_lost):
  communicator = collectives.Communicator(0, 2)
  with pytest.raises(errors.MachineLost if is_lost else type(error)):
    with communicator.lost_machines():
      raise error


@pytest.mark.slow
def test_every_machine_receives_the_values_of_all_machines():
  addresses = ",".join(f"127.0.0.1:{port}" for port in ports.free(3))
  processes = [
    subprocess.Popen(
      [sys.executable, "-c", _MACHINE, addresses, str(rank)],
      text=True,
      stdout=subprocess.PIPE,
      stderr=subprocess.STDOUT,
    )
    for rank in range(3)
  ]
  outputs = [process.communicate(timeout=120)[0] for process in processes]
  assert [process.returncode for process in processes] == [0, 0, 0], outputs
