"""Keeps the last training episodes for replay and videos."""

import collections
import itertools
import pathlib
import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from agents import config as config_lib
from agents.environments.data import episode_data
from agents.training.run_folder import checkpoint
from agents.videos import video

_MAX_EPISODES = 32
# Limit of the summed lengths of all episodes. The last episode is always kept.
MAX_STEPS = 20_000
_COLUMNS = [
  ("number", np.int64),
  ("step", np.int64),
  ("seed", np.int64),
  ("score", np.float64),
  ("length", np.int64),
  ("environment", np.int64),
]
_PREFIX = "recorded/"  # Prefix of array names in a checkpoint.


class RecordedEpisode(NamedTuple):
  """A training episode and its position in the run."""

  number: int  # Index among all episodes of the run, in order of their ends.
  step: int  # Training steps completed after the update that used the episode.
  episode: episode_data.Episode


class RecentEpisodes:
  """Queue of the last training episodes."""

  def __init__(self) -> None:
    self._recorded: collections.deque[RecordedEpisode] = collections.deque()
    self._num_ended = 0  # Ended episodes of the run, including removed ones.

  def add(self, episodes: Iterable[episode_data.Episode], step: int) -> None:
    """Records the ended episodes of an epoch, and removes the oldest episodes.

    Args:
      episodes: Episodes in order of their ends.
      step: Training steps completed after the epoch.
    """
    for episode in episodes:
      self._recorded.append(RecordedEpisode(self._num_ended, step, episode))
      self._num_ended += 1
    num_steps = sum(recorded.episode.length for recorded in self._recorded)
    while len(self._recorded) > 1 and (
      len(self._recorded) > _MAX_EPISODES or num_steps > MAX_STEPS
    ):
      num_steps -= self._recorded.popleft().episode.length

  @property
  def last(self) -> RecordedEpisode | None:
    """The last episode, or None before the first one."""
    return self._recorded[-1] if self._recorded else None

  def arrays(self) -> dict[str, np.ndarray]:
    """Returns the state as arrays for a checkpoint.

    Returns:
      Arrays by name, with the prefix "recorded/": arrays of shape [E] with one
      value per recorded episode; the actions of all recorded episodes with L
      steps together, of shape [L, ...]; and a scalar, the number of ended
      episodes of the run.
    """
    table = np.array(
      [
        (*(number, step, episode.seed, episode.score, episode.length), episode.environment)
        for number, step, episode in self._recorded
      ],
      _COLUMNS,
    )
    actions = [recorded.episode.action for recorded in self._recorded]
    return {
      **{_PREFIX + name: table[name] for name, _ in _COLUMNS},
      f"{_PREFIX}action": np.concatenate(actions or [np.zeros(0)]),
      f"{_PREFIX}count": np.array(self._num_ended, np.int64),
    }

  def load(self, arrays: dict[str, np.ndarray]) -> None:
    """Restores the state.

    Args:
      arrays: Arrays of a checkpoint. Checkpoints of older versions contain no
        episodes.
    """
    self._recorded = collections.deque(_parse(arrays))
    self._num_ended = int(arrays.get(f"{_PREFIX}count", 0))


def find(checkpoints: pathlib.Path, number: int) -> RecordedEpisode:
  """Finds a training episode in the checkpoints of a run.

  Args:
    checkpoints: Folder of the checkpoints.
    number: Index of the episode; negative indices count from the last one.

  Returns:
    The episode with its actions.

  Raises:
    CheckpointError: If the folder contains no checkpoint.
    ConfigError: If no checkpoint contains the episode.
  """
  recorded: dict[int, RecordedEpisode] = {}
  checkpoint.newest(checkpoints)  # Raises if the folder has no checkpoint.
  for path in checkpoint.paths(checkpoints):
    try:
      arrays, _ = checkpoint.load(path)
    except checkpoint.CheckpointError as error:
      print(f"Note: {error}", file=sys.stderr)
      continue
    recorded |= {entry.number: entry for entry in _parse(arrays)}
  numbers = sorted(recorded)
  if number < 0 and -number <= len(numbers):
    number = numbers[number]
  if number not in recorded:
    raise config_lib.ConfigError(
      f"--episode {number}: no checkpoint contains this episode. Checkpoints "
      "contain the last episodes before they were saved. Available episodes: "
      f"{', '.join(_ranges(numbers)) or '(none)'}."
    )
  return recorded[number]


def make_video(recorded: RecordedEpisode, outdir: pathlib.Path) -> video.Video:
  """Describes the video of a training episode.

  Args:
    recorded: Episode to show.
    outdir: Folder of the video file.

  Returns:
    Path, caption and episode of the video.
  """
  number, step, episode = recorded
  caption = f"training, episode {number:,}, step {step:,}"
  return video.Video(
    str(outdir / f"training-episode-{number}.mp4"), (video.Tile(episode, caption),)
  )


def _parse(arrays: dict[str, np.ndarray]) -> Iterator[RecordedEpisode]:
  """Yields the episodes in the arrays of a checkpoint."""
  if f"{_PREFIX}count" not in arrays:
    return
  actions = np.split(arrays[f"{_PREFIX}action"], np.cumsum(arrays[f"{_PREFIX}length"])[:-1])
  names = "number", "step", "seed", "score", "environment"
  # Older checkpoints contain no index of the environment.
  no_index = np.zeros_like(arrays[f"{_PREFIX}seed"])
  columns = (arrays.get(_PREFIX + name, no_index).tolist() for name in names)
  for number, step, seed, score, environment, action in zip(*columns, actions):
    episode = episode_data.Episode(seed, action, score, {}, environment)
    yield RecordedEpisode(number, step, episode)


def _ranges(numbers: list[int]) -> Iterator[str]:
  """Yields ascending numbers as ranges: 3, 4, 5, 9 become "3 to 5" and "9"."""
  # Consecutive numbers have equal differences from their positions in the list.
  for _, group in itertools.groupby(enumerate(numbers), lambda item: item[1] - item[0]):
    consecutive = [number for _, number in group]
    first, last = consecutive[0], consecutive[-1]
    yield f"{first:,} to {last:,}" if last > first else f"{first:,}"
