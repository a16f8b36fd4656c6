"""Processes that outlive a test are found, wherever they are in the tree."""

import os
import subprocess
import sys
import time

import pytest

from tests.support import leftovers

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Reads /proc.")


def _names(left):
  return sorted(command for command in left.values() if command.startswith("sleep"))


def test_orphans_and_grandchildren_of_a_test_are_found_and_killed():
  before = leftovers.running()
  assert os.getpid() not in before
  subprocess.run(["sh", "-c", "sleep 1001 &"], check=True)
  process = subprocess.Popen(["sh", "-c", "sleep 1002; sleep 1003"])
  while len(_names(leftovers.running(before))) < 2:
    time.sleep(0.01)
  known = leftovers.running()
  assert not leftovers.running(known)
  assert _names(leftovers.wait(before, 0.0)) == ["sleep 1001", "sleep 1002"]
  assert not leftovers.wait(before, 10.0)
  process.wait()
