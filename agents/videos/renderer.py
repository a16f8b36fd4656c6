"""Plays one episode again and draws it."""

from __future__ import annotations

import sys
from collections.abc import Callable

import gymnasium
import numpy as np
from PIL import Image
from PIL import ImageDraw
from PIL import ImageFont

from agents.environments.making import action_scaling
from agents.videos import video

_LETTERS = 26  # That a line of text has room for.
_SHADOWS = 1024  # Pixels, of the map that MuJoCo draws to find the shadows.
_SMOOTH = 400  # Pixels, from which on edges are smoothed.
_SHADED = 240  # Pixels, from which on there are shadows.
_GROUND = 10  # Meters, from which on half a plane's width is not a table's.


class Renderer:
  """An environment that repeats an episode step by step.

  Args:
    constructor: Builds the environment, to be drawn as an array.
    tile: The episode.
    size: Height of the pictures in pixels; None leaves it to the environment.
  """

  def __init__(self, constructor: Callable[[], gymnasium.Env], tile: video.Tile,
               size: int | None):
    self._env = constructor()
    self._tile = tile
    self._size = size
    _prepare(self._env, size)
    to_env = action_scaling.action_converter(self._env.action_space)
    self._actions = to_env(tile.episode.action) if tile.episode.length else []
    self._env.reset(seed=tile.episode.seed)
    self._picture: np.ndarray | None = None
    self._ended = False
    self.steps = 0
    self.score = np.float32(0)  # Summed up as it was while it was played.

  def advance(self, step: int):
    """Play on to a step, or to the episode's end if that comes before."""
    end = min(step, len(self._actions))
    while self.steps < end and not self._ended:
      _, reward, terminated, truncated, _ = self._env.step(
          self._actions[self.steps])
      self.score += np.float32(reward)
      self.steps += 1
      self._ended = bool(terminated or truncated)
      self._picture = None

  def picture(self) -> np.ndarray:
    """Return a picture of the present moment, [H, W, 3] uint8."""
    if self._picture is None:
      self._picture = self._draw()
    return self._picture

  def close(self):
    self._env.close()

  def _draw(self) -> np.ndarray:
    drawn = self._env.render()
    if not (isinstance(drawn, np.ndarray) and drawn.ndim == 3
            and drawn.shape[-1] == 3):
      what = (f"an array of shape {drawn.shape}" if isinstance(
          drawn, np.ndarray) else f"a {type(drawn).__name__}")
      raise ValueError(
          "render() must return an RGB image, of shape [height, width, 3] and "
          f"type uint8. It returned {what}.")
    image = Image.fromarray(np.ascontiguousarray(drawn, np.uint8))
    if self._size is not None and image.height != self._size:
      image = image.resize(
          (max(1, round(image.width * self._size / image.height)), self._size))
    lines = [f"step {self.steps}  return {self.score:.1f}"]
    if self._tile.caption:
      lines.insert(0, self._tile.caption)
    _write(image, lines)
    return np.asarray(image)


def _prepare(env: gymnasium.Env, size: int | None):
  """Let MuJoCo draw in this size, at the cost that such a picture is worth.

  Where the CPU draws, the map of the shadows takes half of the time, and small
  pictures three times as long with smooth edges.
  """
  renderer = getattr(env.unwrapped, "mujoco_renderer", None)
  if renderer is None or "mujoco" not in sys.modules:
    return
  visual = renderer.model.vis
  visual.quality.shadowsize = min(visual.quality.shadowsize, _SHADOWS)
  if size is not None:
    renderer.width = renderer.height = size
    visual.global_.offwidth = max(visual.global_.offwidth, size)
    visual.global_.offheight = max(visual.global_.offheight, size)
    if size < _SMOOTH:
      visual.quality.offsamples = 0
    if size < _SHADED:
      visual.quality.shadowsize = 0
  _widen_grounds(renderer.model)


def _widen_grounds(model):
  """Draw grounds as far as they reach for a robot: without an end.

  A good HalfCheetah leaves the 40 meters that are drawn of its ground behind.
  """
  import mujoco  # The environment has imported it.
  for plane in np.flatnonzero(
      model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE):
    width = model.geom_size[plane, :2].copy()
    if width.min() < _GROUND:
      continue
    model.geom_size[plane, :2] = 0  # MuJoCo's sign for an endless plane.
    material = model.geom_matid[plane]
    if material >= 0 and not model.mat_texuniform[material]:
      model.mat_texrepeat[material] /= width  # From each plane to each meter.


def _write(image: Image.Image, lines: list[str]):
  """Write lines of text into the upper left corner, on a dark ground."""
  size = max(8, min(image.size) // _LETTERS)
  font = ImageFont.load_default(size)
  draw = ImageDraw.Draw(image)
  text = "\n".join(lines)
  place = size // 2, size // 2
  left, top, right, bottom = draw.multiline_textbbox(place, text, font)
  draw.rectangle((left - 3, top - 3, right + 3, bottom + 3), (20, 20, 20))
  draw.multiline_text(place, text, (240, 240, 240), font)
