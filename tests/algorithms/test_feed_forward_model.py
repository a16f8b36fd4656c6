"""Models compute in batches what acting computed step by step."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from agents import build, types
from agents import config as config_lib
from agents.environments import batch_env
from agents.environments.data import failure_budget
from agents.simulation import in_graph_batch_env, simulate
from tests import toy

_STEPS = 6
_KINDS = {
  "gru": {"network.recurrent": "gru"},
  "lstm, two cells": {"network.recurrent": "lstm", "network.share_core": False},
  "frames": {"network.frame_stack": 3},
  "gru, frames": {"network.recurrent": "gru", "network.frame_stack": 2},
}


class _FailingCounter(toy.Counter):
  """Raises an error in the third step of each episode with an odd seed."""

  def step(self, action):
    if self._step == 2 and self._seed % 2:
      raise RuntimeError("Third step.")
    return super().step(action)


def _config(kind, **changes):
  return config_lib.Config().override(
    {
      "env.id": "tests.toy:Counter",
      "num_envs": 6,
      "network.recurrent_units": 5,
      "algorithm.segment_length": _STEPS,
      "algorithm.minibatch_size": None,
      "network.policy_layers": [4],
      "network.value_layers": [4],
      **_KINDS[kind],
      **changes,
    }
  )


def _batch(failing=False):
  envs = [
    functools.partial(toy.Counter, length, truncates)
    for length, truncates in ((1, False), (2, True), (3, False), (4, True), (9, True))
  ]
  envs.append(functools.partial(_FailingCounter if failing else toy.Counter, 5))
  return batch_env.BatchEnv(envs, seed=3, failure_budget=failure_budget.FailureBudget(1000))


def _algorithm(config, batch):
  algorithm = build.algorithm(config, batch.observation_space, batch.action_space)
  # Weights are random, because initial last layers are almost zero.
  rng = np.random.default_rng(0)
  for variable in algorithm.weights:
    variable.assign(0.5 * rng.normal(size=variable.shape))
  return algorithm


def _rollouts(algorithm, config, batch, num_rollouts=3):
  """Yields transitions, batch and noise of each rollout."""
  env = in_graph_batch_env.InGraphBatchEnv(batch)
  spec = build.rollout_spec(config)
  carry = simulate.initial_carry(batch.reset(), state=algorithm.initial_state(len(batch)))
  collect = tf.function(
    lambda carry: simulate.simulate(env, algorithm, carry, _STEPS), autograph=False
  )
  for _ in range(num_rollouts):
    played = collect(carry)
    experience = spec.flatten(played.transitions, carry.state, played.carry.observ)
    noise = tf.stack(
      [algorithm.noise(carry.step_counter + step, len(batch)) for step in range(_STEPS)]
    )
    yield played.transitions, experience, noise
    carry = played.carry


def _by_environment(tensor):
  """Reshapes [T, B, D] to [B * T, D], ordered by environment."""
  return tf.reshape(tf.transpose(tensor, [1, 0, 2]), [-1, tensor.shape[-1]])


@pytest.mark.parametrize(
  "kind, setting",
  [
    ("frames", "failing"),
    *(
      pytest.param(*case, marks=pytest.mark.slow)
      for case in (
        ("lstm, two cells", "plain"),
        ("gru", "plain"),
        ("gru", "failing"),
        ("frames", "plain"),
        ("gru, frames", "plain"),
      )
    ),
  ],
)
def test_learner_recomputes_the_policy_that_acted(kind, setting):
  config = _config(kind)
  with _batch(setting == "failing") as batch:
    algorithm = _algorithm(config, batch)
    for transitions, experience, noise in _rollouts(algorithm, config, batch):
      valid = tf.reshape(tf.transpose(transitions.valid), [-1])
      # Only batches for recurrent policies keep invalid steps in place.
      rows = valid if config.network.recurrent else tf.range(len(valid)) < np.count_nonzero(valid)
      parameters = algorithm.model.policy(experience)[: len(valid)]
      recomputed = algorithm.distribution.sample(parameters[rows], _by_environment(noise)[valid])
      acted = _by_environment(transitions.action)[valid]
      np.testing.assert_allclose(recomputed, acted, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["lstm, two cells", "gru, frames"])
def test_values_of_true_successors_continue_the_recurrent_state(kind):
  """Compares `values` with results of `policy_and_value` for one sequence."""
  config = _config(kind)
  with _batch() as batch:
    algorithm = _algorithm(config, batch)
    model = algorithm.model
    for transitions, experience, _ in _rollouts(algorithm, config, batch):
      values, finals = model.values(experience)
      _, expected = model.policy_and_value(experience.observ, experience.segments)
      np.testing.assert_allclose(values, expected, atol=1e-5)
      # The true successor is an additional step of the sequence.
      continues = ~(transitions.terminated | transitions.truncated).numpy()
      num_checked = 0
      for env in range(len(batch)):
        for step in range(_STEPS):
          if step < _STEPS - 1 and continues[step, env]:
            continue
          sequence = int(experience.sequence[env * _STEPS + step])
          if transitions.terminated[step, env]:
            continue  # Learning does not use values after termination.
          begin = max([0, *(t + 1 for t in range(step) if not continues[t, env])])
          rows = range(env * _STEPS + begin, env * _STEPS + step + 1)
          observ = tf.concat(
            [_observ(experience.observ, list(rows)), _observ(experience.final_observ, [sequence])],
            0,
          )
          context = ()
          if config.network.recurrent:
            state = experience.segments.state[env][None]
            context = types.Segments(
              tf.zeros([1, len(rows) + 1], tf.bool), state if begin == 0 else tf.zeros_like(state)
            )
          _, expected = model.policy_and_value(observ, context)
          np.testing.assert_allclose(finals[sequence], expected[-1], atol=1e-5)
          num_checked += 1
      assert num_checked > 3


@pytest.mark.slow
@pytest.mark.usefixtures("eagerly")
@pytest.mark.parametrize("kind", ["gru", "frames"])
def test_update_with_failed_steps_takes_all_gradient_steps(kind):
  config = _config(kind, **{"algorithm.minibatch_size": 12, "algorithm.update_epochs": 2})
  with _batch(failing=True) as batch:
    algorithm = _algorithm(config, batch)
    *_, (transitions, experience, _) = _rollouts(algorithm, config, batch)
    metrics, _ = algorithm.learn(experience, tf.constant(0, tf.int64), tf.constant(0.0))
    assert metrics["gradient_steps"] == 3 * config.algorithm.update_epochs
    assert metrics["finite_steps"] == metrics["gradient_steps"]
    assert transitions.valid.numpy().sum() < len(batch) * _STEPS


def _observ(observ, rows):
  """Returns rows of observations; looks up frames that are stored once."""
  observ = types.map_tensors(lambda tensor: tf.gather(tensor, rows), observ)
  if isinstance(observ, types.FrameIndices):
    return observ.gather_frames()
  return observ
