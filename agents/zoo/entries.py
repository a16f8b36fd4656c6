"""Finds and reads the entries of the zoo.

An entry is a run folder that contains only the final policy:

config.yaml, versions.yaml, code.yaml    as in a run folder
checkpoints/    the final variables without those of the optimizer
policy.npz      the policy for NumPy, see `numpy_player`
entry.yaml      scores, digest and origin, see `Entry`
film.mp4        the first seconds of an episode
"""

import dataclasses
import os
import pathlib

from agents import config as config_lib
from agents import config_parsing

MAX_ENTRY_BYTES = 500_000
MAX_ZOO_BYTES = 5_000_000
_FILE = "entry.yaml"


@dataclasses.dataclass(frozen=True)
class Entry:
  """Contents of entry.yaml."""

  config: str  # Name of the config.
  task: str  # Id of the environment.
  command: str  # Command that trained the policy.
  seed: int
  steps: int  # Environment steps of training.
  score: float  # Mean return of the final policy with the mean action.
  score_std: float  # Standard deviation of the returns of single episodes.
  episodes: int  # Number of episodes behind `score` and `score_std`.
  minutes: float  # Duration of training, with its evaluations.
  date: str  # Day on which the entry was made, as YYYY-MM-DD.
  digest: str  # See `fingerprint.digest`.
  platform: dict[str, str]  # See `fingerprint.platform`.
  seed_scores: tuple[float, ...]  # Scores of runs with different seeds.
  # Expected score of a further run, see `score.interval`; null if fewer than
  # three seeds are known.
  interval: tuple[float, ...] | None


def root() -> pathlib.Path:
  """Returns the folder with all entries."""
  # Wheels contain `zoo/` as `agents/zoo/policies`.
  packaged = pathlib.Path(__file__).with_name("policies")
  return packaged if packaged.is_dir() else pathlib.Path(__file__).parents[2] / "zoo"


def names() -> list[str]:
  """Returns the names of all entries."""
  return sorted(path.parent.name for path in root().glob(f"*/{_FILE}"))


def is_entry(path: pathlib.Path) -> bool:
  """Returns whether a folder is an entry of a zoo.

  Args:
    path: Path of the folder.
  """
  return (path / _FILE).is_file()


def find(name: str) -> pathlib.Path:
  """Returns the folder of an entry, which commands use like a run folder.

  Args:
    name: Name such as "cheetah", or a path with a slash.

  Raises:
    ConfigError: If there is no such entry.
  """
  if os.sep in name:
    path = pathlib.Path(name).expanduser().absolute()
    if not is_entry(path):
      raise config_lib.ConfigError(f"{name} is not an entry of a zoo: it has no {_FILE}.")
    return path
  if name not in names():
    raise config_lib.ConfigError(
      f"{name}: no policy in the zoo has this name.{config_parsing.did_you_mean(name, names())} "
      f"Policies: {', '.join(names()) or '(none)'}; or give the path of an entry, such as "
      f"./{name}."
    )
  return root() / name


def expand(text: str) -> str:
  """Replaces the name of an entry by its path; returns other texts unchanged.

  Args:
    text: RUN or RUN@STEP, where RUN is a path or the name of an entry.
  """
  name, at, step = text.partition("@")
  return f"{root() / name}{at}{step}" if name in names() else text


def read(path: pathlib.Path) -> Entry:
  """Reads entry.yaml.

  Args:
    path: Folder of the entry.

  Raises:
    ConfigError: If the file cannot be read or is invalid.
  """
  file = path / _FILE
  try:
    return config_parsing.convert(Entry, config_parsing.parse(file.read_text()), "")
  except (OSError, UnicodeDecodeError, config_parsing.ConfigError) as error:
    raise config_lib.ConfigError(f"{file}: {error}") from None


def write(path: pathlib.Path, entry: Entry) -> None:
  """Writes entry.yaml.

  Args:
    path: Folder of the entry.
    entry: Contents of the file.
  """
  import yaml  # Imported late: reading needs only `config_parsing`.

  data = config_parsing.to_data(entry)
  (path / _FILE).write_text(yaml.safe_dump(data, sort_keys=False))


def num_bytes(path: pathlib.Path) -> int:
  """Returns the size of all files in a folder.

  Args:
    path: Path of the folder.
  """
  return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def check_size(path: pathlib.Path) -> None:
  """Checks that an entry, and the zoo together with the entry, are small.

  Args:
    path: Folder of the entry.

  Raises:
    ConfigError: If the entry or the zoo is too large.
  """
  size = num_bytes(path)
  if size > MAX_ENTRY_BYTES:
    largest = max((file for file in path.rglob("*") if file.is_file()), key=_size)
    raise config_lib.ConfigError(
      f"The entry has {size:,} bytes, but an entry of the zoo has at most {MAX_ENTRY_BYTES:,}. "
      f"Its largest file is {largest.relative_to(path)} with {_size(largest):,} bytes. Policies "
      "with large networks do not fit into the zoo."
    )
  total = size + sum(num_bytes(root() / name) for name in names() if root() / name != path)
  if total > MAX_ZOO_BYTES:
    raise config_lib.ConfigError(
      f"With this entry, the zoo has {total:,} bytes, but at most {MAX_ZOO_BYTES:,} are allowed. "
      f"Remove another entry from {root()}."
    )


def _size(path: pathlib.Path) -> int:
  return path.stat().st_size
