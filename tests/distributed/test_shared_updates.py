"""Gradients of all machines add up to the gradients of a single machine."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from agents import build
from agents import config as config_lib
from agents.distributed import collectives, shared_updates


def _config(**changes):
  """Returns a config with 10 steps of 6 environments per update."""
  return config_lib.Config().override(
    {
      "env.id": "tests.behaviour.runs.memory_tasks:masked_pendulum",
      "env_processes": False,
      "num_envs": 6,
      "algorithm.segment_length": 10,
      "algorithm.minibatch_size": 30,
      "network.policy_layers": [16],
      "network.value_layers": [8],
      **changes,
    }
  )


_SETTINGS = {
  "steps": {},
  # With five machines, the share of one machine is empty.
  "odd": {"algorithm.minibatch_size": 4},
  "full": {"algorithm.minibatch_size": None},
  "segments": {"network.recurrent": "gru", "network.recurrent_units": 5},
  "frames": {"network.frame_stack": 3},
  "cutoff": {
    "algorithm.kl_cutoff_coef": 100.0,
    "algorithm.kl_target": 1e-6,
    "algorithm.kl_penalty": 2.0,
    "algorithm.clip_ratio": None,
  },
  "entropy": {
    "algorithm.entropy_coef": 0.1,
    "algorithm.value_clip": 0.01,
    "algorithm.normalize_advantage": False,
  },
}


@pytest.mark.parametrize(
  "name, world_size",
  [
    ("steps", 3),
    ("segments", 3),
    ("odd", 5),
    ("full", 2),
    ("frames", 2),
    ("cutoff", 2),
    ("entropy", 3),
  ],
)
@pytest.mark.slow
def test_gradients_of_shares_add_up(name, world_size):
  config = _config(**_SETTINGS[name])
  trainer = build.trainer(config, None)
  trainer.start()
  simulation = trainer.collect(trainer._carry)
  batch = trainer.rollout_spec.flatten(
    simulation.transitions, trainer._carry.state, simulation.carry.observ
  )
  env = trainer.train_env.batch_env
  trainer.close()
  step_counter = tf.constant(7, tf.int64)
  initial = {name: np.array(variable) for name, variable in trainer.algorithm.variables().items()}
  # Changes the weights after acting. Otherwise, all probability ratios would be
  # 1 and all KL divergences 0.
  changed = {
    name: array + 0.01 * np.sin(np.arange(array.size)).reshape(array.shape).astype(array.dtype)
    if "moments" not in name and (array.dtype == np.float32)
    else array
    for name, array in initial.items()
  }

  def algorithm(*algorithm_type):
    return build.algorithm(config, env.observation_space, env.action_space, *algorithm_type)

  alone = algorithm()
  alone.assign(initial)
  samples, _, state = alone.prepare(batch, tf.constant(0.0))
  alone.assign(changed)
  *_, split = alone._shuffle_split(batch, samples, step_counter, tf.constant(0), state)
  index = tf.constant(int(split.num_minibatches) - 1)
  minibatch, loss, losses = alone._loss.bind(split.take(index), batch.final_observ.shape[0])
  gradients, terms = alone._gradients(loss, minibatch)
  expected = np.concatenate(
    [np.ravel(tensor) for tensor in (*gradients, *(terms[name] for name in alone._loss.names))]
  )
  total = np.zeros_like(expected)
  all_losses = []
  for rank in range(world_size):
    machine = algorithm(
      functools.partial(
        shared_updates.SharedUpdatesPPO, communicator=collectives.Communicator(rank, world_size)
      )
    )
    machine.assign(changed)
    vector, machine_losses = machine._local_gradients(batch, split, index)
    total += vector
    all_losses.append(machine_losses)
  for name, loss in losses.items():
    values = [np.array(each[name]) for each in all_losses]
    assert values == values[:1] * world_size  # All machines are bit-equal.
    # `alone` computes the loss without compilation, so the last bits differ.
    np.testing.assert_allclose(values[0], loss, rtol=1e-5)
  assert np.abs(expected).max() > 1e-3
  np.testing.assert_allclose(total, expected, rtol=2e-4, atol=1e-6)


def test_one_machine_uses_the_ordinary_algorithm():
  trainer = build.trainer(_config(data_parallel=True), None)
  trainer.close()
  assert type(trainer.algorithm).__name__ == "BatchPPO"


def test_data_parallel_needs_ppo():
  with pytest.raises(config_lib.ConfigError, match="`data_parallel` needs"):
    _config(**{"data_parallel": True, "algorithm.type": "a:B"})
