"""Plays evaluation episodes with the original or the exported policy."""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import tensorflow as tf

from agents import errors, spaces
from agents.environments.adapters import remote_env
from agents.environments.data import episode_data
from agents.environments.making import action_scaling, make
from agents.export import policy as policy_lib
from agents.export import signature
from agents.ops import random
from agents.translation import numpy_player
from agents.videos import render_pool

NUM_EPISODES = 10


def training_function(policy: policy_lib.ExportablePolicy) -> policy_lib.PolicyFunction:
  """Returns a function that runs the policy with the code of training.

  The function has the same signature as the exported function. Unlike the
  exported function, it stores nested observations and actions in structured
  arrays, and scales actions with NumPy.

  Args:
    policy: Policy to run.

  Returns:
    Function from inputs [N, ...] by name to outputs [N, ...] by name.
  """
  act = tf.function(policy.algorithm.act, autograph=False)
  observ_dtype, observ_shape = spaces.dtype(policy.observation_space)
  action_dtype, _ = spaces.dtype(policy.action_space, is_action=True)
  to_env = action_scaling.action_converter(policy.action_space)

  def run(inputs: policy_lib.Arrays) -> policy_lib.Arrays:
    parts = [inputs[name] for name in policy.names("observation")]
    observ = np.zeros((len(parts[0]), *observ_shape), observ_dtype)
    columns = zip(spaces.leaves(policy.observation_space), spaces.columns(observ), strict=True)
    visible = [column for leaf, column in columns if leaf in policy.observation_leaves]
    for column, part in zip(visible, parts, strict=True):
      column[...] = part
    action, state = act(spaces.as_bytes(observ), policy.policy_state(inputs), inputs.get("noise"))
    rows = [
      spaces.values(policy.action_space, row, "action")
      for row in to_env(spaces.from_bytes(action.numpy(), action_dtype))
    ]
    actions = map(np.array, zip(*rows, strict=True))
    return {
      **dict(zip(policy.names("action"), actions, strict=True)),
      **{
        f"next_{name}": tensor.numpy() for name, tensor in policy_lib.state_tensors(state).items()
      },
    }

  return run


def initial_state(policy: policy_lib.ExportablePolicy, batch: int = 1) -> policy_lib.Arrays:
  """Returns the inputs with the state at the start of episodes.

  Args:
    policy: Policy that defines the signature.
    batch: Number of episodes, N.

  Returns:
    Zeros of shape [N, ...] by name; empty if the policy has no state.
  """
  return {
    name: np.zeros([batch, *policy.inputs[name].shape], policy.inputs[name].dtype)
    for name in policy.names("state")
  }


def observation_inputs(policy: policy_lib.ExportablePolicy, observation: Any) -> policy_lib.Arrays:
  """Returns the inputs with the parts of one observation.

  Args:
    policy: Policy that defines the signature.
    observation: Observation as the environment returns it.

  Returns:
    Arrays of shape [1, ...] by name.

  Raises:
    ValueError: If a part is missing or has another shape than its space.
  """
  leaves = spaces.leaves(policy.observation_space)
  values = zip(leaves, spaces.values(policy.observation_space, observation), strict=True)
  parts = [value for leaf, value in values if leaf in policy.observation_leaves]
  return {
    name: np.asarray(part, policy.inputs[name].dtype)[None]
    for name, part in zip(policy.names("observation"), parts, strict=True)
  }


def environment_action(policy: policy_lib.ExportablePolicy, outputs: policy_lib.Arrays) -> Any:
  """Returns one action in the format of the environment's action space.

  Args:
    policy: Policy that defines the signature.
    outputs: Outputs of the policy by name, of shape [1, ...].
  """
  leaves = spaces.leaves(policy.action_space, is_action=True)
  return signature.nested(
    policy.action_space,
    iter(
      [
        int(outputs[name][0])
        if isinstance(leaf.space, gymnasium.spaces.Discrete)
        else outputs[name][0].astype(leaf.space.dtype)
        for name, leaf in zip(policy.names("action"), leaves, strict=True)
      ]
    ),
  )


def open_env(constructor: make.MakeEnv) -> gymnasium.Env:
  """Builds an environment, in another process if its observations are rendered.

  Args:
    constructor: Constructor of the environment.
  """
  if not constructor.config.renders:
    return constructor()
  return remote_env.RemoteEnv(constructor, render_pool.find_gl_backend(constructor))


def evaluate(
  policy: policy_lib.ExportablePolicy,
  function: policy_lib.PolicyFunction,
  record: Callable[[policy_lib.Arrays], Any] = lambda call: None,
) -> list[float]:
  """Plays `NUM_EPISODES` episodes with the seeds of the run's evaluations.

  Args:
    policy: Policy that defines the environment, the seeds and the signature.
    function: Function that selects the actions.
    record: Called in each step with all inputs and outputs of shape [1, ...],
      by name.

  Returns:
    Sum of rewards of each episode.

  Raises:
    EnvironmentsError: If the environment fails.
  """
  config = policy.config
  stream = random.stream(config.seed, "eval")
  returns = []
  for index, constructor in enumerate(make.constructors(config.env, NUM_EPISODES, config.seed)):
    env = open_env(constructor)
    seed = episode_data.episode_seed(stream, index, 0)
    rng = np.random.default_rng(seed)
    observ, _ = env.reset(seed=seed)
    state = initial_state(policy)
    total, ended = 0.0, False
    while not ended:
      inputs = observation_inputs(policy, observ) | state
      if "noise" in policy.inputs:
        inputs["noise"] = numpy_player.draw_noise(rng, policy.inputs["noise"].drawn, 1).astype(
          np.float32
        )
      outputs = function(inputs)
      record(inputs | outputs)
      state = {name: outputs[f"next_{name}"] for name in state}
      action = environment_action(policy, outputs)
      try:
        observ, reward, terminated, truncated, _ = env.step(action)
      except Exception as error:
        raise errors.EnvironmentsError(
          f"{policy.config.env.id} failed in an episode with seed {seed}, "
          f"with action {action!r}: {error!r}"
        ) from error
      total += float(reward)
      ended = terminated or truncated
    returns.append(total)
    env.close()
  return returns
