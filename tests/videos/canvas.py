"""Environment with frames that show the number of steps."""

import time

import gymnasium
import numpy as np

from agents.environments.data import episode_data


class Canvas(gymnasium.Env):
  """Renders gray frames of 64 x 96 pixels.

  The gray level is 10 times the number of steps, modulo 250. The reward is the
  action.

  Args:
    length: Number of steps of an episode.
    render_mode: "rgb_array" or None.
    render_fault: "error" if `render` should raise; "hang" if it should take ten
      seconds; "text" or "float" if it should return a text or an image of
      floats.
    reward_noise: If nonzero, random numbers are added to the rewards.
  """

  observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
  action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
  metadata = {"render_modes": ["rgb_array"], "render_fps": 12}

  def __init__(self, length=20, render_mode=None, render_fault="", reward_noise=0.0):
    self.render_mode = render_mode
    self._length = length
    self._render_fault = render_fault
    self._reward_noise = reward_noise

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    self._steps = 0
    return np.zeros(1, np.float32), {}

  def step(self, action):
    self._steps += 1
    reward = float(action[0])
    if self._reward_noise:
      reward += np.random.default_rng().random()  # The seed is random.
    return (np.zeros(1, np.float32), reward, False, self._steps == self._length, {})

  def render(self):
    if self._render_fault == "error":
      raise ValueError("No paint left.")
    if self._render_fault == "hang":
      time.sleep(10)
    if self._render_fault == "text":
      return "a picture"
    if self._render_fault == "float":
      return np.full((64, 96, 3), 0.5)
    print("Noise.")  # Environments may write to standard output.
    return np.full((64, 96, 3), 10 * self._steps % 250, np.uint8)


def make(environment: int = 0, kind: type[Canvas] = Canvas, **kwargs) -> Canvas:
  """Returns an environment that renders frames.

  Args:
    environment: Index of the environment; ignored.
    kind: Class of the environment.
    kwargs: Arguments of the class.
  """
  return kind(render_mode="rgb_array", **kwargs)


def episode(*actions: float, seed: int = 3) -> episode_data.Episode:
  """Returns an episode with the given actions, whose sum is the score."""
  return episode_data.Episode(
    seed, np.array(actions, np.float32)[:, None], float(np.sum(np.array(actions, np.float32))), {}
  )


def brightness(frame: np.ndarray) -> float:
  """Returns the mean of the lower part of a frame, which shows no text."""
  return float(frame[-16:].mean())
