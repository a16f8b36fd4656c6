"""Every command in README.md and docs/tutorial.md works.

Two commands are not run here: `.ci/run` runs the tests' own command, and the
benchmark installs gigabytes of other libraries. Some commands run with fewer
steps or smaller videos.
"""

import functools
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import urllib.request

import pytest

from tests import command
from tests.videos import gl_support

pytestmark = pytest.mark.slow

_BENCHMARK = "python -m benchmarks.throughput"
# Replacements that save time: less training, and small videos.
_SHORTER = {
    "--config cheetah --logdir": "--config cheetah --steps 4e5 --logdir",
    "--steps 1.2e6": "--steps 4.2e5", "--steps 1e5 ": "--steps 1e4 ",
    "--steps 2e4": "--steps 1e4", "--num_episodes 1": "--num_episodes 1 "
    "--size 96", "--episode -1": "--episode -1 --size 96",
    "--size 160": "--size 64"}


def _commands(path: str) -> list[str]:
  text = (command.ROOT / path).read_text()
  # Commands are in blocks of this kind, and only commands.
  blocks = re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
  languages = set(re.findall(
      r"^```(\w*)\n.*?^```$", text, re.MULTILINE | re.DOTALL))
  assert languages <= {"sh", "python", "text"}
  return "".join(blocks).splitlines()


# Folder of this Python.
_HERE = pathlib.Path(sys.executable).parent


def _variables(home: pathlib.Path, folder: pathlib.Path) -> dict[str, str]:
  """Returns the variables of a shell with an active environment."""
  cache = os.environ.get(
      "PIP_CACHE_DIR", str(pathlib.Path.home() / ".cache" / "pip"))
  return {**os.environ, "HOME": str(home), "PIP_CACHE_DIR": cache,
          "PATH": f"{folder}:{os.environ['PATH']}"}


def _shorten(line: str) -> str:
  for long, short in _SHORTER.items():
    line = line.replace(long, short)
  return line


@functools.cache
def _options(program: str) -> str:
  return _paste(f"python -m {program} --help", command.ROOT, command.ROOT)


def _paste(line: str, home: pathlib.Path, cwd: pathlib.Path,
           folder: pathlib.Path = _HERE) -> str:
  """Runs a line in bash, with the programs of a folder."""
  done = subprocess.run(
      ["bash", "-c", line], cwd=cwd, env=_variables(home, folder),
      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=1200)
  assert done.returncode == 0, f"{line}\n{done.stdout}"
  return done.stdout


def _check_tensorboard(line: str, home: pathlib.Path, cwd: pathlib.Path,
                       folder: pathlib.Path):
  """Starts TensorBoard, requests its runs, and ends it."""
  process = subprocess.Popen(
      ["bash", "-c", f"exec {line} --port 0"], cwd=cwd,
      env=_variables(home, folder), stdout=subprocess.PIPE,
      stderr=subprocess.STDOUT, text=True)
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
      if ("train" in runs and "eval" in runs and "Is it learning?" in layout
          and "about/config" in texts):
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
  folder, done = _HERE, []
  lines = _commands("README.md")
  assert all(any(long in line for line in lines) for long in _SHORTER)
  for line in map(_shorten, lines):
    if "pytest" in line or _BENCHMARK in line:
      continue
    if line.startswith("tensorboard"):
      _check_tensorboard(line, home, checkout, folder)
    else:
      output = _paste(line, home, checkout, folder)
      if "venv" in line:
        folder = checkout / ".venv" / "bin"
        assert "Finished 401,408 steps" in output
    done.append(line)
  assert len(done) >= 9
  run, = (home / "logdir").glob("*-cheetah")
  names = {path.name for path in (run / "videos").glob("*.mp4")}
  assert {"step-401408-episode-0.mp4", "timeline-episode-0.mp4"} < names
  returns = {row["step"]: row["return_mean"] for row in command.rows(run)
             if row["phase"] == "eval"}
  assert returns[401_408] >= 3500
  assert max(returns) >= 420_000
  assert not subprocess.run(
      ["git", "status", "--short"], cwd=checkout, capture_output=True,
      text=True, check=True).stdout


def test_commands_of_the_tutorial(tmp_path):
  text = (command.ROOT / "docs" / "tutorial.md").read_text()
  for name, code in re.findall(
      r"^`(\w+\.py)`:\n\n```python\n(.*?)^```$", text,
      re.MULTILINE | re.DOTALL):
    (tmp_path / name).write_text(code)
  outputs = [_paste(line, tmp_path, tmp_path)
             for line in _commands("docs/tutorial.md")]
  assert "Ready for training." in outputs[0]
  assert "Finished 100,352 steps" in outputs[1]
  learned = float(re.search(r"Return (\S+) at the end", outputs[1])[1])
  assert learned > 170
  videos = re.findall(r"^(\S+\.mp4): ", outputs[2] + outputs[3], re.MULTILINE)
  assert len(videos) == 1 + 9 and all(map(os.path.exists, videos))
  assert "Finished 150,016 steps" in outputs[4]


def test_environment_of_the_tutorial_has_at_most_32_lines():
  text = (command.ROOT / "docs" / "tutorial.md").read_text()
  code = re.search(r"`balloon.py`:\n\n```python\n(.*?)^```$", text,
                   re.MULTILINE | re.DOTALL)[1]
  assert len([line for line in code.splitlines() if line.strip()]) <= 32


@pytest.mark.parametrize("path", ["README.md", "docs/tutorial.md"])
def test_options_in_the_text_exist(path):
  programs = [f"agents {name}" for name in (
      "train", "visualize", "report", "export", "sweep", "check")]
  programs += [f"benchmarks.{name}" for name in (
      "learning", "scaling", "threshold", "throughput")]
  known = "".join(map(_options, programs))
  known += "--port"  # TensorBoard's.
  options = re.compile(r"(?<![\w-])--[a-z_]+(?:-[a-z_]+)*")
  text = re.sub("<!--.*?-->", "", (command.ROOT / path).read_text())
  assert set(options.findall(text)) <= set(options.findall(known))
