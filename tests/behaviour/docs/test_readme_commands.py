"""Every command in README.md works.

The test does not run two of the commands: `.ci/run` runs the command that
starts the tests, and the benchmark installs gigabytes of other libraries. Some
commands run with fewer steps or smaller videos.
"""

import pathlib
import re
import signal
import subprocess
import time
import urllib.request

import pytest

from tests.behaviour.docs import shell_commands
from tests.support import command
from tests.videos import gl_support

pytestmark = pytest.mark.slow

_BENCHMARK = "python -m benchmarks.throughput"
# Replacements in commands that save time: less training, shorter episodes, and
# smaller videos.
_SHORTER = {
  "--config cheetah --logdir": "--config cheetah --steps 2e5 --set env.max_length=200 "
  "--set eval_every=50000 --set checkpoint_every=100000 --logdir",
  "--steps 1.2e6": "--steps 2.1e5",
  "--steps 1e5 ": "--steps 1e4 ",
  "--steps 6e4": "--steps 1e4",
  "--num_episodes 1": "--num_episodes 1 --size 96",
  "--episode -1": "--episode -1 --size 96",
  "--size 160": "--size 64",
}


def _shorten(line: str) -> str:
  for old, new in _SHORTER.items():
    line = line.replace(old, new)
  return line


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


def test_commands_of_the_readme(tmp_path):
  if not gl_support.egl_works():
    pytest.skip("Videos need EGL.")
  home, checkout = tmp_path / "home", tmp_path / "checkout"
  home.mkdir()
  subprocess.run(["git", "clone", "-q", command.ROOT, checkout], check=True)
  folder, num_commands = shell_commands.PYTHON_FOLDER, 0
  lines = shell_commands.commands("README.md")
  assert all(any(old in line for line in lines) for old in _SHORTER)
  for line in map(_shorten, lines):
    if "pytest" in line or _BENCHMARK in line:
      continue
    if line.startswith("tensorboard"):
      _check_tensorboard(line, home, checkout, folder)
    else:
      output = shell_commands.run(line, home, checkout, folder)
      if "venv" in line:
        folder = checkout / ".venv" / "bin"
        assert "Finished 200,704 steps" in output
    num_commands += 1
  assert num_commands >= 9
  (run,) = (home / "logdir").glob("*-cheetah")
  names = {path.name for path in (run / "videos").glob("*.mp4")}
  assert {"step-200704-episode-0.mp4", "timeline-episode-0.mp4"} < names
  returns = {row["step"]: row["return_mean"] for row in command.rows(run) if row["phase"] == "eval"}
  assert returns[200_704] >= 100
  assert max(returns) >= 210_000
  assert not subprocess.run(
    ["git", "status", "--short"], cwd=checkout, capture_output=True, text=True, check=True
  ).stdout
