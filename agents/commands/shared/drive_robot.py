"""Plays the policy of a legged robot with chosen commands."""

import pathlib
import tempfile
from typing import Any

from agents import config as config_lib
from agents.robots import drive
from agents.training.monitoring import quiet_imports
from agents.training.run_folder import run_folder
from agents.videos import write_videos


def play(
  folder: run_folder.RunFolder,
  checkpoint: pathlib.Path,
  commands: str | None,
  film: pathlib.Path | None,
  size: int | None = None,
) -> list[dict[str, Any]]:
  """Plays a robot in a film, or in a window in which keys are the commands.

  Args:
    folder: Run folder.
    checkpoint: Path of the checkpoint with the policy.
    commands: Commands of the film, see `drive.parse_commands`.
    film: Path of the MP4 file; None opens a window.
    size: Height of the frames in pixels; None takes the default.

  Returns:
    Command, mean velocity and fall of each phase; empty for a window.

  Raises:
    ConfigError: If the robot takes no commands, there is no display, or the
      folder of the film cannot be created.
    RenderingFailed: If the robot cannot be rendered.
  """
  drive.check(folder.config.env)
  if film is None:
    drive.check_display()
  else:
    try:
      film.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
      raise config_lib.ConfigError(f"--outdir {film.parent}: {error}") from None
  with quiet_imports.quiet_imports():
    from agents.export import write
  with tempfile.TemporaryDirectory() as scratch:
    policy = write.write_npz(folder, checkpoint, pathlib.Path(scratch))
    if film is None:
      drive.open_window(folder.path, policy)
      return []
    height = size or write_videos.MAX_TILE_HEIGHT
    phases = drive.film_in_new_process(folder.path, policy, film, height, str(commands))
  for phase in phases:
    end = ", then the robot fell" if phase["fallen"] else ""
    print(f"command {phase['command']}: mean velocity {phase['velocity']}{end}")
  print(film)
  return phases
