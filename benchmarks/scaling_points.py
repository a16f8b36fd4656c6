"""Settings that `benchmarks.scaling` measures, a few changes at a time."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any
from typing import NamedTuple

from agents import config as config_lib
from benchmarks.common import training

FEW_ENVS, MANY_ENVS = 8, 512  # Environments in the comparison of memory.
_SHORTEST_SEGMENT = 8  # Steps, unless the config has shorter ones.


class Point(NamedTuple):
  """Changes of a config; without any, the config itself."""

  settings: tuple[str, ...] = ()  # Each as KEY=VALUE.
  threads: int | None = None  # TensorFlow threads per operation; None: cores.
  simulator: bool = False  # Whether to step the simulator alone.

  @property
  def args(self) -> list[str]:
    """Arguments of `benchmarks.speed`; those of training suit train.py too."""
    args = training.split_settings(self.settings)
    return [*args, "--simulator"] if self.simulator else args

  @property
  def variables(self) -> dict[str, str]:
    """Environment variables of the process."""
    return {"TF_NUM_INTRAOP_THREADS": str(self.threads)} if self.threads else {}


def point(config: config_lib.Config, cores: int, changes: Mapping[str, Any],
          threads: int | None = None, simulator: bool = False) -> Point:
  """Return a point without changes that equal the config.

  Equal points therefore do equal work, and are measured once.

  Args:
    config: Configuration to change.
    cores: Number of cores of the machine.
    changes: Values by dotted key.
    threads: TensorFlow threads per operation.
    simulator: Whether to step the simulator alone.
  """
  settings = []
  for key, value in changes.items():
    own: Any = functools.reduce(getattr, key.split("."), config)
    if key == "num_workers":
      own = config.workers(cores)
    if value != (list(own) if isinstance(own, tuple) else own):
      settings.append(f"{key}={json.dumps(value, separators=(',', ':'))}")
  return Point(
      tuple(settings), None if threads == cores else threads, simulator)


def with_envs(config: config_lib.Config, num_envs: int,
              steps: int | None = None) -> dict[str, Any]:
  """Return changes for another number of environments.

  An update learns from about as many steps as before, or from the same number
  of whole episodes.

  Args:
    config: Configuration to change.
    num_envs: Number of environments.
    steps: Steps of an update; by default those of the config.
  """
  algorithm = config.algorithm
  if not algorithm.segment_length:
    return {"num_envs": num_envs, "algorithm.update_every": max(
        algorithm.update_every or 1, num_envs)}
  # The segments of all environments together must divide into minibatches.
  minibatch = algorithm.minibatch_size or 1
  unit = minibatch // math.gcd(minibatch, num_envs)
  length = (steps or steps_per_update(config)) / num_envs
  shortest = min(_SHORTEST_SEGMENT, algorithm.segment_length)
  units = max(round(length / unit), math.ceil(shortest / unit))
  return {"num_envs": num_envs, "algorithm.segment_length": unit * units}


def steps_per_update(config: config_lib.Config) -> int:
  """Return the number of steps of an update; 0 for whole episodes."""
  return config.num_envs * (config.algorithm.segment_length or 0)


def sweeps(config: config_lib.Config, cores: int, quick: bool = False
           ) -> dict[str, dict[int, Point]]:
  """Return the points of every panel, by their values on its x axis.

  The config's own value, whose point is `Point()`, is among them.

  Args:
    config: Configuration to change.
    cores: Number of cores of the machine.
    quick: Whether to measure fewer points of the same range.
  """
  network, steps = config.network, steps_per_update(config)
  widths = {*network.policy_layers, *network.value_layers}
  minibatch = config.algorithm.minibatch_size or steps
  workers = {1, cores, cores + 1}
  if not quick:
    workers |= {*_doublings(1, 2 * cores), 2 * cores}

  def sweep(values: Iterable[int], own: Iterable[int],
            changes: Callable[[int], dict[str, Any]]) -> dict[int, Point]:
    return {value: point(config, cores, changes(value))
            for value in sorted({*values, *own})}
  return {
      "envs": sweep(
          _doublings(1, 512)[::3 if quick else 1], [config.num_envs],
          lambda num_envs: with_envs(config, num_envs)),
      "workers": sweep(
          [number for number in workers if number <= config.num_envs],
          [config.workers(cores)], lambda number: {"num_workers": number}),
      "width": sweep(
          _doublings(32, 512)[::2 if quick else 1],
          widths if len(widths) == 1 else [], lambda units: {
              "network.policy_layers": [units] * len(network.policy_layers),
              "network.value_layers": [units] * len(network.value_layers)}),
      "minibatch": sweep(
          [size for size in _doublings(32, 2048)[::2 if quick else 1]
           if steps % size == 0], [minibatch] if minibatch else [],
          lambda size: {"algorithm.minibatch_size": size})}


def memory(config: config_lib.Config, cores: int
           ) -> dict[str, tuple[Point, Point]]:
  """Return points with FEW_ENVS and MANY_ENVS, to compare their memory.

  Args:
    config: Configuration to change.
    cores: Number of cores of the machine.
  """
  # Equal numbers of workers and of steps per update, whose memory must not
  # count as memory of the environments.
  workers = {"num_workers": min(config.workers(cores), FEW_ENVS)}
  steps = max(steps_per_update(config), _SHORTEST_SEGMENT * MANY_ENVS)
  few, many = [with_envs(config, num_envs, steps)
               for num_envs in (FEW_ENVS, MANY_ENVS)]
  return {
      "training": (point(config, cores, {**few, **workers}),
                   point(config, cores, {**many, **workers})),
      "simulator": (point(config, cores, few, simulator=True),
                    point(config, cores, many, simulator=True))}


def combinations(config: config_lib.Config, cores: int) -> list[Point]:
  """Return all combinations of workers and threads to choose from.

  Args:
    config: Configuration to change.
    cores: Number of cores of the machine.
  """
  half = max(1, cores // 2)
  workers = {1, half, cores, 2 * cores, config.workers(cores)}
  return list(dict.fromkeys(
      point(config, cores, {"num_workers": number}, threads)
      for number in sorted(workers) if number <= config.num_envs
      for threads in sorted({1, half, cores})))


def _doublings(first: int, last: int) -> list[int]:
  return [first * 2**k for k in range((last // first).bit_length())]
