"""Settings that `benchmarks.scaling` measures."""

import functools
import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from agents import config as config_lib
from benchmarks.common import training

_MIN_SEGMENT = 8  # Steps, unless the segments of the config are shorter.


class Point(NamedTuple):
  """Changes of a config; `Point()` is the config itself."""

  settings: tuple[str, ...] = ()  # Each as KEY=VALUE.
  threads: int | None = None  # TensorFlow threads per operation; None: all.

  @property
  def args(self) -> list[str]:
    """Arguments of `benchmarks.speed` and of `train.py`."""
    return training.split_settings(self.settings)

  @property
  def variables(self) -> dict[str, str]:
    """Environment variables of the process."""
    return {"TF_NUM_INTRAOP_THREADS": str(self.threads)} if self.threads else {}


def point(
  config: config_lib.Config, cores: int, changes: Mapping[str, Any], threads: int | None = None
) -> Point:
  """Returns a point; omits changes to values that the config already has.

  Points with equal effects are therefore equal, and are measured once.

  Args:
    config: Configuration to change.
    cores: Number of cores of the machine.
    changes: Values by dotted key.
    threads: TensorFlow threads per operation.
  """
  settings = []
  for key, value in changes.items():
    own: Any = functools.reduce(getattr, key.split("."), config)
    if key == "num_workers":
      own = config.workers(cores)
    if value != (list(own) if isinstance(own, tuple) else own):
      settings.append(f"{key}={json.dumps(value, separators=(',', ':'))}")
  return Point(tuple(settings), None if threads == cores else threads)


def with_envs(config: config_lib.Config, num_envs: int) -> dict[str, Any]:
  """Returns changes for another number of environments.

  An update learns from about as many steps as before. An update from whole
  episodes learns from as many episodes as before, but from at least `num_envs`.

  Args:
    config: Configuration to change.
    num_envs: Number of environments.
  """
  algorithm = config.algorithm
  if not algorithm.segment_length:
    return {
      "num_envs": num_envs,
      "algorithm.update_every": max(algorithm.update_every or 1, num_envs),
    }
  # The steps of an update must be a multiple of the minibatch size, so segment
  # lengths are multiples of `unit`.
  minibatch = algorithm.minibatch_size or 1
  unit = minibatch // math.gcd(minibatch, num_envs)
  length = config.num_envs * algorithm.segment_length / num_envs
  shortest = min(_MIN_SEGMENT, algorithm.segment_length)
  units = max(round(length / unit), math.ceil(shortest / unit))
  return {"num_envs": num_envs, "algorithm.segment_length": unit * units}


def environments(config: config_lib.Config, cores: int) -> dict[int, Point]:
  """Returns points with 1 to 512 environments and with the config's own number.

  Args:
    config: Configuration to change.
    cores: Number of cores of the machine.

  Returns:
    Points by number of environments. The number of the config has `Point()`.
  """
  return {
    num_envs: point(config, cores, with_envs(config, num_envs))
    for num_envs in sorted({*(2**k for k in range(10)), config.num_envs})
  }


def combinations(config: config_lib.Config, cores: int) -> list[Point]:
  """Returns combinations of numbers of workers and of threads to choose from.

  Args:
    config: Configuration to change.
    cores: Number of cores of the machine.
  """
  half = max(1, cores // 2)
  workers = {1, half, cores, 2 * cores, config.workers(cores)}
  return list(
    dict.fromkeys(
      point(config, cores, {"num_workers": number}, threads)
      for number in sorted(workers)
      if number <= config.num_envs
      for threads in sorted({1, half, cores})
    )
  )
