"""What a benchmark of one config measures: a few settings changed at a time."""

from __future__ import annotations

import functools
import json
import math
from typing import Any
from typing import NamedTuple

from agents import config as config_lib

FEW_ENVS, MANY_ENVS = 8, 512  # Between these, memory is compared.
_LEAST_LENGTH = 8  # Steps of the shortest segment, if the config has longer.


class Point(NamedTuple):
  """One thing to measure, as the command line says it."""

  settings: tuple[str, ...] = ()  # Values of --set; empty: the config itself.
  threads: int | None = None  # Of TensorFlow, for one operation; None: cores.
  simulator: bool = False  # Whether only the simulator is stepped.

  @property
  def args(self) -> list[str]:
    """Arguments of `benchmarks.speed` and, but for the simulator, train.py."""
    args = [part for text in self.settings for part in ("--set", text)]
    return [*args, "--simulator"] if self.simulator else args

  @property
  def variables(self) -> dict[str, str]:
    """Environment variables of the process."""
    return {"TF_NUM_INTRAOP_THREADS": str(self.threads)} if self.threads else {}


def point(config: config_lib.Config, cores: int, changes: dict[str, Any],
          threads: int | None = None, simulator: bool = False) -> Point:
  """Return a point without what the config does anyway.

  So the same work is the same point, and is measured once.
  """
  settings = []
  for key, value in changes.items():
    own: Any = functools.reduce(getattr, key.split("."), config)
    if key == "num_workers":
      own = config.workers(cores)
    if isinstance(own, tuple):
      own = list(own)
    if value != own:
      settings.append(f"{key}={json.dumps(value, separators=(',', ':'))}")
  return Point(
      tuple(settings), None if threads == cores else threads, simulator)


def with_envs(config: config_lib.Config, amount: int, steps: int | None = None
              ) -> dict[str, Any]:
  """Return what to change for another number of environments.

  Args:
    config: What to change.
    amount: Number of environments.
    steps: What one update learns from, if possible; by default, as much as
      before. Episodes stay as many as before in any case.
  """
  algorithm = config.algorithm
  if not algorithm.segment_length:
    return {"num_envs": amount, "algorithm.update_every": max(
        algorithm.update_every or 1, amount)}
  # Segments of all environments together must divide into minibatches.
  minibatch = algorithm.minibatch_size or 1
  unit = minibatch // math.gcd(minibatch, amount)
  wanted = (steps or steps_per_update(config)) / amount
  least = min(_LEAST_LENGTH, algorithm.segment_length)
  units = max(round(wanted / unit), math.ceil(least / unit))
  return {"num_envs": amount, "algorithm.segment_length": unit * units}


def sweeps(config: config_lib.Config, cores: int, quick: bool = False
           ) -> dict[str, dict[int, Point]]:
  """Return the points of every plot, by their place on its x-axis.

  The config's own values are among them.
  """
  own = own_values(config, cores)
  def every(stride, values):
    return values[::stride] if quick else values
  def sweep(name, values, changes):
    return {value: point(config, cores, changes(value))
            for value in sorted({*values, *own[name]})}
  amounts = {1, cores, cores + 1, *(() if quick else (
      *_doublings(1, 2 * cores), 2 * cores))}
  network, steps = config.network, steps_per_update(config)
  return {
      "envs": sweep(
          "envs", every(3, _doublings(1, 512)),
          lambda amount: with_envs(config, amount)),
      "workers": sweep(
          "workers", [x for x in amounts if x <= config.num_envs],
          lambda amount: {"num_workers": amount}),
      "width": sweep(
          "width", every(2, _doublings(32, 512)), lambda units: {
              "network.policy_layers": [units] * len(network.policy_layers),
              "network.value_layers": [units] * len(network.value_layers)}),
      "minibatch": sweep(
          "minibatch", [size for size in every(2, _doublings(32, 2048))
                        if steps % size == 0],
          lambda size: {"algorithm.minibatch_size": size})}


def own_values(config: config_lib.Config, cores: int) -> dict[str, list[int]]:
  """Return where on the axis of every plot the config lies, where it does."""
  widths = {*config.network.policy_layers, *config.network.value_layers}
  minibatch = config.algorithm.minibatch_size or steps_per_update(config)
  return {"envs": [config.num_envs], "workers": [config.workers(cores)],
          "width": list(widths) if len(widths) == 1 else [],
          "minibatch": [minibatch] if minibatch else []}


def steps_per_update(config: config_lib.Config) -> int:
  """Return what one update learns from; 0 for whole episodes."""
  return config.num_envs * (config.algorithm.segment_length or 0)


def memory(config: config_lib.Config, cores: int
           ) -> dict[str, tuple[Point, Point]]:
  """Return points with few and with many environments, for their memory."""
  # As many either way, or their own memory would be counted, too.
  amount = {"num_workers": min(config.workers(cores), FEW_ENVS)}
  # An update that learns from more steps needs memory for them.
  steps = max(steps_per_update(config), _LEAST_LENGTH * MANY_ENVS)
  few, many = [with_envs(config, envs, steps)
               for envs in (FEW_ENVS, MANY_ENVS)]
  return {
      "training": (point(config, cores, {**few, **amount}),
                   point(config, cores, {**many, **amount})),
      "simulator": (point(config, cores, few, simulator=True),
                    point(config, cores, many, simulator=True))}


def combinations(config: config_lib.Config, cores: int) -> list[Point]:
  """Return what a recommendation chooses among.

  That is any combination of workers and threads, and the other choice of double
  buffering.
  """
  half = max(1, cores // 2)
  amounts = {1, half, cores, 2 * cores, config.workers(cores)}
  combined = [point(config, cores, {"num_workers": amount}, threads)
              for amount in sorted(amounts) if amount <= config.num_envs
              for threads in sorted({1, half, cores})]
  if config.num_envs % 2 == 0 and config.algorithm.segment_length:
    combined.append(point(
        config, cores, {"double_buffering": not config.double_buffering}))
  return list(dict.fromkeys(combined))


def other_envs(config: config_lib.Config, cores: int) -> list[Point]:
  """Return half and twice the environments, which learn differently."""
  amounts = max(1, config.num_envs // 2), 2 * config.num_envs
  return [point(config, cores, with_envs(config, amount))
          for amount in amounts]


def _doublings(first: int, last: int) -> list[int]:
  return [first * 2**k for k in range((last // first).bit_length())]
