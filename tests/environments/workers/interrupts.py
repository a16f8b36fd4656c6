"""Environments that hang, and batches that are interrupted in a step."""

import contextlib
import functools
import os
import threading

import numpy as np
import pytest

from agents.environments import batch_env
from agents.environments.workers import pool as pool_lib
from tests import toy
from tests.environments import faulty_envs

HANGING = {
  "hang": functools.partial(toy.Faulty, "hang"),
  "spin": functools.partial(toy.Faulty, "spin"),
  "native": functools.partial(faulty_envs.Stuck, "native"),
  "sigterm": functools.partial(faulty_envs.Stuck, "sigterm"),
}


def step(batch):
  """Steps all environments of a batch with zero actions."""
  return batch.step(np.zeros((len(batch), 1)))


def batch_after_one_step(constructors, workers):
  """Returns a batch that has completed one step."""
  batch = batch_env.BatchEnv(constructors, workers)
  batch.reset()
  step(batch)
  return batch


@contextlib.contextmanager
def pipe():
  """Provides the read and the write end of a pipe."""
  read, write = os.pipe()
  try:
    yield read, write
  finally:
    os.close(read)
    os.close(write)


@contextlib.contextmanager
def interrupted(constructors, num_workers=1, delay=0.2):
  """Provides workers and a batch that was interrupted in its second step.

  Args:
    constructors: Constructors of the environments.
    num_workers: Number of workers.
    delay: Seconds from the start of the second step to the interrupt.
  """
  with pipe() as (read, write), contextlib.ExitStack() as stack:
    workers = stack.enter_context(pool_lib.WorkerPool(num_workers, read))
    batch = batch_after_one_step(constructors, workers)
    timer = threading.Timer(delay, os.write, (write, b"\0"))
    timer.start()
    with pytest.raises(pool_lib.Interrupted, match="Interrupted"):
      step(batch)
    timer.join()
    os.read(read, 1)
    yield workers, batch
