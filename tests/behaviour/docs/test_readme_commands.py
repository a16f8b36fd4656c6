"""The first commands in README.md work as for a new user.

`test_page_commands` runs the other commands, except two: `.ci/run` runs the
command that starts the tests, and the benchmark installs gigabytes of other
libraries.
"""

import pathlib
import re
import signal
import subprocess
import sysconfig
import time
import urllib.request

import pytest

from tests.behaviour.docs import shell_commands
from tests.support import command

pytestmark = pytest.mark.slow

_PACKAGES = sysconfig.get_path("purelib")
# The new environment also contains the packages of the current one, because
# `.ci/run` has installed all packages in a new environment already.
_SHORTER = {
  "python3 -m venv .venv": "python3 -m venv .venv && "
  f"echo {_PACKAGES} > $(echo .venv/lib/python*/site-packages)/packages.pth",
  "--config cheetah --logdir": "--config cheetah --steps 1e5 --set env.max_length=200 "
  "--set eval_every=50000 --set checkpoint_every=100000 --logdir",
}


def _check_tensorboard(line: str, home: pathlib.Path, cwd: pathlib.Path, folder: pathlib.Path):
  """Starts TensorBoard, checks that it serves a run, and ends TensorBoard."""
  process = subprocess.Popen(
    ["bash", "-c", f"exec {line} --port 0"],
    cwd=cwd,
    env=shell_commands.variables(home, folder),
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
  )
  try:
    assert process.stdout
    for text in process.stdout:
      if address := re.search(r"http://\S+", text):
        break
    else:
      raise AssertionError("TensorBoard has not started.")
    deadline = time.monotonic() + 60
    while True:
      pages = []
      for page in ("runs", "plugin/custom_scalars/layout", "plugin/text/tags"):
        url = f"{address[0].rstrip('/')}/data/{page}"
        with urllib.request.urlopen(url, timeout=60) as answer:
          pages.append(answer.read().decode())
      runs, layout, texts = pages
      if (
        "train" in runs
        and "eval" in runs
        and "Learning progress" in layout
        and "about/config" in texts
      ):
        return
      assert time.monotonic() < deadline, pages
      time.sleep(1)
  finally:
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)


def test_first_command_trains_in_a_new_environment_and_tensorboard_shows_the_run(tmp_path):
  home, checkout = tmp_path / "home", tmp_path / "checkout"
  home.mkdir()
  subprocess.run(["git", "clone", "-q", command.ROOT, checkout], check=True)
  install, *others = shell_commands.commands("README.md")
  for old, new in _SHORTER.items():
    assert old in install
    install = install.replace(old, new)
  output = shell_commands.run(install, home, checkout)
  assert "Finished 100,352 steps" in output
  (line,) = (line for line in others if line.startswith("tensorboard"))
  folder = checkout / ".venv" / "bin"
  assert (folder / "batched-ppo").exists()
  _check_tensorboard(line, home, checkout, shell_commands.PYTHON_FOLDER)
  (run,) = (home / "logdir").glob("*-cheetah")
  returns = {row["step"]: row["return_mean"] for row in command.rows(run) if row["phase"] == "eval"}
  assert returns[100_352] >= 50
  assert not subprocess.run(
    ["git", "status", "--short"], cwd=checkout, capture_output=True, text=True, check=True
  ).stdout
