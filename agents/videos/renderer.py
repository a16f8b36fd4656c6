"""Replays the episodes of a video and renders its frames."""

from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from agents.environments.making import action_scaling
from agents.videos import mujoco_scene
from agents.videos import video as video_lib

_CHARACTERS_PER_LINE = 26  # Sets the font size.


class VideoRenderer:
  """Renders all tiles of a video.

  Args:
    video: Video to render.
    constructor: Builds the environment with the given index, with
      `render_mode="rgb_array"`.
    tile_height: Height of a tile in pixels; None uses the environment's height.
  """

  def __init__(
    self,
    video: video_lib.Video,
    constructor: Callable[[int], gymnasium.Env],
    tile_height: int | None,
  ) -> None:
    self._video = video
    self._tiles = [TileRenderer(constructor, tile, tile_height) for tile in video.tiles]

  def frames(self, start: int = 0, step: int = 1) -> Iterator[np.ndarray]:
    """Replays all episodes to their ends and renders every `step`-th frame.

    Closes all environments afterwards.

    Args:
      start: Index of the first rendered frame.
      step: Distance between rendered frames.

    Yields:
      uint8 arrays of shape [H, W, 3]; H and W are even.
    """
    for index in range(self._video.num_frames):
      for tile in self._tiles:
        tile.advance(index + 1)
      if index % step == start:
        yield video_lib.compose_grid(
          [tile.frame() for tile in self._tiles], self._video.num_columns
        )
    for tile in self._tiles:
      tile.env.close()

  def problem(self) -> str:
    """Compares scores and lengths of the replay with the recorded episodes.

    Returns:
      Message about the first difference, or "" if there is none.
    """
    for index, (tile, replay) in enumerate(zip(self._video.tiles, self._tiles)):
      episode = tile.episode
      if (replay.score, replay.num_steps) != (episode.score, episode.length):
        return (
          f"The environment is not deterministic: the replay of episode "
          f"{index}, seed {episode.seed}, has return {replay.score:.1f} in "
          f"{replay.num_steps} steps, but the recorded episode has return "
          f"{episode.score:.1f} in {episode.length} steps."
        )
    return ""


class TileRenderer:
  """Replays one episode in an environment and renders its frames.

  Args:
    constructor: See `VideoRenderer`.
    tile: Episode and caption.
    height: Height of the frames in pixels; None uses the environment's height.

  Attributes:
    env: Environment of the replay.
    score: Sum of the rewards so far.
    num_steps: Number of steps so far.
  """

  def __init__(
    self, constructor: Callable[[int], gymnasium.Env], tile: video_lib.Tile, height: int | None
  ) -> None:
    self.env = constructor(tile.episode.environment)
    self._caption = tile.caption
    self._height = height
    mujoco_scene.configure(self.env, height)
    to_env = action_scaling.action_converter(self.env.action_space)
    self._actions = to_env(tile.episode.action) if tile.episode.length else []
    self.env.reset(seed=tile.episode.seed)
    self._frame: np.ndarray | None = None
    self.score = np.float32(0)  # Summed in float32, as in training.
    self.num_steps = 0

  def advance(self, num_steps: int) -> None:
    """Replays until `num_steps` steps are done, or until the episode ends.

    Args:
      num_steps: Number of steps from the start of the episode.
    """
    while self.num_steps < min(num_steps, len(self._actions)):
      _, reward, terminated, truncated, _ = self.env.step(self._actions[self.num_steps])
      self.score += np.float32(reward)
      self.num_steps += 1
      self._frame = None
      if terminated or truncated:
        self._actions = self._actions[: self.num_steps]

  def frame(self) -> np.ndarray:
    """Renders the current state with a caption, at the requested height.

    Returns:
      uint8 array of shape [H, W, 3].

    Raises:
      ValueError: If the environment does not render an RGB image.
    """
    if self._frame is not None:
      return self._frame
    state = f"step {self.num_steps}  return {self.score:.1f}"
    text = "\n".join(filter(None, (self._caption, state)))
    self._frame = picture(self.env.render(), self._height, text)
    return self._frame


def picture(rendered: Any, height: int | None, text: str) -> np.ndarray:
  """Returns a rendered image with a caption, at the requested height.

  Args:
    rendered: Result of `render()`.
    height: Height in pixels; None keeps the height of the image.
    text: Caption.

  Returns:
    uint8 array of shape [H, W, 3].

  Raises:
    ValueError: If `rendered` is not an RGB image.
  """
  if not (
    isinstance(rendered, np.ndarray)
    and rendered.ndim == 3
    and rendered.shape[-1] == 3
    and np.array_equal(rendered, rendered.astype(np.uint8))
  ):
    received = (
      f"an array of shape {rendered.shape} and type {rendered.dtype}"
      if isinstance(rendered, np.ndarray)
      else f"a {type(rendered).__name__}"
    )
    raise ValueError(
      "render() must return an RGB image of shape [height, width, 3] and "
      f"type uint8. It returned {received}; convert it."
    )
  image = Image.fromarray(np.ascontiguousarray(rendered, np.uint8))
  if height is not None and image.height != height:
    width = max(1, round(image.width * height / image.height))
    image = image.resize((width, height))
  _write(image, text)
  return np.asarray(image)


def _write(image: Image.Image, text: str) -> None:
  """Writes text into the upper left corner, on a dark background."""
  size = max(8, min(image.size) // _CHARACTERS_PER_LINE)
  font = ImageFont.load_default(size)
  draw = ImageDraw.Draw(image)
  corner = size // 2, size // 2
  left, top, right, bottom = draw.multiline_textbbox(corner, text, font)
  draw.rectangle((left - 3, top - 3, right + 3, bottom + 3), (20, 20, 20))
  draw.multiline_text(corner, text, (240, 240, 240), font)
