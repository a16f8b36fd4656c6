"""Real shells complete the commands, options and values of `batched-ppo`."""

import contextlib
import os
import pty
import select
import shutil
import subprocess
import sys
import time

import pytest

from agents.commands import completion
from tests.behaviour.docs import shell_commands
from tests.support import command

_START = {
  "bash": (["bash", "--norc", "-i"], ""),
  "zsh": (["zsh", "-f", "-i"], "autoload -U compinit; compinit -u -D; "),
}


def _environment(home):
  paths = os.environ.get("PYTHONPATH", "")
  return {
    **shell_commands.variables(home, shell_commands.PYTHON_FOLDER),
    "PYTHONPATH": f"{command.ROOT}:{paths}",
    "TERM": "dumb",
  }


def _require(shell):
  if not shutil.which(shell):
    pytest.skip(f"{shell} is not installed.")
  if not (shell_commands.PYTHON_FOLDER / "batched-ppo").exists():
    pytest.skip("The program batched-ppo is not installed.")
  pytest.importorskip("argcomplete")


@contextlib.contextmanager
def _terminal(arguments, cwd):
  """Runs a shell in a terminal; yields a function that types and reads."""
  ours, theirs = pty.openpty()
  process = subprocess.Popen(
    arguments,
    cwd=cwd,
    env=_environment(cwd),
    stdin=theirs,
    stdout=theirs,
    stderr=theirs,
    start_new_session=True,
  )
  os.close(theirs)

  def type_and_read(text, expected):
    os.write(ours, text.encode())
    output, deadline = b"", time.monotonic() + 60
    while expected.encode() not in output:
      ready, _, _ = select.select([ours], [], [], deadline - time.monotonic())
      assert ready, output
      output += os.read(ours, 4096)

  try:
    yield type_and_read
  finally:
    process.kill()
    process.wait()
    os.close(ours)


@pytest.mark.slow
@pytest.mark.parametrize("shell", _START)
def test_tab_completes_commands_options_configs_and_settings(shell, tmp_path):
  _require(shell)
  arguments, prepare = _START[shell]
  with _terminal(arguments, tmp_path) as type_and_read:
    # The echo of the line must not contain the awaited text.
    type_and_read(
      f"{prepare}source <(batched-ppo completion {shell}); echo rea''dy\n", "\nready\r\n"
    )
    for prefix, completed in (
      ("batched-ppo visu", "visualize "),
      ("--num-ep", "--num-episodes "),
      ("2 --policy sam", "sampled "),
    ):
      type_and_read(f"{prefix}\t", completed)
    type_and_read("\x15batched-ppo train --config hop\t", "hopper ")  # Ctrl-U clears the line.
    type_and_read("--set algorithm.learning_rate\t", "algorithm.learning_rate=")


@pytest.mark.slow
def test_fish_completes_and_shows_descriptions(tmp_path):
  _require("fish")
  lines = ["batched-ppo repo", "batched-ppo train --video", "batched-ppo train --preset recu"]
  script = "".join(f"; complete -C '{line}'" for line in lines)
  done = subprocess.run(
    ["fish", "--no-config", "-c", f"batched-ppo completion fish | source{script}"],
    cwd=tmp_path,
    env=_environment(tmp_path),
    capture_output=True,
    text=True,
    timeout=60,
  )
  report, video, preset = done.stdout.splitlines()
  assert report == "report\twrite an HTML page with the learning curves of runs"
  assert video.startswith("--video-every\tenvironment steps between videos")
  assert preset == "recurrent"


def test_missing_package_is_named_with_its_installation(monkeypatch, capsys):
  monkeypatch.setitem(sys.modules, "argcomplete", None)
  with pytest.raises(SystemExit) as ended:
    completion.main(["bash"])
  assert ended.value.code == 2
  assert "pip install 'batched-ppo[completion]'" in capsys.readouterr().err
