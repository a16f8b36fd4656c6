import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

from agents.training.monitoring import progress
from tests.support import command

ROW = {
  "phase": "train",
  "step": 500,
  "return_mean": 12.34,
  "steps_per_second": 4321.0,
  "step_limit": 8642.0,
  "limit_share": 0.5,
  "stepping_share": 0.4,
  "crossing_share": 0.1,
  "inference_share": 0.1,
  "learning_share": 0.4,
  "evaluation_share": 0.0,
  "compiling_share": 0.0,
  "rest_share": 0.0,
}


def test_output_without_a_terminal_is_plain_lines(capsys):
  shown = progress.Progress(1_000, 0)
  shown.bar.set_description("train")
  shown.bar.update(500)
  shown.report(ROW)
  shown.report({"phase": "eval", "step": 500, "return_mean": None}, 64.4)
  shown.bar.close()
  train, evaluation = capsys.readouterr().out.splitlines()
  assert train == "train   step 500/1,000   return 12.3   4,321 steps/s"
  assert evaluation == ("eval    step 500/1,000   return no episode ended   0:01:04 left")


def test_warnings_are_wrapped_between_words(capsys):
  path = "/folder/" + "with-hyphens" * 10
  progress.warn(f"step 1: {'many words, ' * 15}{path} end")
  first, *lines = capsys.readouterr().err.splitlines()
  assert first.startswith("Warning, step 1: many words,")
  assert path in lines
  assert all(len(line) <= 100 for line in [first, *lines] if line != path)


def test_lines_of_a_text_stay_separate(capsys):
  progress.note("The reason:\n  File x.py\n\nend")
  assert capsys.readouterr().err == "The reason:\n  File x.py\n\nend\n"


def test_output_on_a_terminal_is_a_progress_bar():
  code = (
    "from agents.training.monitoring import progress\n"
    "p = progress.Progress(1000, 0)\n"
    "p.bar.set_description('train'); p.bar.update(500)\n"
    f"p.report({ROW!r}); p.bar.close()"
  )
  reader, terminal = pty.openpty()
  size = struct.pack("HHHH", 24, 100, 0, 0)  # Rows and columns.
  fcntl.ioctl(terminal, termios.TIOCSWINSZ, size)
  subprocess.run(
    [sys.executable, "-c", code], check=True, cwd=command.ROOT, stdout=terminal, stderr=terminal
  )
  os.close(terminal)
  shown = ""
  try:
    while chunk := os.read(reader, 10_000):
      shown += chunk.decode()
  except OSError:
    pass  # On Linux, reading from a closed terminal raises an error.
  os.close(reader)
  assert "train:  50%" in shown
  assert "500/1.00k" in shown
  assert "train=12.3" in shown
  assert "train   step 500/1,000   return 12.3   4,321 steps/s" in shown
