import pytest

from benchmarks.common import machine, measuring_process

_SCRIPT = """
from benchmarks.common import measuring_process
numbers = iter(range(10))
def measure():
  print("other output")
  return {"number": next(numbers)}
measuring_process.serve(measure)
"""


def test_other_output_does_not_disturb_the_answers():
  process = measuring_process.MeasuringProcess("-c", _SCRIPT)
  for number in range(3):
    process.request()
    assert process.receive() == {"number": number}
  process.close()


def test_failed_process_reports_its_error():
  process = measuring_process.MeasuringProcess("-c", "raise ValueError('why')")
  process.request()
  with pytest.raises(machine.ProcessFailed, match="(?s)ended.*why"):
    process.receive()
  process.close()


def test_modules_are_imported_from_the_folder(tmp_path):
  (tmp_path / "local_module.py").write_text("print('[3]')")
  process = measuring_process.MeasuringProcess("-c", "import local_module", folder=tmp_path)
  assert process.receive() == [3]
  process.close()
