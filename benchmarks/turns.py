"""Compares two systems that take turns, each in a process of its own."""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Callable


def compare(module: str, text: str,
            systems: dict[str, tuple[Callable[[int], float], int]],
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
  if (load := os.getloadavg()[0]) > 0.3:
    print(f"Warning: the machine is busy (load {load:.1f}).")
  speeds: dict[str, list[float]] = {name: [] for name in systems}
  for repeat in range(args.repeats):
    for name in systems:
      output = subprocess.run(
          [sys.executable, "-m", module, "--only", name], check=True,
          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
      speeds[name].append(float(output.split()[-1]))
    print(f"{repeat + 1}: " + ", ".join(
        f"{name} {values[-1]:,.0f}" for name, values in speeds.items())
        + " steps/s", flush=True)
  for name, values in speeds.items():
    print(f"{name}: median {statistics.median(values):,.0f} steps/s")
  ratios = [scale * first / second
            for first, second in zip(*speeds.values(), strict=True)]
  print(f"{title}: median {statistics.median(ratios):.1f}, between "
        f"{min(ratios):.1f} and {max(ratios):.1f}, on {os.cpu_count()} cores")
