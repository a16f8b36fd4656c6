import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

from agents.training.monitoring import progress
from tests import command

ROW = {"phase": "train", "step": 500, "return_mean": 12.34,
       "steps_per_second": 4321.0, "step_limit": 8642.0, "limit_share": 0.5,
       "stepping_share": 0.4, "crossing_share": 0.1, "inference_share": 0.1,
       "learning_share": 0.4, "evaluation_share": 0.0, "compiling_share": 0.0,
       "rest_share": 0.0}


def test_output_without_a_terminal_is_plain_lines(capsys):
  shown = progress.Progress(1_000, 0)
  shown.bar.set_description("train")
  shown.bar.update(100)
  shown.forecast(0.5)
  shown.bar.update(400)
  shown.report(ROW)
  shown.report({"phase": "eval", "step": 500, "return_mean": None})
  shown.bar.close()
  budget, train, evaluation = capsys.readouterr().out.splitlines()
  assert budget == "budget    1,000 steps; about 0.5 minutes from now"
  assert train == (
      "train   step 500/1,000   return 12.3   4,321 steps/s   0:00:00 left")
  assert evaluation.startswith(
      "eval    step 500/1,000   return no episode ended   0:00:0")


def test_output_on_a_terminal_is_a_progress_bar():
  code = ("from agents.training.monitoring import progress\n"
          "p = progress.Progress(1000, 0)\n"
          "p.bar.set_description('train'); p.bar.update(500)\n"
          f"p.report({ROW!r}); p.bar.close()")
  reader, terminal = pty.openpty()
  size = struct.pack("HHHH", 24, 100, 0, 0)  # Rows and columns.
  fcntl.ioctl(terminal, termios.TIOCSWINSZ, size)
  subprocess.run([sys.executable, "-c", code], check=True, cwd=command.ROOT,
                 stdout=terminal, stderr=terminal)
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
