"""The loop that fuses inference, stepping and remembering."""

from __future__ import annotations

from typing import NamedTuple
from typing import Protocol

import tensorflow as tf

from agents import structs
from agents.simulation import in_graph_batch_env


class Actor(Protocol):
  """What the simulation knows of an algorithm."""

  def act(self, observ: tf.Tensor, clock: tf.Tensor, explore: bool
          ) -> tf.Tensor:
    """Return actions of shape [B, ...] for observations of shape [B, ...]."""


class Simulation(NamedTuple):
  """What happened in T steps of all environments."""

  carry: structs.Carry  # To continue from.
  transitions: structs.Transition  # [T, B, ...]
  left: tf.Tensor  # [B] int32, episodes of the quota still to play.
  env_seconds: tf.Tensor  # [] float64, in the environments and getting there.


def initial_carry(observ: tf.Tensor, clock: int = 0) -> structs.Carry:
  """Begin with all episodes at their first observation."""
  return structs.Carry(observ, tf.constant(clock, tf.int64))


def simulate(env: in_graph_batch_env.InGraphBatchEnv, actor: Actor,
             carry: structs.Carry, steps: int, explore: bool,
             quota: tf.Tensor | None = None) -> Simulation:
  """Step all environments `steps` times, or until they have done their quota.

  The loop remembers actions and packed answers; all that can be done for the
  whole collection at once is done behind it.

  Args:
    env: Environments whose latest observations `carry` holds.
    actor: Chooses the actions.
    carry: From `initial_carry` or the simulation before.
    steps: Number of batched steps, T; with a quota, T is at most this.
    explore: Sample actions, or take the mean action.
    quota: Episodes that each environment plays, of shape [B] and type int32.
      Then it waits for the others, at the beginning of its next one.
  """
  def unfinished(index, carry, left, memory, env_seconds):
    return index < steps if quota is None else tf.reduce_any(left > 0)

  def body(index, carry, left, memory, env_seconds):
    action = actor.act(carry.observ, carry.clock, explore)
    packed, seconds = env.step(action, None if quota is None else left > 0)
    answers = env.unpack(packed)
    if quota is not None:
      left -= tf.cast(answers.terminated | answers.truncated, tf.int32)
    memory = tf.nest.map_structure(
        lambda array, value: array.write(index, value), memory,
        (action, packed))
    carry = structs.Carry(answers.observ, carry.clock + 1)
    return index + 1, carry, left, memory, env_seconds + seconds

  left = tf.zeros([len(env)], tf.int32) if quota is None else quota
  spec = env.action_spec, env.packed_spec
  memory = tf.nest.map_structure(
      lambda field: tf.TensorArray(
          field.dtype, steps, element_shape=field.shape), spec)
  taken, last, left, memory, env_seconds = tf.while_loop(
      unfinished, body, (0, carry, left, memory, tf.constant(0.0, tf.float64)),
      maximum_iterations=steps)
  length = steps if quota is None else None
  action, packed = tf.nest.map_structure(
      lambda field, array: tf.ensure_shape(
          array.gather(tf.range(taken)), [length, *field.shape]), spec, memory)
  answers = env.unpack(packed)
  observ = tf.concat([carry.observ[None], answers.observ], 0)[:-1]
  transitions = structs.Transition(
      observ, action, answers.reward, answers.terminated, answers.truncated,
      env.successors(answers), answers.valid)
  return Simulation(last, transitions, left, env_seconds)
