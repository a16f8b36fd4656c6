"""Plays the policy of a legged robot with chosen commands.

The policy is computed by NumPy and the robot is simulated by MuJoCo, without
TensorFlow.
"""

import contextlib
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from agents import config as config_lib
from agents import errors, robots
from agents.environments.making import make
from agents.environments.workers import process
from agents.robots import velocity_task
from agents.training.run_folder import run_folder
from agents.translation import numpy_player
from agents.videos import encode, mujoco_scene, render_process, renderer
from agents.videos import video as video_lib

_COMMAND = re.compile(r"\s*(\S+?)\s*,\s*(\S+?)\s*,\s*(\S+?)\s+for\s+(\S+?)\s*s\s*")
_STRIDE = 2  # Films show every second step, 25 frames per second.
_SHARE_PER_KEY = 0.25  # Of the largest command.
# GLFW codes of the keys: index of the changed part of a command, and sign.
_KEYS = {265: (0, 1), 264: (0, -1), 263: (2, 1), 262: (2, -1), 44: (1, 1), 46: (1, -1)}
_SPACE = 32
KEYS_HELP = (
  "Keys: up and down change the forward speed, left and right the turning speed, comma and "
  "period the sideways speed; space stops the robot."
)
NO_WINDOW = (
  "--drive: the display opens no window with OpenGL; install its driver, such as "
  "`apt install libgl1-mesa-dri`, or use --commands for a film."
)


class Phase(NamedTuple):
  """A command and its duration."""

  command: tuple[float, float, float]  # Forward and left in m/s, turning in rad/s.
  steps: int


def parse_commands(text: str) -> list[Phase]:
  """Returns the commands of a text such as "1,0,0 for 3s; 0,0,1 for 2s".

  Args:
    text: Commands with their durations, separated by semicolons.

  Raises:
    ConfigError: If the text does not have this form.
  """
  phases = []
  for part in filter(str.strip, text.split(";")):
    match = _COMMAND.fullmatch(part)
    try:
      *command, seconds = map(float, match.groups() if match else ())
      steps = round(seconds / velocity_task.CONTROL_SECONDS)
      if steps < 1 or not all(map(math.isfinite, command)):
        raise ValueError
    except (ValueError, OverflowError):
      raise config_lib.ConfigError(
        f"--commands: {part.strip()!r} is not a command. Write forward and left speed in m/s, "
        'turning speed in rad/s, and a duration, such as "1,0,0 for 3s; 0,0,1 for 2s".'
      ) from None
    phases.append(Phase((command[0], command[1], command[2]), steps))
  if not phases:
    raise config_lib.ConfigError('--commands is empty; write, for example, "1,0,0 for 3s".')
  return phases


def check(env: config_lib.Env) -> None:
  """Raises ConfigError unless a run's environment takes commands.

  Args:
    env: Section `env` of the config.
  """
  if not env.id.startswith(robots.PREFIX):
    raise config_lib.ConfigError(
      f"--commands and --drive need a robot with velocity commands, such as the config go1; the "
      f"environment of this run is {env.id}."
    )


def check_display() -> None:
  """Raises ConfigError if there is no display for a window."""
  if sys.platform == "linux" and not (
    os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
  ):
    raise config_lib.ConfigError(
      "--drive opens a window, but there is no display (DISPLAY is not set). Use --commands for "
      "a film."
    )


class Driver:
  """Steps a robot with its policy and the latest command.

  Args:
    run: Run folder.
    policy: Path of the exported policy.npz.
    render_mode: Render mode of the environment, or None.

  Attributes:
    env: Environment of the robot.
    command: Commanded velocities, [3].
    fallen: Whether the robot has fallen.
  """

  def __init__(self, run: pathlib.Path, policy: pathlib.Path, render_mode: str | None) -> None:
    config = run_folder.find(run).config
    self._policy = numpy_player.Policy(policy)
    self.env = make.MakeEnv(config.env, render_mode, seed=config.seed)()
    self.command = np.zeros(3)
    self.begin(config.seed)

  def begin(self, seed: int | None = None) -> None:
    """Begins an episode."""
    self.fallen = False
    self._observ, _ = self.env.reset(seed=seed)
    self._state = self._policy.begin()

  def step(self) -> None:
    """Steps the robot for 0.02 s."""
    robot: Any = self.env.unwrapped
    robot.set_command(self.command)
    # The observation is older than the command that it contains.
    self._observ = robot.observe()
    action, self._state = self._policy(self._observ, self._state)
    self._observ, _, self.fallen, _, _ = robot.step(action)

  def velocity(self) -> np.ndarray:
    """Returns forward and left speed in m/s and turning speed in rad/s, [3]."""
    motion = self._observ["privileged_state"]
    return np.array([motion[0], motion[1], motion[5]])


def film_in_new_process(
  run: pathlib.Path, policy: pathlib.Path, out: pathlib.Path, size: int, commands: str
) -> list[dict[str, Any]]:
  """Calls `film` in a process without TensorFlow; returns what it prints.

  Args:
    run: See `film`.
    policy: See `film`.
    out: See `film`.
    size: See `film`.
    commands: See `film`.

  Raises:
    RenderingFailed: If the robot cannot be rendered.
  """
  arguments = str(run), str(policy), str(out), size, commands
  return render_process.call("agents.robots.drive", "film", *arguments)


def open_window(run: pathlib.Path, policy: pathlib.Path) -> None:
  """Calls `drive` in a process without TensorFlow, until its window is closed.

  Args:
    run: See `drive`.
    policy: See `drive`.

  Raises:
    RunError: If the window ends with an error.
  """
  arguments = str(run), str(policy)
  done = subprocess.run(
    process.python(f"from agents.robots import drive; drive.drive(*{arguments!r})")
  )
  if done.returncode:
    raise errors.RunError(f"The window ended with exit code {done.returncode}.")


def film(run: str, policy: str, out: str, size: int, commands: str) -> None:
  """Films a robot, and prints the mean velocities in each phase as JSON.

  Args:
    run: Run folder.
    policy: Path of the exported policy.npz.
    out: Path of the MP4 file.
    size: Height of the frames in pixels.
    commands: See `parse_commands`.
  """
  driver = Driver(pathlib.Path(run), pathlib.Path(policy), "rgb_array")
  results = []
  with contextlib.closing(driver.env) as env:
    mujoco_scene.configure(env, size)

    def frames() -> Iterator[np.ndarray]:
      for phase in parse_commands(commands):
        driver.command[:] = phase.command
        velocities = []
        for index in range(phase.steps):
          driver.step()
          velocities.append(driver.velocity())
          if index % _STRIDE == 0:
            recent = np.mean(velocities[-25:], axis=0)
            text = f"command {_text(phase.command)}\nvelocity {_text(recent)}"
            yield video_lib.compose_grid([renderer.picture(env.render(), size, text)], 1)
          if driver.fallen:
            break
        mean = np.mean(velocities, axis=0).round(3).tolist()
        results.append({"command": phase.command, "velocity": mean, "fallen": driver.fallen})
        if driver.fallen:
          return

    fps = 1 / velocity_task.CONTROL_SECONDS / _STRIDE
    encode.encode(video_lib.Video(out, ()), frames(), fps)
  print(json.dumps(results))


def drive(run: str, policy: str) -> None:
  """Opens a window in which keys command the robot, until it is closed.

  Args:
    run: Run folder.
    policy: Path of the exported policy.npz.
  """
  import mujoco.viewer

  if not _can_open_window():  # MuJoCo's window would wait forever.
    sys.exit(NO_WINDOW)
  # With this render mode, the model contains all visible shapes.
  driver = Driver(pathlib.Path(run), pathlib.Path(policy), "rgb_array")
  robot: Any = driver.env.unwrapped
  print(KEYS_HELP, flush=True)
  others = threading.enumerate()
  with mujoco.viewer.launch_passive(
    robot.model,
    robot.data,
    key_callback=lambda key: press(driver.command, key, robot),
    show_left_ui=False,
    show_right_ui=False,
  ) as viewer:
    viewer.cam.type, viewer.cam.trackbodyid = mujoco.mjtCamera.mjCAMERA_TRACKING, 1
    viewer.cam.distance = robot.mujoco_renderer.default_cam_config["distance"]
    while viewer.is_running():
      start = time.monotonic()
      with viewer.lock():
        driver.step()
        if driver.fallen:
          print("The robot has fallen; it starts again.", flush=True)
          driver.begin()
      viewer.sync()
      time.sleep(max(0, velocity_task.CONTROL_SECONDS - (time.monotonic() - start)))
  # MuJoCo's thread deletes the window. If Python ended before, it would crash.
  for thread in set(threading.enumerate()).difference(others):
    thread.join()


def _can_open_window() -> bool:
  """Returns whether the display shows windows with OpenGL."""
  import glfw

  if not glfw.init():
    return False
  glfw.window_hint(glfw.VISIBLE, glfw.FALSE)
  window = glfw.create_window(16, 16, "", None, None)
  glfw.terminate()
  return bool(window)


def press(command: np.ndarray, key: int, robot: Any) -> None:
  """Changes a command in place as a key requires, and prints it.

  Args:
    command: Commanded velocities, [3].
    key: Code of the key in GLFW.
    robot: Environment with the largest command.
  """
  if key == _SPACE:
    command[:] = 0
  elif key in _KEYS:
    index, sign = _KEYS[key]
    limit = robot.max_command[index]
    command[index] = np.clip(command[index] + sign * _SHARE_PER_KEY * limit, -limit, limit)
  else:
    return
  print(f"command {_text(command)}", flush=True)


def _text(velocity: Any) -> str:
  forward, left, turn = velocity
  return f"{forward:+.2f} {left:+.2f} m/s {turn:+.2f} rad/s"
