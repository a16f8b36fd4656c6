"""Plays whole episodes inside of the workers, without waking the trainer."""

import functools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from agents.environments.data import episode_data
from agents.simulation import evaluator, rollout_to_batch
from agents.translation import graph_to_numpy, numpy_policy, operation_rules

_SECONDS = 0.1  # If a call of `play` is faster, the next call takes more steps.


class WorkerEvaluator(evaluator.Evaluator):
  """Lets the workers select the actions, with a policy that NumPy computes.

  No process waits for another one, so evaluations of HalfCheetah are 2.7 times
  as fast (docs/performance.md). Sampled actions, and policies that need images,
  earlier observations or operations without a translation, are computed in the
  graph, as in `Evaluator`.

  Args:
    args: See `Evaluator`.
  """

  def play(
    self, num_episodes: int, stop: Callable[[], bool] = lambda: False
  ) -> list[episode_data.Episode] | None:
    """See `Evaluator.play`.

    Calls of `stop` are less frequent if the environments are fast.
    """
    policy = self._policy()
    if policy is None:
      return super().play(num_episodes, stop)
    batch_env = self.env.batch_env
    batch_env.take_finished()
    batch_env.reset()
    episodes_left = np.array(rollout_to_batch.shares(num_episodes, len(batch_env)))
    num_steps = evaluator.CHUNK
    while episodes_left.any():
      if stop():
        return None
      start = time.monotonic()
      episodes_left = batch_env.play(policy, episodes_left, num_steps)
      if time.monotonic() - start < _SECONDS:
        num_steps *= 2
    return batch_env.take_finished()

  def _policy(self) -> numpy_policy.NumpyPolicy | None:
    """Returns the policy with the current weights; None if unsupported."""
    if self._function is None:
      return None
    env = self.env.batch_env
    variables = {id(variable.handle): variable for variable in self._function.graph.variables}
    captures = [
      variables.get(id(tensor), tensor).numpy() for tensor in self._function.captured_inputs
    ]
    try:
      program, constants = graph_to_numpy.translate(
        self._function, ["observ"], ["action"], captures
      )
    except operation_rules.UnsupportedOperation:
      return None
    return numpy_policy.NumpyPolicy(program, constants, len(env), env.first)

  @functools.cached_property
  def _function(self) -> Any:
    """Function that maps observations to actions, or None; see the class."""
    state = self._actor.initial_state(len(self.env))
    observ = self.env.batch_env.step_layout.fields[0]
    if self._explore or tf.nest.flatten(state) or len(observ.graph_shape) > 2:
      return None
    act = tf.function(lambda observ: self._actor.act(observ, state, None)[0], autograph=False)
    return act.get_concrete_function(tf.TensorSpec(observ.graph_shape, observ.graph_dtype))
