"""Processes that tests share, and an end to tests that wait forever."""

import signal

import pytest

from agents.environments.workers import pool as pool_lib


@pytest.fixture(autouse=True)
def deadline():
  """Fail a test that hangs, instead of hanging with it.

  Returns:
    A function that sets the seconds left, for tests that know better.
  """
  def expire(*_):
    raise TimeoutError("The test waits for something that never comes.")
  handler = signal.signal(signal.SIGALRM, expire)
  signal.alarm(60)
  yield signal.alarm
  signal.alarm(0)
  signal.signal(signal.SIGALRM, handler)


# Not of the package: all of its tests open more batches than they can tell
# apart.
@pytest.fixture(scope="module")
def pool():
  """Two workers for tests that leave them as they were."""
  with pool_lib.WorkerPool(2) as workers:
    yield workers


@pytest.fixture(scope="module")
def pools(pool):
  """One, two and three workers."""
  with pool_lib.WorkerPool(1) as one, pool_lib.WorkerPool(3) as three:
    yield [one, pool, three]


@pytest.fixture(params=["serial", "processes"])
def mode(request, pool):
  """Workers for the batch of a test that holds with and without them."""
  return pool if request.param == "processes" else None
