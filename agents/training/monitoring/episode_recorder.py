"""The last episodes of training, which can be played again and filmed."""

from __future__ import annotations

import collections
import pathlib
import sys
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any
from typing import NamedTuple

import numpy as np

from agents import config as config_lib
from agents.environments.data import episodes as episodes_lib
from agents.training.run_folder import checkpoint
from agents.videos import video

_MOST_EPISODES = 32
_MOST_STEPS = 20_000  # Of all together, but for the last one.


class RecordedEpisode(NamedTuple):
  """One episode of training."""

  number: int  # Among all episodes of the run, from 0, by their ends.
  step: int  # Of training, at the end of the update that it was for.
  episode: episodes_lib.Episode


class EpisodeRecorder:
  """Keeps the last few episodes, as many as fit."""

  def __init__(self):
    self._kept: collections.deque[RecordedEpisode] = collections.deque()
    self._count = 0  # Episodes so far.
    self._steps = 0  # Of those that are kept.

  def add(self, episodes: Iterable[episodes_lib.Episode], step: int):
    """Record episodes that ended before a step of training."""
    for episode in episodes:
      self._kept.append(RecordedEpisode(self._count, step, episode))
      self._count += 1
      self._steps += episode.length
    while len(self._kept) > 1 and (
        len(self._kept) > _MOST_EPISODES or self._steps > _MOST_STEPS):
      self._steps -= self._kept.popleft().episode.length

  @property
  def last(self) -> RecordedEpisode | None:
    """The last episode, if there is one."""
    return self._kept[-1] if self._kept else None

  def arrays(self) -> dict[str, np.ndarray]:
    """Return what a checkpoint holds; actions lie one after the other."""
    kept = [one.episode for one in self._kept]
    return {
        "number": np.array([one.number for one in self._kept], np.int64),
        "step": np.array([one.step for one in self._kept], np.int64),
        "seed": np.array([episode.seed for episode in kept], np.int64),
        "score": np.array([episode.score for episode in kept], np.float64),
        "length": np.array([episode.length for episode in kept], np.int64),
        "action": np.concatenate(
            [episode.action for episode in kept] or [np.zeros(0)]),
        "count": np.array(self._count, np.int64)}

  def load(self, arrays: dict[str, np.ndarray]):
    """Undo `arrays`; a checkpoint without any is of an older version."""
    if not arrays:
      return
    self._kept = collections.deque(_read(arrays))
    self._count = int(arrays["count"])
    self._steps = sum(one.episode.length for one in self._kept)


def find(checkpoints: pathlib.Path, number: int) -> RecordedEpisode:
  """Return an episode of training that some checkpoint still holds.

  Args:
    checkpoints: Folder of the checkpoints of a run.
    number: Of the episode; negative to count from the last one.
  Raises:
    ConfigError: If it is not there.
  """
  kept: dict[int, RecordedEpisode] = {}
  checkpoint.newest(checkpoints)  # Says so if there is none.
  for path in checkpoint.paths(checkpoints):
    try:
      arrays, _ = checkpoint.load(path)
    except checkpoint.CheckpointError as error:
      print(f"Note: {error}", file=sys.stderr)
      continue
    kept |= {one.number: one for one in _read(recorded_arrays(arrays))}
  numbers = sorted(kept)
  if number < 0 and -number <= len(numbers):
    number = numbers[number]
  if number not in kept:
    there = ", ".join(_ranges(numbers)) or "none yet"
    raise config_lib.ConfigError(
        f"--episode {number}: its actions are not kept, only those of the last "
        f"episodes before each checkpoint. There are: {there}.")
  return kept[number]


def make_video(recorded: RecordedEpisode, outdir: pathlib.Path) -> video.Film:
  """Return what to film of an episode of training."""
  number, step, episode = recorded
  caption = f"training, episode {number:,}, step {step:,}"
  return video.Film(str(outdir / f"training-episode-{number}.mp4"),
                       (video.Tile(episode, caption),))


def recorded_arrays(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
  """Return those of a checkpoint's arrays that `EpisodeRecorder.arrays` made."""
  return {name.removeprefix("recorded/"): array
          for name, array in arrays.items() if name.startswith("recorded/")}


def _read(arrays: dict[str, Any]) -> Iterator[RecordedEpisode]:
  if not arrays:
    return
  actions = np.split(arrays["action"], np.cumsum(arrays["length"])[:-1])
  for row, action in zip(range(len(arrays["number"])), actions):
    yield RecordedEpisode(
        int(arrays["number"][row]), int(arrays["step"][row]),
        episodes_lib.Episode(
            int(arrays["seed"][row]), action, float(arrays["score"][row]), {}))


def _ranges(numbers: list[int]) -> Iterator[str]:
  """Say 3, 4, 5, 9 as 3 to 5, 9."""
  for index, number in enumerate(numbers):
    if index and numbers[index - 1] == number - 1:
      continue
    end = index
    while end + 1 < len(numbers) and numbers[end + 1] == numbers[end] + 1:
      end += 1
    yield f"{number:,}" + (f" to {numbers[end]:,}" if end > index else "")
