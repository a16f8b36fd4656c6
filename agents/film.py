"""Plays episodes of a learned policy and films them."""

from __future__ import annotations

import functools
import os
import pathlib
import sys
from typing import Any

import imageio_ffmpeg
import numpy as np
import tensorflow as tf

from agents import build
from agents import errors
from agents.environments import batch_env
from agents.environments import make
from agents.environments import workers as workers_lib
from agents.ops import random
from agents.training import checkpoint
from agents.training import run_folder
from agents.training import trainer

_FRAMES_PER_SECOND = 30  # Where the environment doesn't say.


def film(folder: run_folder.RunFolder, outdir: pathlib.Path,
         num_episodes: int, explore: bool) -> list[dict[str, Any]]:
  """Write one MP4 an episode, one frame an environment step.

  Environment, networks and normalizers are rebuilt by the code of training.

  Args:
    folder: Run with at least one checkpoint; the newest is filmed.
    outdir: Existing folder to write the films to.
    num_episodes: Number of films.
    explore: Sample actions, or take the mean action.
  Returns:
    File name, return and length of each episode.
  Raises:
    RunError: If the environment can't be drawn.
  """
  config = folder.config
  arrays, facts = checkpoint.load(checkpoint.newest(folder.checkpoints))
  constructor = make.MakeEnv(config.env, render_mode="rgb_array")
  # Drawn in a worker: software OpenGL and TensorFlow both bring their own LLVM
  # and crash in one process.
  with workers_lib.Workers(1, variables=_drawing_variables()) as workers:
    env = batch_env.BatchEnv(
        [constructor], workers, random.stream(config.seed, "eval"))
    fps = env.get("metadata")[0].get("render_fps") or _FRAMES_PER_SECOND
    algorithm = build.algorithm(
        config, env.observation_space, env.action_space)
    trainer.load_variables(algorithm, arrays)
    @functools.partial(tf.function, autograph=False)
    def act(observ, clock):
      return algorithm.act(
          observ, algorithm.noise(clock, 1) if explore else None)

    episodes: list[dict[str, Any]] = []
    clock, observ = 0, env.reset()
    while len(episodes) < num_episodes:
      name = f"step-{facts['step']}-episode-{len(episodes)}.mp4"
      score, length, ended, writer = 0.0, 0, False, None
      while not ended:
        frame = _draw(env)
        if writer is None:
          writer = _open(outdir / name, frame, fps / config.env.action_repeat)
        writer.send(frame)
        action = act(tf.constant(observ), tf.constant(clock, tf.int64))
        step = env.step(action.numpy())
        observ, clock, length = step.observ, clock + 1, length + 1
        score += float(step.reward[0])
        ended = bool(step.terminated[0] or step.truncated[0])
      assert writer is not None
      writer.close()
      episodes.append({"file": name, "return": score, "length": length})
      print(f"{outdir / name}: return {score:.1f}, {length} steps", flush=True)
  return episodes


def _drawing_variables() -> dict[str, str]:
  """Environment variables for drawing without a display."""
  variables = {"SDL_VIDEODRIVER": "dummy"}
  if sys.platform == "linux":
    variables["MUJOCO_GL"] = os.environ.get("MUJOCO_GL", "egl")
  return variables


def _draw(env: batch_env.BatchEnv) -> np.ndarray:
  """Return a frame of shape [height, width, 3] and type uint8."""
  try:
    frame = env.call("render")[0]
  except Exception as error:
    raise errors.RunError(
        f"The environment can't be drawn: {type(error).__name__}: {error}. "
        "MuJoCo draws with what MUJOCO_GL names, egl by default; on Debian and "
        "Ubuntu `apt-get install libegl1 libgl1` brings what egl needs, "
        "`apt-get install libosmesa6` what osmesa needs.") from error
  if not (isinstance(frame, np.ndarray) and frame.ndim == 3):
    raise errors.RunError(
        f"render() returned {type(frame).__name__}, not an RGB image.")
  height, width = (size - size % 2 for size in frame.shape[:2])
  # H.264 wants even sizes.
  return np.ascontiguousarray(frame[:height, :width], np.uint8)


def _open(path: pathlib.Path, frame: np.ndarray, fps: float):
  """Return a generator that wants frames."""
  height, width, _ = frame.shape
  writer = imageio_ffmpeg.write_frames(
      str(path), (width, height), fps=fps, codec="libx264",
      macro_block_size=2, ffmpeg_log_level="error")
  writer.send(None)
  return writer
