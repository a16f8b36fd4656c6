"""What machines compute of a minibatch adds up to what one computes of it."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from agents import build
from agents import config as config_lib
from agents.distributed import collectives
from agents.distributed import shared_updates


def _config(**changes):
  return config_lib.Config().override({
      "env.id": "tests.memory_tasks:masked_pendulum", "env_processes": False,
      "num_envs": 6, "algorithm.segment_length": 10,
      "algorithm.minibatch_size": 30, "network.policy_layers": [16],
      "network.value_layers": [8], **changes})


_SETTINGS = {
    "steps": {},
    "odd": {"algorithm.minibatch_size": 4},  # Some share has no step.
    "full": {"algorithm.minibatch_size": None},
    "segments": {"network.recurrent": "gru", "network.recurrent_units": 5},
    "frames": {"network.frame_stack": 3},
    "cutoff": {"algorithm.kl_cutoff_coef": 100.0, "algorithm.kl_target": 1e-6,
               "algorithm.kl_penalty": 2.0, "algorithm.clip_ratio": None},
    "entropy": {"algorithm.entropy_coef": 0.1, "algorithm.value_clip": 0.01,
                "algorithm.normalize_advantage": False}}


@pytest.mark.parametrize("name, amount", [
    ("steps", 3), ("odd", 5), ("segments", 3),
    *(pytest.param(name, amount, marks=pytest.mark.slow) for name, amount in (
        ("full", 2), ("frames", 2), ("cutoff", 2), ("entropy", 3)))])
def test_shares_add_up(name, amount):
  config = _config(**_SETTINGS[name])
  trainer = build.trainer(config, None)
  try:
    trainer.start()
    carry = trainer._carry
    simulation = tf.function(trainer.collect, autograph=False)(carry)
    memory = trainer.rollout_spec.flatten(
        simulation.transitions, carry.state, simulation.carry.observ)
    env = trainer.train_env.batch_env
    clock = tf.constant(7, tf.int64)
    variables = {name: np.array(variable) for name, variable in
                 trainer.algorithm.variables().items()}
    def algorithm(communicator=None):
      made = build.algorithm(
          config, env.observation_space, env.action_space,
          communicator and functools.partial(
              shared_updates.SharedUpdatesPPO, communicator=communicator))
      made.assign(variables)
      return made
    whole = algorithm()
    update = whole.prepare(memory, tf.constant(0.0))
    # Moved on, or ratios would be 1 and divergences 0.
    moved = {name: array + 0.01 * np.sin(np.arange(array.size)).reshape(
        array.shape).astype(array.dtype) if "moments" not in name and (
            array.dtype == np.float32) else array
             for name, array in variables.items()}
    whole.assign(moved)
    *_, split = whole._shuffle_split(
        memory, update.samples, clock, tf.constant(0), update.state)
    index = tf.constant(int(split.num_minibatches) - 1)
    minibatch, loss, losses = whole._loss.bind(
        split.take(index), memory.final_observ.shape[0])
    gradients, terms = whole._gradients(loss, minibatch)
    expected = np.concatenate([np.ravel(tensor) for tensor in (
        *gradients, *(terms[name] for name in whole._loss.names))])
    total = np.zeros_like(expected)
    for machine in range(amount):
      one = algorithm(collectives.Communicator(machine, amount, 1.0))
      one.assign(moved)
      own, known = one._own_gradients(memory, split, index)
      total += own
      for name, loss in losses.items():
        np.testing.assert_array_equal(known[name], loss)
  finally:
    trainer.close()
  assert np.abs(expected).max() > 1e-3
  np.testing.assert_allclose(total, expected, rtol=2e-4, atol=1e-6)


def test_alone_it_is_the_usual_one():
  config = _config(data_parallel=True)
  trainer = build.trainer(config, None)
  trainer.close()
  assert type(trainer.algorithm).__name__ == "BatchPPO"


def test_other_algorithms_have_no_shares():
  with pytest.raises(config_lib.ConfigError, match="`data_parallel` needs"):
    _config(**{"data_parallel": True, "algorithm.type": "a:B"})
