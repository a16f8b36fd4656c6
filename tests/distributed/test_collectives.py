"""Processes that stand for machines tell each other structures of tensors."""

import contextlib
import socket
import subprocess
import sys

import pytest

_MACHINE = """
import sys
import numpy as np
import tensorflow as tf
from agents import build
from agents.distributed import cluster as cluster_lib

def structure(machine, rows):
  # Values tell where they come from.
  start = tf.constant(1000 * machine)
  return {
      "float": tf.cast(start + tf.range(rows * 3), tf.float32)[:, None] *
               tf.constant([[1.0, 0.5]]),
      "bool": (start + tf.range(rows)) % 3 == 0,
      "byte": tf.cast(tf.range(rows) % 200, tf.uint8)[:, None, None],
      "long": tf.cast(start, tf.int64) * 10 ** 9 + tf.range(2, dtype=tf.int64),
      "none": tf.zeros([rows, 0])}

addresses, task = sys.argv[1].split(","), int(sys.argv[2])
machines = build.machines(cluster_lib.Cluster(tuple(addresses), task))

@tf.function(autograph=False, reduce_retracing=True)
def tell(rows):
  told, seconds = machines.tell(structure(task, rows))
  return told, seconds

for number, rows in enumerate((1, 5, 40_000, 0, 7)):
  # Of different lengths, and at times more than there is room for.
  told, seconds = tell(tf.constant(rows * (task + 1)))
  assert len(told) == len(addresses)
  assert seconds > 0
  for machine, each in enumerate(told):
    expected = structure(machine, rows * (machine + 1))
    for name, tensor in expected.items():
      assert each[name].dtype == tensor.dtype
      np.testing.assert_array_equal(each[name], tensor, name)
  message = {"machine": task, "long": "x" * rows * task}
  assert machines.hear(message) == [
      {"machine": machine, "long": "x" * rows * machine}
      for machine in range(len(addresses))]
total = machines.total(tf.constant([1.0, task + 1.0]))
np.testing.assert_array_equal(
    total, [len(addresses), sum(range(len(addresses) + 1))])
"""


@pytest.mark.slow
def test_all_hear_what_each_tells():
  with contextlib.ExitStack() as stack:
    free = [stack.enter_context(socket.socket()) for _ in range(3)]
    for each in free:
      each.bind(("127.0.0.1", 0))
    addresses = ",".join(
        f"127.0.0.1:{each.getsockname()[1]}" for each in free)
  processes = [subprocess.Popen(
      [sys.executable, "-c", _MACHINE, addresses, str(task)], text=True,
      stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for task in range(3)]
  outputs = [process.communicate(timeout=120)[0] for process in processes]
  assert [process.returncode for process in processes] == [0, 0, 0], outputs
