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


def test_memory_is_the_proportional_size_without_mapped_files():
  assert machine.proportional_bytes(ROLLUP) == 1024 * (152 + 50)


def test_missing_file_size_counts_as_zero():
  assert machine.proportional_bytes("Pss:     632 kB\n") == 1024 * 632


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_of_several_processes_is_the_sum():
  one = machine.memory([os.getpid()])
  assert one is not None and one > 2**20
  assert machine.memory([os.getpid()] * 2) == pytest.approx(2 * one, rel=0.1)


def test_memory_of_an_ended_process_is_none():
  assert machine.memory([2**22 + 1]) is None


def test_memory_can_be_released_twice():
  machine.release_memory()
  machine.release_memory()


def test_missing_package_is_named_with_the_install_command():
  machine.require("json", "os")
  with pytest.raises(
    SystemExit, match=(r"needs no_such_module: pip install -e '\.\[benchmarks\]'")
  ):
    machine.require("json", "no_such_module")


def test_output_of_a_child_process_is_returned():
  assert (
    machine.python("-c", "import os; print(os.environ['NAME'])", variables={"NAME": "value"})
    == "value\n"
  )


def test_failed_process_reports_exit_code_and_error():
  with pytest.raises(machine.ProcessFailed, match=r"(?s)code 3.*\nthe reason"):
    machine.python("-c", "import sys; print('the reason', file=sys.stderr);sys.exit(3)")


@pytest.mark.parametrize("load, warns", [(0.2, False), (1.5, True)])
def test_busy_machine_prints_a_warning(load, warns, monkeypatch, capsys):
  monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
  machine.warn_if_busy()
  assert ("busy (load 1.5)" in capsys.readouterr().out) == warns
