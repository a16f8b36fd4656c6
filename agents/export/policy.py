"""A run's policy as one function, from raw observations to the environment's
own actions."""

from __future__ import annotations

import dataclasses
import functools
import pathlib
import re
from typing import Any
from typing import NamedTuple

import gymnasium
import numpy as np
import tensorflow as tf
from gymnasium import spaces as gym
from tensorflow.python.framework import convert_to_constants

from agents import build
from agents import config as config_lib
from agents import spaces
from agents import types
from agents.commands import rollout_policy
from agents.environments.making import make
from agents.ops import packing
from agents.simulation import frame_stack
from agents.training import trainer
from agents.training.run_folder import checkpoint
from agents.training.run_folder import run_folder

Arrays = dict[str, np.ndarray]


class Field(NamedTuple):
  """An input or an output."""

  role: str  # observation, state, noise or action.
  dtype: str
  shape: tuple[int, ...]  # Without the batch, which comes first.
  about: str
  path: tuple[str, ...] = ()  # Keys and indices that lead to a part.
  low: Any = None  # One bound for all numbers, or one for each; None: without.
  high: Any = None
  # What noise is drawn from, one after the other, see `ActionDistribution.noise_kinds`.
  drawn: tuple[tuple[str, int], ...] = ()


@dataclasses.dataclass(frozen=True)
class Policy:
  """What is exported, and what it is to be compared with."""

  config: config_lib.Config
  step: int  # Of training.
  algorithm: trainer.Algorithm
  observation_space: gymnasium.Space
  action_space: gymnasium.Space
  inputs: dict[str, Field]
  outputs: dict[str, Field]

  @property
  def sampled(self) -> bool:
    return "noise" in self.inputs

  @property
  def states(self) -> list[str]:
    """Names of what is remembered from step to step."""
    return [name for name, field in self.inputs.items()
            if field.role == "state"]

  @property
  def specs(self) -> list[tf.TensorSpec]:
    """Of the inputs, with a batch of any size."""
    return [tf.TensorSpec([None, *field.shape], field.dtype, name)
            for name, field in self.inputs.items()]

  @functools.cached_property
  def frozen(self) -> Any:
    """A concrete function with constants in place of variables.

    Its inputs and its outputs are in the order of those here.
    """
    act = tf.function(self._act, self.specs, autograph=False)
    return convert_to_constants.convert_variables_to_constants_v2(
        act.get_concrete_function())

  def _act(self, *inputs: tf.Tensor) -> list[tf.Tensor]:
    given = dict(zip(self.inputs, inputs, strict=True))
    observed = [value for name, value in given.items()
                if self.inputs[name].role == "observation"]
    observ = (packing.pack(observed) if spaces.composite(
        self.observation_space) else observed[0])
    action, state = self.algorithm.act(
        observ, self.remembered(observ, given), given.get("noise"))
    leaves = spaces.leaves(self.action_space, acting=True)
    parts = (packing.unpack(action, leaves) if spaces.composite(
        self.action_space) else [action])
    actions = [_to_env(leaf.space, part) for leaf, part in zip(
        leaves, parts, strict=True)]
    return [*actions, *by_name(state).values()]

  def remembered(self, observ: tf.Tensor, given: dict[str, Any]) -> Any:
    """Return the algorithm's state for observations [N, ...], see `by_name`."""
    state = self.algorithm.initial_state(1)
    if not isinstance(state, types.PolicyState):
      return tf.nest.pack_sequence_as(
          state, [given[name] for name in self.states])
    recent = state.recent
    if recent:
      nothing = observ[:, None][:, :0], tf.zeros(tf.shape(observ)[:1], tf.bool)
      recent = frame_stack.Recent(given.get("frames", nothing[0]),
                             given.get("frames_begun", nothing[1]))
    return types.PolicyState(recent, given.get("memory", ()))


def by_name(state: Any) -> dict[str, tf.Tensor]:
  """Return what there is in an algorithm's state."""
  if not isinstance(state, types.PolicyState):
    return {f"state_{index}": tensor
            for index, tensor in enumerate(tf.nest.flatten(state))}
  found = {}
  if state.recent and state.recent.observ.shape[1]:
    found = {"frames": state.recent.observ, "frames_begun": state.recent.begun}
  return found if isinstance(state.cell, tuple) else {
      **found, "memory": state.cell}


def load(folder: run_folder.RunFolder, path: pathlib.Path, sampled: bool
         ) -> Policy:
  """Return the policy of a checkpoint.

  Args:
    folder: Of the run.
    path: Of the checkpoint.
    sampled: Whether actions are sampled, by noise that is an input; otherwise
      they are the distribution's mode.
  Raises:
    ConfigError: If the checkpoint is of another model, or nobody knows how its
      noise is drawn.
  """
  config = folder.config
  env = make.MakeEnv(config.env)()
  observation_space, action_space = env.observation_space, env.action_space
  env.close()
  algorithm = build.algorithm(config, observation_space, action_space)
  step = checkpoint.step_of(path)
  rollout_policy.load(algorithm, step, checkpoint.load(path)[0])
  inputs: dict[str, Field] = {}
  outputs: dict[str, Field] = {}
  _add(inputs, "observation", spaces.leaves(observation_space))
  fields = {
      name: Field("state", tensor.dtype.name, tuple(tensor.shape[1:]),
                  "zeros where an episode begins, then what came out")
      for name, tensor in by_name(algorithm.initial_state(1)).items()}
  inputs.update(fields)
  if sampled:
    kinds = getattr(getattr(algorithm, "distribution", None), "noise_kinds", None)
    if kinds is None:
      raise config_lib.ConfigError(
          f"--actions sampled: {config.algorithm.type} has no head that says "
          "how noise is drawn. Use --actions mean.")
    size = sum(size for _, size in kinds)
    inputs["noise"] = Field("noise", "float32", (size,), ", then ".join(
        f"{size} of {kind} distribution" for kind, size in kinds)
                            + "; new for each step", drawn=kinds)
  _add(outputs, "action", spaces.leaves(action_space, acting=True))
  outputs.update({f"next_{name}": field for name, field in fields.items()})
  return Policy(config, step, algorithm, observation_space,
                action_space, inputs, outputs)


def _add(fields: dict[str, Field], role: str, leaves: list[spaces.Leaf]):
  """Add simple spaces by names that all programs can take."""
  for leaf in leaves:
    stem = re.sub(r"[^a-zA-Z0-9]", "_", "_".join([role, *leaf.path]))
    name, number = stem, 1
    while name.lower() in map(str.lower, fields):  # TensorFlow takes no cases.
      number += 1
      name = f"{stem}_{number}"
    fields[name] = _field(role, leaf)


def _field(role: str, leaf: spaces.Leaf) -> Field:
  space, low, high = leaf.space, None, None
  about = f"as in {space}"
  if isinstance(space, gym.Discrete):
    low = int(space.start)
    high = low + int(space.n) - 1
    about = f"a choice, from {low} to {high}"
  elif isinstance(space, gym.Box):
    low, high = _bounds(space.low), _bounds(space.high)
    about = ("in the environment's own units and order, from "
             f"{space.low.min():g} to {space.high.max():g}")
  return Field(role, leaf.dtype.name, leaf.shape, about, leaf.path, low, high)


def _bounds(bounds: np.ndarray) -> Any:
  """Return bounds as JSON knows them, without infinities."""
  found = [float(x) if np.isfinite(x) else None for x in bounds.flat]
  if len(set(found)) == 1:
    return found[0]
  return np.reshape(np.array(found, object), bounds.shape).tolist()


def _to_env(space: gymnasium.Space, action: tf.Tensor) -> tf.Tensor:
  """Do as `conversion.action_converter`, for a simple space."""
  if isinstance(space, gym.Discrete):
    return action + int(space.start)
  if isinstance(space, gym.MultiDiscrete):
    return action + space.start.astype(np.int64)
  if isinstance(space, gym.MultiBinary):
    return action
  assert isinstance(space, gym.Box)
  low, high = _within(space)
  bounded = np.isfinite(low) & np.isfinite(high)
  one = np.float32(1)
  clipped = tf.clip_by_value(
      action, np.where(bounded, -one, low), np.where(bounded, one, high))
  if not bounded.any():
    return clipped
  with np.errstate(invalid="ignore"):
    scale = np.where(bounded, high / 2 - low / 2, one)
    shift = np.where(bounded, high / 2 + low / 2, 0 * one)
  return tf.clip_by_value(clipped * scale + shift, low, high)


def _within(space: gym.Box) -> tuple[np.ndarray, np.ndarray]:
  """Return float32 bounds that lie within those of a space."""
  infinity = np.float32(np.inf)
  low, high = space.low.astype(np.float32), space.high.astype(np.float32)
  return (np.where(low < space.low, np.nextafter(low, infinity), low),
          np.where(high > space.high, np.nextafter(high, -infinity), high))
