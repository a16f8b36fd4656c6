import os
import sys

import pytest

from benchmarks.common import machine

ROLLUP = """\
557c04879000-7ffe6ae3c000 ---p 00000000 00:00 0                      [rollup]
Rss:                1752 kB
Pss:                 632 kB
Pss_Dirty:           152 kB
Pss_Anon:            152 kB
Pss_File:            430 kB
Pss_Shmem:            50 kB
"""


def test_memory_is_the_proportional_size_without_files():
  assert machine.proportional_bytes(ROLLUP) == 1024 * (152 + 50)


def test_memory_without_a_share_of_files_is_all_of_it():
  assert machine.proportional_bytes("Pss:     632 kB\n") == 1024 * 632


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_of_processes_adds_up():
  one = machine.memory([os.getpid()])
  assert one is not None and one > 2**20
  assert machine.memory([os.getpid()] * 2) == pytest.approx(2 * one, rel=0.1)


def test_memory_of_what_is_gone_is_unknown():
  assert machine.memory([2**22 + 1]) is None


def test_releasing_memory_can_be_repeated():
  machine.release()
  machine.release()


def test_what_is_missing_is_said_with_the_command_that_installs_it():
  machine.require("json", "os")
  with pytest.raises(SystemExit, match=(
      r"needs no_such_module: pip install -e '\.\[benchmarks\]'")):
    machine.require("json", "no_such_module")


def test_a_process_returns_what_it_prints():
  assert machine.python(
      "-c", "import os; print(os.environ['NAME'])",
      variables={"NAME": "value"}) == "value\n"


def test_a_failed_process_says_why():
  with pytest.raises(machine.Failed, match=r"(?s)code 3.*\nthe reason"):
    machine.python("-c", "import sys; print('the reason', file=sys.stderr);"
                   "sys.exit(3)")


@pytest.mark.parametrize("load, warns", [(0.2, False), (1.5, True)])
def test_a_busy_machine_is_told(load, warns, monkeypatch, capsys):
  monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
  machine.warn_if_busy()
  assert ("busy (load 1.5)" in capsys.readouterr().out) == warns
