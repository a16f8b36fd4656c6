"""Whether an exported policy does what the policy in training does."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

import gymnasium
import numpy as np
import tensorflow as tf

from agents import errors
from agents import spaces
from agents.environments.data import episodes
from agents.environments.making import action_scaling
from agents.environments.making import make
from agents.export import formats
from agents.export import numpy_player
from agents.export import policy as policy_lib
from agents.ops import random

EPISODES = 10
TOLERANCE = 1e-5
_MOST_ROWS = 2000  # Of what is compared,
_AT_ONCE = 32  # and how many of them together.
_MOST_TIES = 1e-3  # Share of choices that rounding may decide.
_TIMED = 200


class Step(NamedTuple):
  """What a policy was given and what it did, by name, without a batch."""

  inputs: policy_lib.Arrays
  outputs: policy_lib.Arrays


class Recorded:
  """Some steps from all of a stretch, no more than memory bears."""

  def __init__(self):
    self.steps: list[Step] = []
    self._every = 1
    self._seen = 0

  def add(self, step: Step):
    if self._seen % self._every == 0:
      self.steps.append(step)
      if len(self.steps) == 2 * _MOST_ROWS:
        self.steps = self.steps[::2]
        self._every *= 2
    self._seen += 1


class Found(NamedTuple):
  """How an exported policy differs from that in training."""

  difference: float  # The largest of all numbers, in their own units.
  choices: float  # Share of steps in which another choice was made.
  returns: list[float]
  milliseconds: float  # For one action.

  def same(self, returns: Sequence[float]) -> bool:
    """Whether this is the policy that earned these in training's graph."""
    return (self.difference <= TOLERANCE and self.choices <= _MOST_TIES
            and same(self.returns, returns))


def in_training(policy: policy_lib.Policy) -> formats.Run:
  """Return what acts as in training, actions converted as there."""
  algorithm, action_space = policy.algorithm, policy.action_space
  kind, _ = spaces.dtype(action_space, acting=True)
  observed, _ = spaces.dtype(policy.observation_space)
  convert = action_scaling.action_converter(action_space)
  act = tf.function(algorithm.act, autograph=False)
  actions = [name for name, field in policy.outputs.items()
             if field.role == "action"]
  def run(inputs):
    parts = [inputs[name] for name, field in policy.inputs.items()
             if field.role == "observation"]
    array = parts[0]
    if spaces.composite(policy.observation_space):
      array = np.zeros(len(parts[0]), observed)
      for column, part in zip(spaces.columns(array), parts, strict=True):
        column[...] = part
    observ, given = tf.constant(spaces.as_bytes(array)), {
        name: tf.constant(inputs[name]) for name in policy.states}
    noise = inputs.get("noise")
    action, state = act(observ, policy.remembered(observ, given),
                        None if noise is None else tf.constant(noise))
    rows = [spaces.values(action_space, row) for row in convert(
        spaces.from_bytes(action.numpy(), kind))]
    outputs = dict(zip(actions, map(np.array, zip(*rows, strict=True)),
                       strict=True))
    return {**outputs, **{
        f"next_{name}": tensor.numpy()
        for name, tensor in policy_lib.by_name(state).items()}}
  return run


def play(policy: policy_lib.Policy, run: formats.Run,
         record: Callable[[Step], Any] = lambda step: None) -> list[float]:
  """Return the returns of the first episodes of the run's evaluations.

  Raises:
    EnvironmentsError: If the environment fails.
  """
  config, returns = policy.config, []
  env = make.MakeEnv(config.env)()
  for index in range(EPISODES):
    seed = episodes.episode_seed(
        random.stream(config.seed, "eval"), index, 0)
    noise = np.random.default_rng(seed)
    observ, _ = env.reset(seed=seed)
    state = {name: np.zeros([1, *policy.inputs[name].shape],
                            policy.inputs[name].dtype)
             for name in policy.states}
    total, ended = 0.0, False
    while not ended:
      inputs = {**_observed(policy, observ), **state}
      if policy.sampled:
        inputs["noise"] = draw(noise, policy.inputs["noise"], 1)
      outputs = run(inputs)
      record(Step(inputs, outputs))
      state = {name: outputs[f"next_{name}"] for name in policy.states}
      action = _action(policy, outputs)
      try:
        observ, reward, terminated, truncated, _ = env.step(action)
      except Exception as error:
        raise errors.EnvironmentsError(
            f"{config.env.id} failed in an episode with seed {seed}, with "
            f"action {action!r}: {error!r}") from error
      total += float(reward)
      ended = terminated or truncated
    returns.append(total)
  env.close()
  return returns


def draw(rng: np.random.Generator, field: policy_lib.Field, amount: int
         ) -> np.ndarray:
  """Return noise for so many actions."""
  return numpy_player.draw(rng, field.drawn, amount).astype(field.dtype)


def examine(policy: policy_lib.Policy, run: formats.Run,
            steps: Sequence[Step]) -> Found:
  """Compare an exported policy with steps of that in training, and time it."""
  difference, others = 0.0, 0
  for first in range(0, len(steps), _AT_ONCE):
    some = steps[first:first + _AT_ONCE]
    found = run(_stacked([step.inputs for step in some]))
    differ = np.zeros(len(some), bool)
    for name, array in _stacked([step.outputs for step in some]).items():
      if array.dtype.kind != "f":
        differ |= (found[name] != array).reshape(len(some), -1).any(-1)
      elif array.size:
        units = np.maximum(_units(policy.outputs[name]), np.abs(array))
        difference = max(difference, float(
            (np.abs(found[name] - array) / units).max()))
    others += int(differ.sum())
  return Found(
      difference, others / len(steps), play(policy, run), 1000 * _seconds(
          lambda index: run(steps[index % len(steps)].inputs)))


def _units(field: policy_lib.Field) -> np.ndarray:
  """Return half of the range of numbers, if there is one above 2, else 1."""
  low, high = (np.array(bound, float) for bound in (field.low, field.high))
  return np.fmax(1, high / 2 - low / 2)


def _stacked(rows: Sequence[policy_lib.Arrays]) -> policy_lib.Arrays:
  return {name: np.concatenate([row[name] for row in rows])
          for name in rows[0]}


def same(returns: Sequence[float], others: Sequence[float]) -> bool:
  """Whether the means differ by no more than chance, in a chaotic simulator.
  """
  if np.allclose(returns, others, rtol=1e-3):
    return True
  error = np.hypot(*(np.std(x, ddof=1) / len(x) ** 0.5
                     for x in (returns, others)))
  return bool(abs(np.mean(returns) - np.mean(others)) <= 3 * error)


def _seconds(act: Callable[[int], Any]) -> float:
  seconds = []
  for index in range(_TIMED):
    start = time.perf_counter()
    act(index)
    seconds.append(time.perf_counter() - start)
  return statistics.median(seconds)


def _observed(policy: policy_lib.Policy, observ: Any) -> policy_lib.Arrays:
  parts = spaces.values(policy.observation_space, observ)
  names = [name for name, field in policy.inputs.items()
           if field.role == "observation"]
  return {name: np.asarray(part, policy.inputs[name].dtype)[None]
          for name, part in zip(names, parts, strict=True)}


def _action(policy: policy_lib.Policy, outputs: policy_lib.Arrays) -> Any:
  """Return what the environment takes."""
  parts = iter([outputs[name][0] for name, field in policy.outputs.items()
                if field.role == "action"])
  return _assembled(policy.action_space, parts)


def _assembled(space: gymnasium.Space, parts: Any) -> Any:
  if isinstance(space, gymnasium.spaces.Dict):
    return {key: _assembled(part, parts) for key, part in space.items()}
  if isinstance(space, gymnasium.spaces.Tuple):
    return tuple(_assembled(part, parts) for part in space.spaces)
  part = next(parts)
  if isinstance(space, gymnasium.spaces.Discrete):
    return int(part)
  return part.astype(space.dtype)
