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

from agents import spaces
from agents.environments import block
from agents.environments import episodes
from agents.environments import make
from agents.export import formats
from agents.export import player
from agents.export import policy as policy_lib
from agents.ops import random

EPISODES = 10
TOLERANCE = 1e-5
_MOST_ROWS = 2000  # Of what is compared.
_TIMED = 200


class Step(NamedTuple):
  """What a policy was given and what it did, by name, without a batch."""

  inputs: policy_lib.Arrays
  outputs: policy_lib.Arrays


class Found(NamedTuple):
  """How an exported policy differs from that in training."""

  difference: float  # The largest, of all outputs.
  returns: list[float]
  milliseconds: float  # For one action.


def in_training(policy: policy_lib.Policy) -> formats.Run:
  """Return what acts as in training, actions converted as there."""
  algorithm, action_space = policy.algorithm, policy.action_space
  kind, _ = spaces.dtype(action_space, acting=True)
  observed, _ = spaces.dtype(policy.observation_space)
  convert = block.action_converter(action_space)
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
  """Return the returns of the first episodes of the run's evaluations."""
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
      observ, reward, terminated, truncated, _ = env.step(action)
      total += float(reward)
      ended = terminated or truncated
    returns.append(total)
  env.close()
  return returns


def draw(rng: np.random.Generator, field: policy_lib.Field, amount: int
         ) -> np.ndarray:
  """Return noise for so many actions."""
  return player.draw(rng, field.drawn, amount).astype(field.dtype)


def examine(policy: policy_lib.Policy, run: formats.Run,
            recorded: Sequence[Step]) -> Found:
  """Compare an exported policy with steps of that in training, and time it."""
  steps = recorded[::-(-len(recorded) // _MOST_ROWS)]
  def stacked(rows):
    return {name: np.concatenate([row[name] for row in rows])
            for name in rows[0]}
  expected = stacked([step.outputs for step in steps])
  found = run(stacked([step.inputs for step in steps]))
  difference = max(float(np.abs(
      found[name].astype(np.float64) - array.astype(np.float64)).max())
                   for name, array in expected.items() if array.size)
  return Found(difference, play(policy, run), 1000 * _seconds(
      lambda index: run(steps[index % len(steps)].inputs)))


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
