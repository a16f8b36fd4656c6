"""Observes rendered images, without rendering before the first episode."""

from typing import Any, SupportsFloat

import gymnasium
import numpy as np

from agents.environments.making import third_party

_LUMINANCE = np.array([0.299, 0.587, 0.114], np.float32)  # ITU-R BT.601.


class Pixels(gymnasium.Wrapper):
  """Observes the image that the environment renders after each step.

  Unlike Gymnasium's `AddRenderObservation`, the constructor does not render.
  The trainer builds an environment, too, and must not use OpenGL: software
  drivers and TensorFlow crash in one process. Only workers render.

  Args:
    env: Environment with `render_mode="rgb_array"`.
    size: Height and width of the images in pixels. Other frames are resized.
    grayscale: Whether images have shape [H, W] instead of [H, W, 3].
    keep_state: Whether observations are a Dict with the parts "pixels" and
      "state", the observation of `env`.
  """

  def __init__(
    self,
    env: gymnasium.Env,
    size: tuple[int, int] = (84, 84),
    grayscale: bool = True,
    keep_state: bool = False,
  ) -> None:
    super().__init__(env)
    if env.render_mode != "rgb_array":
      raise ValueError(
        f"Pixels needs env.kwargs.render_mode=rgb_array. Received: {env.render_mode!r}."
      )
    self._size, self._grayscale, self._keep_state = tuple(size), grayscale, keep_state
    shape = self._size if grayscale else (*self._size, 3)
    self.observation_space = gymnasium.spaces.Box(0, 255, shape, np.uint8)
    if keep_state:
      self.observation_space = gymnasium.spaces.Dict(
        {"pixels": self.observation_space, "state": env.observation_space}
      )

  def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[Any, dict]:
    """Begins an episode and renders its first image."""
    state, info = self.env.reset(seed=seed, options=options)
    return self._observ(state), info

  def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
    """Steps the environment and renders an image."""
    state, reward, terminated, truncated, info = self.env.step(action)
    return self._observ(state), reward, terminated, truncated, info

  def _observ(self, state: Any) -> Any:
    frame: Any = self.env.render()
    if self._grayscale:
      frame = (frame @ _LUMINANCE).astype(np.uint8)
    if frame.shape[:2] != self._size:
      frame = _resized(frame, self._size)
    return {"pixels": frame, "state": state} if self._keep_state else frame


def _resized(frame: np.ndarray, size: tuple[int, ...]) -> np.ndarray:
  """Returns an image with another height and width."""
  try:
    import cv2
  except ImportError as error:
    raise ImportError(
      f"Pixels resizes frames of {frame.shape[0]} x {frame.shape[1]} pixels with OpenCV: "
      f"{third_party.advice('pixels')}."
    ) from error
  return cv2.resize(frame, size[::-1], interpolation=cv2.INTER_AREA)
