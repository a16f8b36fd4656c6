"""Plays a policy of the zoo with NumPy, and films the start of the episode.

TensorFlow is not imported, because its import takes longer than the film.
"""

import contextlib
import json
import math
import pathlib
import sys
from collections.abc import Iterator
from typing import NamedTuple

import gymnasium
import numpy as np

from agents import config as config_lib
from agents.environments.making import make
from agents.training.run_folder import run_folder
from agents.translation import numpy_player
from agents.videos import encode, mujoco_scene, render_process, renderer
from agents.videos import video as video_lib

_MAX_FPS = 30  # Environments with more steps per second show every n-th step.


class Played(NamedTuple):
  """One episode, of which a film shows the start."""

  score: float  # Sum of rewards of the whole episode.
  length: int  # Steps of the whole episode.
  seconds: float  # Duration of the film.


def record(entry: pathlib.Path, out: pathlib.Path, size: int, max_seconds: float) -> Played:
  """Plays one episode with the mean action, and films its start.

  Args:
    entry: Folder with config.yaml and policy.npz.
    out: Path of the MP4 file.
    size: Height of the frames in pixels.
    max_seconds: Maximum duration of the film at normal speed.

  Returns:
    Return and length of the episode, and the duration of the film.

  Raises:
    RenderingFailed: If the environment cannot be built or rendered.
  """
  arguments = str(entry), str(out), size, max_seconds
  return Played(*render_process.call("agents.zoo.film", "main", *arguments))


def main(entry: str, out: str, size: int, max_seconds: float) -> None:
  """Records a film in this process, and prints a `Played` as JSON.

  Args:
    entry: See `record`.
    out: See `record`.
    size: See `record`.
    max_seconds: See `record`.
  """
  try:
    config = run_folder.find(entry).config
    make.check(config.env, needs_rendering=True)
  except config_lib.ConfigError as error:
    sys.exit(str(error))
  policy = numpy_player.Policy(pathlib.Path(entry, "policy.npz"))
  fps = make.fps(config.env)
  stride, max_steps = math.ceil(fps / _MAX_FPS), math.ceil(max_seconds * fps)
  with contextlib.closing(make.MakeEnv(config.env, "rgb_array", seed=config.seed)()) as env:
    mujoco_scene.configure(env, size)
    episode = _Episode(env, policy, config.seed)

    def frames() -> Iterator[np.ndarray]:
      while not episode.ended and episode.length < max_steps:
        episode.step()
        if (episode.length - 1) % stride == 0:
          text = f"step {episode.length}  return {episode.score:.1f}"
          yield video_lib.compose_grid([renderer.picture(env.render(), size, text)], 1)

    encode.encode(video_lib.Video(out, ()), frames(), fps / stride)
    while not episode.ended:  # The rest of the episode is not rendered.
      episode.step()
  seconds = min(max_steps, episode.length) / fps
  print(json.dumps(Played(episode.score, episode.length, seconds)))


class _Episode:
  """Plays one episode, step by step.

  Args:
    env: Environment of the policy.
    policy: Selects the actions.
    seed: Seed of the episode.

  Attributes:
    score: Sum of the rewards so far.
    length: Number of steps so far.
    ended: Whether the episode has ended.
  """

  def __init__(self, env: gymnasium.Env, policy: numpy_player.Policy, seed: int) -> None:
    self.score, self.length, self.ended = 0.0, 0, False
    self._env, self._policy = env, policy
    self._observation, _ = env.reset(seed=seed)
    self._state = policy.begin()

  def step(self) -> None:
    """Takes one step with the action of the policy."""
    action, self._state = self._policy(self._observation, self._state)
    self._observation, reward, terminated, truncated, _ = self._env.step(action)
    self.score += float(reward)
    self.length += 1
    self.ended = terminated or truncated
