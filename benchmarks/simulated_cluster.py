"""What 1, 10 or 100 machines would make of a run, by a small simulation.

    python -m benchmarks.simulated_cluster
    python -m benchmarks.simulated_cluster --set latency=50e-6 --set jitter=0.1

An update is played through for every machine: batched steps whose times vary,
the wait for the slowest, what they tell each other, and learning. All constants
are seconds, measured on one core, see docs/scaling.md; --set changes them.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence

import numpy as np

from benchmarks import tables

_MACHINES = 1, 2, 10, 100
_UPDATES = 20  # That are played through.


@dataclasses.dataclass(frozen=True)
class Task:
  """What a task costs one core, and what an update learns from."""

  step: float  # Of one environment.
  batched_step: float  # Of all together: acting, and crossing into Python.
  learn: float  # Of one step, all epochs.
  step_bytes: int  # Told of each step.
  weights: int  # Numbers that are learned.
  envs: int = 128  # Of all machines together.
  length: int = 16  # Steps of each in an update.
  minibatch: int = 128
  epochs: int = 10

  @property
  def steps(self) -> int:
    return self.envs * self.length

  def times(self, factor: int) -> Task:
    """Return the task with a larger batch."""
    return dataclasses.replace(
        self, envs=self.envs * factor, minibatch=self.minibatch * factor)


@dataclasses.dataclass(frozen=True)
class Constants:
  """What does not depend on the task."""

  jitter: float = 0.05  # Of collecting, its standard deviation.
  rest: float = 4.7e-3  # Of an update, on one machine.
  packing: float = 3e-3  # More of it on several.
  latency: float = 0.8e-3  # Of a message, with TensorFlow's part in it.
  reduction: float = 0.7e-3  # The same of the sum of gradients.
  bandwidth: float = 0.6e9  # Bytes a second, from machine to machine.


TASKS = {
    # With 128 environments, and ten epochs of minibatches of 128.
    "light (HalfCheetah)": Task(42e-6, 0.73e-3, 14.5e-6, 150, 11_000),
    "medium (Ant)": Task(223e-6, 1.0e-3, 26.6e-6, 690, 23_000, minibatch=64),
    "heavy (10 ms a step)": Task(10e-3, 1.0e-3, 30e-6, 700, 30_000)}


def update(task: Task, machines: int, constants: Constants,
           rng: np.random.Generator, shared: bool = False
           ) -> dict[str, float]:
  """Return the seconds of the parts of an update.

  Machines stand in a ring: whatever all are told passes each of them.

  Args:
    task: With the batch of all machines together.
    machines: Their number.
    constants: What does not depend on the task.
    rng: Of the jitter.
    shared: Whether machines share the gradient steps.
  """
  c, hops = constants, machines - 1
  mean = task.length * (
      task.envs / machines * task.step + task.batched_step)
  collecting = mean * (1 + c.jitter * np.abs(rng.normal(size=machines)))
  parts = {"stepping": collecting.mean(),
           "waiting": collecting.max() - collecting.mean(), "telling": 0.0,
           "learning": task.learn * task.steps, "rest": c.rest}
  if not hops:
    return parts
  told = task.steps * task.step_bytes * hops / machines
  parts["telling"] = c.packing + 2 * hops * c.latency + told / c.bandwidth
  if shared:
    parts["learning"] /= machines
    steps = task.epochs * task.steps / task.minibatch
    passed = 4 * task.weights * 2 * hops / machines
    parts["telling"] += steps * (
        hops * c.reduction + passed / c.bandwidth)
  return parts


def simulate(task: Task, machines: int, constants: Constants,
             shared: bool = False) -> tuple[float, dict[str, float]]:
  """Return steps per second, and the share of each part in an update."""
  rng = np.random.default_rng(0)
  played = [update(task, machines, constants, rng, shared)
            for _ in range(_UPDATES)]
  total = sum(sum(parts.values()) for parts in played)
  return _UPDATES * task.steps / total, {
      name: sum(parts[name] for parts in played) / total for name in played[0]}


def main(argv: Sequence[str] | None = None):
  parser = argparse.ArgumentParser(
      description=__doc__.splitlines()[0],
      formatter_class=argparse.ArgumentDefaultsHelpFormatter)
  parser.add_argument(
      "--set", action="append", default=[], metavar="CONSTANT=VALUE",
      help=", ".join(f"{field.name} ({field.default})"
                     for field in dataclasses.fields(Constants)))
  args = parser.parse_args(argv)
  constants = Constants(**{
      name: float(value) for name, value in (
          text.split("=", 1) for text in args.set)})
  rows = []
  for name, task in TASKS.items():
    for what, grows, shared in (
        ("the same batch", False, False),
        ("a batch for each", True, False),
        ("a batch for each, gradients shared", True, True)):
      alone, _ = simulate(task, 1, constants)
      for machines in _MACHINES:
        if task.envs % machines and not grows:
          continue
        speed, shares = simulate(
            task.times(machines) if grows else task, machines, constants,
            shared)
        most = max(shares, key=lambda part: shares[part])
        rows.append([f"{name}, {what}", str(machines), f"{speed:,.0f}",
                     f"{speed / alone:.1f}", f"{most} {shares[most]:.0%}"])
  print(tables.markdown(
      ["task and batch", "machines", "steps/s", "times one", "most time"],
      rows))


if __name__ == "__main__":
  main()
