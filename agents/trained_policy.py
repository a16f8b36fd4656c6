"""Loads the policy of a run for use in Python, without an export.

    policy = trained_policy.load("~/logdir")
    env = policy.make_env()
    observation, _ = env.reset()
    state = policy.begin()                       # At the start of an episode.
    action, state = policy(observation, state)   # One step, without a batch.

The policy takes the mean action, as in evaluations.
"""

import os
from collections.abc import Sequence
from typing import Any

import gymnasium

from agents.environments.making import make
from agents.training.monitoring import quiet_imports
from agents.training.run_folder import checkpoint as checkpoint_lib
from agents.training.run_folder import run_folder

with quiet_imports.quiet_imports():
  import tensorflow as tf

  from agents.export import evaluate
  from agents.export import policy as policy_lib

  tf.config.list_physical_devices()  # Logs whether a GPU exists.


class TrainedPolicy:
  """Selects the actions of evaluations, in the environment's own format.

  `begin`, calls and `run` work like those of the exported `player.Policy`.

  Args:
    policy: Policy of a checkpoint, with its signature.

  Attributes:
    step: Environment steps of training before the checkpoint.
  """

  def __init__(self, policy: policy_lib.ExportablePolicy) -> None:
    self.step = policy.step
    self._policy = policy
    self._function = evaluate.training_function(policy)

  def make_env(self, render_mode: str | None = None) -> gymnasium.Env:
    """Builds the environment of the run, with its wrappers and time limit.

    Args:
      render_mode: Render mode of the environment, such as "rgb_array".
    """
    return evaluate.open_env(make.MakeEnv(self._policy.config.env, render_mode))

  def begin(self, batch: int = 1) -> policy_lib.Arrays:
    """Returns the state at the start of episodes.

    Args:
      batch: Number of episodes.

    Returns:
      Arrays of shape [batch, ...] by name; empty if the policy has no state.
    """
    return evaluate.initial_state(self._policy, batch)

  def __call__(self, observation: Any, state: policy_lib.Arrays) -> tuple[Any, policy_lib.Arrays]:
    """Selects one action.

    Args:
      observation: Observation of the environment.
      state: State that `begin` or the previous step of the episode returned.

    Returns:
      Action for `env.step`, and the state for the next step.

    Raises:
      ValueError: If the observation does not fit the observation space.
    """
    outputs = self.run(evaluate.observation_inputs(self._policy, observation) | state)
    return evaluate.environment_action(self._policy, outputs), {
      name: outputs[f"next_{name}"] for name in state
    }

  def run(self, inputs: policy_lib.Arrays) -> policy_lib.Arrays:
    """Selects the actions of a batch.

    Args:
      inputs: Arrays of shape [N, ...] by name, as in `signature.json` of the
        exported policy.

    Returns:
      Actions and next states, arrays of shape [N, ...] by name.
    """
    with tf.device("CPU:0"):  # As in evaluations.
      return self._function(inputs)


def load(
  run: str | os.PathLike,
  checkpoint: str | int | None = None,
  code: Sequence[str | os.PathLike] = (),
) -> TrainedPolicy:
  """Loads a policy.

  Args:
    run: Run folder; in a folder of runs, the newest run with a checkpoint.
    checkpoint: Step or file name of a checkpoint, or "best" for the policy with
      the best evaluation; by default the newest checkpoint.
    code: Folders with modules that the config of the run may name, like the
      option --code of commands.

  Returns:
    The policy, which takes the mean action.

  Raises:
    ConfigError: If there is no such run or checkpoint, the environment of the
      run cannot be built, or the config names code without permission.
    RunError: If the checkpoint is damaged.
  """
  folder = run_folder.find(run, code)
  make.check(folder.config.env)
  path = checkpoint_lib.find(folder.checkpoints, None if checkpoint is None else str(checkpoint))
  with tf.device("CPU:0"):
    return TrainedPolicy(policy_lib.load(folder, path, sampled=False))
