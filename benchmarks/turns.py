"""Compares two systems that take turns, each in a process of its own."""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Callable
from collections.abc import Mapping

from benchmarks import machine


def compare(module: str, text: str,
            systems: Mapping[str, tuple[Callable[[int], float], int]],
            title: str, scale: float = 1.0):
  """Run the command line of a benchmark.

  Args:
    module: Name of the benchmark's module.
    text: What `--help` says first.
    systems: Two functions from an amount of work to steps per second, by name,
      each with the amount to give it.
    title: What the ratio is of.
    scale: Factor on the ratio of the first to the second.
  """
  parser = argparse.ArgumentParser(description=text)
  parser.add_argument("--repeats", type=int, default=5)
  parser.add_argument("--only", choices=systems, help=argparse.SUPPRESS)
  args = parser.parse_args()
  if args.only:
    function, amount = systems[args.only]
    print(function(amount))
    return
  machine.warn_if_busy()
  speeds: dict[str, list[float]] = {name: [] for name in systems}
  for repeat in range(args.repeats):
    for name in systems:
      output = machine.python("-m", module, "--only", name)
      speeds[name].append(float(output.split()[-1]))
    print(f"{repeat + 1}: " + ", ".join(
        f"{name} {values[-1]:,.0f}" for name, values in speeds.items())
        + " steps/s", flush=True)
  for name, values in speeds.items():
    print(f"{name}: median {statistics.median(values):,.0f} steps/s")
  ratios = [scale * first / second
            for first, second in zip(*speeds.values(), strict=True)]
  print(f"{title}: median {statistics.median(ratios):.2f}, between "
        f"{min(ratios):.2f} and {max(ratios):.2f}, on {os.cpu_count()} cores")
