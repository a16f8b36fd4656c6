import os
import subprocess
import sys

import pytest

from agents.environments.data import tensorflow_log
from tests.environments import scripts
from tests.support import command


def test_only_native_log_messages_are_removed(capfd):
  with tensorflow_log.hidden():
    os.write(2, b"I0000 00:00:1.2 5 port.cc:153] oneDNN is on.\n")
    os.write(2, b"WARNING: All log messages before absl::InitializeLog() is\n")
    os.write(2, b"E0000 00:00:1.2 5 cuda_platform.cc:52] no GPU\n")
    os.write(2, b"2026-01-01 12:00:00.5: I tensorflow/core/cpu.cc:2] fast\n")
    os.write(2, b"Traceback (most recent call last):\n")
  os.write(2, b"I0000 later\n")
  assert capfd.readouterr().err == ("Traceback (most recent call last):\nI0000 later\n")


def test_stderr_is_restored_after_an_error(capfd):
  try:
    with tensorflow_log.hidden():
      os.write(2, b"native crash report\n")
      raise ImportError
  except ImportError:
    pass
  os.write(2, b"afterwards\n")
  assert capfd.readouterr().err == "native crash report\nafterwards\n"


@pytest.mark.parametrize("value", [None, "0"])
def test_import_sets_the_log_level_unless_the_user_has_set_it(value):
  variables = {key: value for key, value in os.environ.items() if key != "TF_CPP_MIN_LOG_LEVEL"}
  variables |= {"TF_CPP_MIN_LOG_LEVEL": value} if value else {}
  done = subprocess.run(
    [
      sys.executable,
      "-c",
      "import os\n"
      "from agents.environments.data import tensorflow_log\n"
      "print(os.environ['TF_CPP_MIN_LOG_LEVEL'])",
    ],
    cwd=command.ROOT,
    env=variables,
    capture_output=True,
    text=True,
    check=True,
  )
  assert done.stdout.strip() == (value or "3")


_TENSORFLOW = """
import os, types
def list_physical_devices():
  os.write(2, b"E0000 00:00:1.2 5 cuda_platform.cc:52] no GPU\\n")
config = types.SimpleNamespace(list_physical_devices=list_physical_devices)
os.write(2, b"I0000 00:00:1.2 5 port.cc:153] oneDNN is on.\\n")
os.write(2, b"A real error.\\n")
"""


def test_messages_of_an_import_by_an_environment_are_hidden(tmp_path):
  (tmp_path / "tensorflow.py").write_text(_TENSORFLOW)
  stdout, stderr = scripts.run(
    """
from agents.environments.data import tensorflow_log
tensorflow_log.hide_at_import()
tensorflow_log.hide_at_import()
import tensorflow
print(tensorflow.config)
""",
    tmp_path,
  )
  assert stdout.startswith("namespace(list_physical_devices")
  assert stderr == "A real error.\n"
