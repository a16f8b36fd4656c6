"""A virtual display for windows, with a keyboard."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator

import pytest


@contextlib.contextmanager
def opened() -> Iterator[dict[str, str]]:
  """Starts Xvfb, and yields an environment of processes whose windows it shows.

  Skips the test if Xvfb or xdotool is not installed.
  """
  if not (shutil.which("Xvfb") and shutil.which("xdotool")):
    pytest.skip("Xvfb or xdotool is not installed.")
  read, write = os.pipe()
  # Xvfb chooses a free display and writes its number.
  command = ["Xvfb", "-displayfd", str(write), "-screen", "0", "640x480x24", "-nolisten", "tcp"]
  server = subprocess.Popen(command, pass_fds=[write], stderr=subprocess.DEVNULL)
  os.close(write)
  try:
    with open(read) as numbers:
      number = numbers.readline().strip()
    assert number, "Xvfb did not start."
    yield {**os.environ, "DISPLAY": f":{number}"}
  finally:
    server.terminate()
    server.wait()


def press(environment: dict[str, str], *keys: str) -> None:
  """Sends keys to the only window.

  Args:
    environment: Environment of `opened`.
    keys: Names of keys in X11, such as "Up" or "ctrl+q".
  """
  find = ["xdotool", "search", "--sync", "--onlyvisible", "--name", "MuJoCo"]
  subprocess.run([*find, "windowfocus"], env=environment, check=True, timeout=60)
  # Sent to the focused window, as by a keyboard.
  subprocess.run(["xdotool", "key", "--delay", "200", *keys], env=environment, check=True)
