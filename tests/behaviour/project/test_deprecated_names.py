"""Custom algorithms that use former names still run, for one release."""

import numpy as np
import pytest
import tensorflow as tf
from agents.parts import chunks as former_chunks

from agents import build, types
from agents import config as config_lib
from agents.algorithms import gradient_accumulation
from agents.ops import gae, returns

# The file `a2c.py` from docs/extending.md at commit 9d4bf19.
_A2C = '''
"""Advantage actor-critic (Mnih et al. 2016; Sutton and Barto 2018, 13.5)."""

from typing import Any
from typing import NamedTuple

import keras
import tensorflow as tf

from agents.algorithms import actor_critic
from agents.ops import masked
from agents.ops import random
from agents.ops import returns
from agents.parts import chunks


class Samples(NamedTuple):
  """What the loss is computed from. N: steps of a memory or of a part of it."""

  observ: tf.Tensor  # [N, ...]
  action: tf.Tensor  # [N, ...], as sampled.
  advantage: tf.Tensor  # [N]
  value_target: tf.Tensor  # [N]
  context: Any = ()  # What the model has to know of these steps.


class A2C(actor_critic.ActorCritic):
  """One step of gradient ascent on each segment, and then it is forgotten.

      R[t]        = reward[t] + discount * R[t + 1]
      policy loss = -mean(log pi(action[t] | observ[t]) * (R[t] - V(observ[t])))
      value loss  = mean((R[t] - V(observ[t])) ** 2)

  Behind a segment's last step, R is the value; behind an episode's, zero.

  Args:
    args: See `actor_critic.ActorCritic`.
    rho: How long RMSProp remembers the size of gradients, in [0, 1).
  """

  def __init__(self, *args, rho: float = 0.99):
    super().__init__(*args)
    self._optimizer = keras.optimizers.RMSprop(
        self.config.learning_rate, rho=rho, epsilon=1e-5, name="rmsprop")
    self._optimizer.build(self.weights)
    self.others = self._optimizer.variables  # For checkpoints.

  @tf.function(jit_compile=True, autograph=False)
  def learn(self, memory, clock, progress):
    value, next_value = self.values(memory)
    advantage = returns.generalized_advantage(  # R - V, as lambda is one.
        memory.reward, value, next_value, memory.terminated, memory.last,
        self.config.discount, lambda_=1.0)
    samples = Samples(
        memory.observ, memory.action, advantage, value + advantage)
    batch = self.model.deal(  # All valid steps, in chunks.
        samples, memory, None, random.key(0, clock)).take(0)
    gradients, losses = chunks.total(
        self._gradients, (batch.data, batch.weight), batch.amount)
    norm = tf.linalg.global_norm(gradients)
    gradients, _ = tf.clip_by_global_norm(
        gradients, self.config.max_grad_norm, norm)
    self._optimizer.apply(gradients, self.weights)
    return {
        **losses, **self.update_features(memory), "grad_norm": norm,
        "gradient_steps": tf.constant(1.0),
        "finite_steps": tf.cast(tf.math.is_finite(norm), tf.float32),
    }, advantage

  def _gradients(self, chunk):
    samples, weight = chunk  # The weights of all chunks sum to one.
    with tf.GradientTape() as tape:
      policy, value = self.model.both(samples.observ, samples.context)
      log_prob = self.head.log_prob(policy, samples.action)
      losses = {
          "policy_loss": -masked.mean(log_prob * samples.advantage, weight),
          "value_loss": masked.mean(
              tf.square(samples.value_target - value), weight),
          "entropy": masked.mean(self.head.entropy(policy), weight)}
      loss = (losses["policy_loss"]
              + self.config.value_coef * losses["value_loss"]
              - self.config.entropy_coef * losses["entropy"])
    return tape.gradient(loss, self.weights), losses
'''


@pytest.fixture(name="trainer")
def _trainer(tmp_path, monkeypatch, request):
  (tmp_path / "former_a2c.py").write_text(_A2C)
  monkeypatch.syspath_prepend(tmp_path)
  trainer = build.trainer(
    config_lib.Config().override(
      {
        "env.id": "Pendulum-v1",
        "env_processes": False,
        "num_envs": 4,
        "algorithm.segment_length": 8,
        "algorithm.minibatch_size": None,
        "algorithm.type": "former_a2c:A2C",
        "algorithm.kwargs.rho": 0.95,
        "network.policy_layers": [4],
        "network.value_layers": [4],
        **getattr(request, "param", {}),
      }
    ),
    None,
  )
  yield trainer
  trainer.close()


@pytest.mark.slow
@pytest.mark.parametrize(
  "trainer",
  [{}, {"network.frame_stack": 2}, {"network.recurrent": "gru"}],
  indirect=True,
  ids=["steps", "frames", "segments"],
)
def test_algorithm_with_former_names_completes_one_update(trainer):
  trainer.start()
  before = {name: np.array(variable) for name, variable in trainer.algorithm.variables().items()}
  epoch = trainer.epoch(0.0)
  assert epoch.gradient_steps == epoch.finite_steps == 1
  assert {"policy_loss", "value_loss", "observ_mean"} <= epoch.metrics.keys()
  after = trainer.algorithm.variables()
  assert any("rmsprop" in name for name in after)
  for name, array in before.items():
    if name.endswith("output/kernel"):
      assert (np.array(after[name]) != array).any(), name


def test_former_and_current_names_refer_to_the_same_objects(trainer):
  algorithm = trainer.algorithm
  assert algorithm.head is algorithm.distribution
  assert algorithm.features is algorithm.observation_encoder
  assert algorithm.others is algorithm.extra_variables
  assert returns.generalized_advantage is gae.generalized_advantage
  assert former_chunks.total is gradient_accumulation.sum_chunks
  assert former_chunks.whole(3000) == gradient_accumulation.padded_rows(3000)


def test_former_minibatches_consist_of_chunks_of_rows(trainer, monkeypatch):
  monkeypatch.setattr(gradient_accumulation, "_CHUNK_ROWS", 8)
  monkeypatch.setattr(gradient_accumulation, "MAX_ROWS", 16)
  zeros, valid = tf.zeros([32]), tf.fill([32], True)
  batch = types.Experience(zeros, zeros, zeros, valid, valid, valid, valid, zeros, zeros)
  for size, shape in ((None, (4, 8)), (16, (1, 16))):
    minibatches = trainer.algorithm.model.deal(batch, batch, size, tf.constant([0, 1], tf.int64))
    data, weight, num_chunks = minibatches.take(0)
    assert weight.shape == data.observ.shape == shape
    total = former_chunks.total(lambda chunk: tf.reduce_sum(chunk[1]), (data, weight), num_chunks)
    np.testing.assert_allclose(total, 1, rtol=1e-6)
