"""Fixtures: shared worker pools, and a time limit for each test."""

import signal

import pytest

from agents.environments.workers import pool as pool_lib


@pytest.fixture(autouse=True)
def deadline():
  """Fails a test after 240 seconds, which is enough on a busy machine.

  Returns:
    Function that sets the remaining time, in seconds.
  """

  def expire(*_):
    raise TimeoutError("The test exceeded its time limit.")

  handler = signal.signal(signal.SIGALRM, expire)
  signal.alarm(240)
  yield signal.alarm
  signal.alarm(0)
  signal.signal(signal.SIGALRM, handler)


# One pool per module, so that a damaged pool affects only tests of one module.
@pytest.fixture(scope="module")
def pool():
  """Pool of two workers, for tests that do not damage the workers."""
  with pool_lib.WorkerPool(2) as workers:
    yield workers


@pytest.fixture(scope="module")
def pools(pool):
  """Pools of one, two and three workers."""
  with pool_lib.WorkerPool(1) as one, pool_lib.WorkerPool(3) as three:
    yield [one, pool, three]


@pytest.fixture(params=["serial", "processes"])
def mode(request, pool):
  """Runs a test without workers (None) and with a pool of two workers."""
  return pool if request.param == "processes" else None
