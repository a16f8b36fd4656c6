"""Worker pools that tests share, and a time limit for each test."""

import signal

import pytest

from agents.environments.workers import pool as pool_lib


@pytest.fixture(autouse=True)
def deadline():
  """Fails a test that hangs.

  Returns:
    A function that sets another limit, in seconds.
  """
  def expire(*_):
    raise TimeoutError("The test exceeded its time limit.")
  handler = signal.signal(signal.SIGALRM, expire)
  signal.alarm(60)
  yield signal.alarm
  signal.alarm(0)
  signal.signal(signal.SIGALRM, handler)


# One pool per module: a test that damages its pool fails only its own module.
@pytest.fixture(scope="module")
def pool():
  """Two workers for tests that leave them usable."""
  with pool_lib.WorkerPool(2) as workers:
    yield workers


@pytest.fixture(scope="module")
def pools(pool):
  """Pools of one, two and three workers."""
  with pool_lib.WorkerPool(1) as one, pool_lib.WorkerPool(3) as three:
    yield [one, pool, three]


@pytest.fixture(params=["serial", "processes"])
def mode(request, pool):
  """None or a pool, for properties that hold with and without workers."""
  return pool if request.param == "processes" else None
