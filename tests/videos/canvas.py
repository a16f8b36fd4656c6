"""Environment with frames that show the number of steps."""

import gymnasium
import numpy as np

from agents.environments.data import episode_data


class Canvas(gymnasium.Env):
  """Renders gray 64 x 96 frames, 10 brighter after each step, modulo 250.

  The reward is the action; an episode has `length` steps.
  """

  observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
  action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
  metadata = {"render_modes": ["rgb_array"], "render_fps": 12}

  def __init__(self, length=20, render_mode=None, broken="", chance=0.0):
    self.render_mode = render_mode
    self._length = length
    self._broken = broken
    self._chance = chance

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    self._steps = 0
    return np.zeros(1, np.float32), {}

  def step(self, action):
    self._steps += 1
    reward = float(action[0])
    if self._chance:
      reward += np.random.default_rng().random()  # Without a seed.
    return (np.zeros(1, np.float32), reward, False,
            self._steps == self._length, {})

  def render(self):
    if self._broken == "error":
      raise ValueError("No paint left.")
    if self._broken == "text":
      return "a picture"
    print("Noise.")  # Environments may write to standard output.
    return np.full((64, 96, 3), 10 * self._steps % 250, np.uint8)


def episode(*actions: float, seed: int = 3) -> episode_data.Episode:
  """Returns the episode of these actions."""
  return episode_data.Episode(
      seed, np.array(actions, np.float32)[:, None],
      float(np.sum(np.array(actions, np.float32))), {})


def brightness(frame: np.ndarray) -> float:
  """Returns the mean of the lower part of a frame, which shows no text."""
  return float(frame[-16:].mean())
