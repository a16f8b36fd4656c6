"""Quiets TensorFlow, and makes every test leave nothing running."""

import os

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


def _children() -> set[int]:
  with open(f"/proc/{os.getpid()}/task/{os.getpid()}/children") as file:
    return {int(pid) for pid in file.read().split()}


@pytest.fixture(autouse=True)
def nothing_left_running():
  """Fail a test whose child processes outlive it."""
  if not os.path.exists("/proc"):
    yield
    return
  before = _children()
  yield
  left = _children() - before
  assert not left, f"Processes {left} outlive the test."
