"""Output that can't be written is discarded."""

import io
import subprocess
import sys

import pytest

from agents.environments.data import lost_output
from tests.support import command

_CODE = """
import os, sys
from agents.environments.data import lost_output
with lost_output.discarded():
  for _ in range(3):
    print(10_000 * ".", flush=True)
    print("error", file=sys.stderr, flush=True)
  os.write(1, b"native code")
  print("The last line is flushed at the end.")
sys.exit(7)
"""


def test_process_without_readers_ends_with_its_own_exit_code():
  process = subprocess.Popen(
    [sys.executable, "-c", _CODE], cwd=command.ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
  )
  process.stdout.close()
  process.stderr.close()
  assert process.wait(20) == 7


@pytest.mark.skipif(sys.platform != "linux", reason="Needs /dev/full.")
def test_output_to_a_full_disk_is_discarded():
  with open("/dev/full", "wb") as full:
    done = subprocess.run(
      [sys.executable, "-c", _CODE], cwd=command.ROOT, stdout=full, stderr=full, timeout=20
    )
  assert done.returncode == 7


def test_text_reaches_the_original_streams(capsys):
  before = sys.stdout
  with lost_output.discarded():
    print("text")
    print("error", file=sys.stderr)
    assert sys.stdout.encoding == before.encoding
    with pytest.raises(io.UnsupportedOperation):
      sys.stdout.fileno()
  assert sys.stdout is before
  captured = capsys.readouterr()
  assert (captured.out, captured.err) == ("text\n", "error\n")
