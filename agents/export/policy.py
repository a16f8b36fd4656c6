"""Builds one function of raw observations from a trained policy.

The function normalizes observations, applies the networks, and converts actions
to the ranges of the environment's action space.
"""

import dataclasses
import functools
import pathlib
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import tensorflow as tf
from gymnasium import spaces as gym
from tensorflow.python.framework import convert_to_constants

from agents import build, spaces, types
from agents import config as config_lib
from agents.commands.shared import rollout_policy
from agents.environments.making import make
from agents.export import signature
from agents.networks import observation_parts
from agents.ops import tensor_bytes
from agents.training import trainer
from agents.training.run_folder import checkpoint, run_folder

Arrays = dict[str, np.ndarray]
# Maps inputs [N, ...] by name to outputs [N, ...] by name.
PolicyFunction = Callable[[Arrays], Arrays]
# Meaning of each tensor of the state in the README, see `_state_names`.
_MEANINGS = {
  "frames": "latest observations of the episode",
  "frames_begun": "whether the episode had begun",
  "memory": "memory of the recurrent network",
}


@dataclasses.dataclass(frozen=True)
class ExportablePolicy:
  """Policy of a checkpoint, with the signature of the exported function."""

  config: config_lib.Config
  step: int  # Environment steps of training before the checkpoint.
  algorithm: trainer.Algorithm
  observation_space: gymnasium.Space
  # Leaves of the observation space that the policy receives.
  observation_leaves: list[spaces.Leaf]
  action_space: gymnasium.Space
  inputs: dict[str, signature.SignatureField]
  outputs: dict[str, signature.SignatureField]

  def names(self, role: str) -> list[str]:
    """Returns the names of all inputs or outputs with a role.

    Args:
      role: "observation", "state" or "noise" for inputs, "action" for outputs.
    """
    fields = self.outputs if role == "action" else self.inputs
    return [name for name, field in fields.items() if field.role == role]

  @property
  def specs(self) -> list[tf.TensorSpec]:
    """Specifications of the input tensors, for batches of any size."""
    return [
      tf.TensorSpec([None, *field.shape], field.dtype, name) for name, field in self.inputs.items()
    ]

  @functools.cached_property
  def frozen(self) -> Any:
    """Concrete function in which all variables are constants."""
    act = tf.function(self._act, self.specs, autograph=False)
    return convert_to_constants.convert_variables_to_constants_v2(act.get_concrete_function())

  def named_function(self) -> Any:
    """Returns a `tf.function` that maps named inputs to a dict of outputs."""
    frozen = self.frozen

    @tf.function(autograph=False, input_signature=self.specs)
    def act(*inputs: tf.Tensor) -> dict[str, tf.Tensor]:
      return dict(zip(self.outputs, frozen(*inputs), strict=True))

    return act

  def _act(self, *inputs: tf.Tensor) -> list[tf.Tensor]:
    """Returns the tensors of all outputs, in the order of `outputs`."""
    tensors = dict(zip(self.inputs, inputs, strict=True))
    observ = self._observation([tensors[name] for name in self.names("observation")])
    action, state = self.algorithm.act(observ, self.policy_state(tensors), tensors.get("noise"))
    leaves = spaces.leaves(self.action_space, is_action=True)
    parts = tensor_bytes.unpack(action, leaves) if spaces.composite(self.action_space) else [action]
    actions = [_to_env(leaf.space, part) for leaf, part in zip(leaves, parts, strict=True)]
    return [*actions, *state_tensors(state).values()]

  def _observation(self, parts: list[tf.Tensor]) -> tf.Tensor:
    """Returns observations of shape [N, ...] for the algorithm.

    Args:
      parts: Tensor of shape [N, ...] for each of `observation_leaves`. Zeros
        replace the parts that the policy does not receive.
    """
    if not spaces.composite(self.observation_space):
      return parts[0]
    num_rows = tf.shape(parts[0])[:1]
    by_path = dict(zip((leaf.path for leaf in self.observation_leaves), parts, strict=True))
    return tensor_bytes.pack(
      [
        by_path[leaf.path]
        if leaf.path in by_path
        else tf.zeros(tf.concat([num_rows, leaf.shape], 0), leaf.dtype)
        for leaf in spaces.leaves(self.observation_space)
      ]
    )

  def policy_state(self, tensors: dict[str, Any]) -> Any:
    """Returns the state that the algorithm expects.

    Args:
      tensors: Inputs of shape [N, ...] by name. Inputs with the role "state"
        become the non-empty tensors of the state, see `state_tensors`.

    Returns:
      State of the policy in N episodes.
    """
    state = self.algorithm.initial_state(1)
    return tf.nest.pack_sequence_as(
      state,
      [
        tensors.get(name, empty)
        for name, empty in zip(_state_names(state), tf.nest.flatten(state), strict=True)
      ],
    )


def state_tensors(state: Any) -> dict[str, tf.Tensor]:
  """Returns the non-empty tensors of an algorithm's state by name.

  Args:
    state: State that `Algorithm.act` or `Algorithm.initial_state` returned.
  """
  tensors = zip(_state_names(state), tf.nest.flatten(state), strict=True)
  return {name: tensor for name, tensor in tensors if name}


def _state_names(state: Any) -> list[str]:
  """Returns the name of each tensor of a state, "" for empty tensors."""
  num_tensors = len(tf.nest.flatten(state))
  if not isinstance(state, types.PolicyState):
    return [f"state_{index}" for index in range(num_tensors)]
  names = []
  if state.recent:
    names = ["frames", "frames_begun"] if state.recent.observ.shape[1] else ["", ""]
  return [*names, "memory"][:num_tensors]


def _meaning(name: str) -> str:
  return _MEANINGS.get(name, "state of the policy")


def load(folder: run_folder.RunFolder, path: pathlib.Path, sampled: bool) -> ExportablePolicy:
  """Loads the policy of a checkpoint.

  Args:
    folder: Run folder.
    path: Path of the checkpoint.
    sampled: Whether the policy samples actions with noise, which is an
      additional input. Otherwise actions are the mode of the distribution.

  Returns:
    Policy with the weights of the checkpoint.

  Raises:
    ConfigError: If the checkpoint belongs to another model, or the algorithm
      does not define the distributions of its noise.
  """
  config = folder.config
  env = make.MakeEnv(config.env)()
  observation_space, action_space = env.observation_space, env.action_space
  env.close()
  algorithm = build.algorithm(config, observation_space, action_space)
  step = checkpoint.step_of(path)
  check = functools.partial(trainer.check_sizes, algorithm)
  rollout_policy.load(algorithm, step, checkpoint.load_variables(path, check))
  states = {
    name: signature.SignatureField(
      "state",
      tensor.dtype.name,
      tuple(tensor.shape[1:]),
      f"{_meaning(name)} before this step: zeros at the start of an "
      f"episode, then `next_{name}` of the previous step",
    )
    for name, tensor in state_tensors(algorithm.initial_state(1)).items()
  }
  leaves = observation_parts.policy_leaves(observation_space, config.network)
  inputs = signature.space_fields("observation", leaves) | states
  if sampled:
    distributions = getattr(getattr(algorithm, "distribution", None), "noise_kinds", None)
    if distributions is None:
      raise config_lib.ConfigError(
        f"--actions sampled: {config.algorithm.type} has no `distribution` "
        "with `noise_kinds`, the distributions of the noise. Use --actions "
        "mean."
      )
    inputs["noise"] = signature.noise_field(distributions)
  outputs = signature.space_fields("action", spaces.leaves(action_space, True)) | {
    f"next_{name}": field._replace(
      about=f"{_meaning(name)} after this step: pass it as `{name}` at the next step"
    )
    for name, field in states.items()
  }
  return ExportablePolicy(
    config, step, algorithm, observation_space, leaves, action_space, inputs, outputs
  )


def _to_env(space: gymnasium.Space, action: tf.Tensor) -> tf.Tensor:
  """Converts actions as `action_scaling` does, with TensorFlow operations."""
  if not isinstance(space, gym.Box):
    return action + np.int64(getattr(space, "start", 0))
  # Rounds bounds toward the inside of the space, because float32 can't
  # represent all float64 bounds, and actions must not exceed the bounds.
  low, high = space.low.astype(np.float32), space.high.astype(np.float32)
  low = np.where(low < space.low, np.nextafter(low, np.float32(np.inf)), low)
  high = np.where(high > space.high, np.nextafter(high, np.float32(-np.inf)), high)
  bounded = np.isfinite(low) & np.isfinite(high)
  zero, one = np.float32(0), np.float32(1)
  clipped = tf.clip_by_value(action, np.where(bounded, -one, low), np.where(bounded, one, high))
  with np.errstate(invalid="ignore"):
    scale = np.where(bounded, high / 2 - low / 2, one)
    shift = np.where(bounded, high / 2 + low / 2, zero)
  return tf.clip_by_value(clipped * scale + shift, low, high)
