import os

from agents.training.monitoring import quiet_imports


def test_only_native_log_messages_are_removed(capfd):
  with quiet_imports.quiet_imports():
    os.write(2, b"I0000 00:00:1.2 5 port.cc:153] oneDNN is on.\n")
    os.write(2, b"WARNING: All log messages before absl::InitializeLog() is\n")
    os.write(2, b"E0000 00:00:1.2 5 cuda_platform.cc:52] no GPU\n")
    os.write(2, b"Traceback (most recent call last):\n")
  os.write(2, b"I0000 later\n")
  assert capfd.readouterr().err == (
      "Traceback (most recent call last):\nI0000 later\n")


def test_stderr_is_restored_after_an_error(capfd):
  try:
    with quiet_imports.quiet_imports():
      os.write(2, b"native crash report\n")
      raise ImportError
  except ImportError:
    pass
  os.write(2, b"afterwards\n")
  assert capfd.readouterr().err == "native crash report\nafterwards\n"
