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
  episodes: structs.Episodes  # [T, B]
  left: tf.Tensor  # [B] int32, episodes of the quota still to play.
  env_seconds: tf.Tensor  # [] float64, in the environments and getting there.


def initial_carry(observ: tf.Tensor, clock: int = 0) -> structs.Carry:
  """Begin with all episodes at their first observation."""
  batch = observ.shape[0]
  return structs.Carry(observ, tf.zeros([batch]), tf.zeros([batch], tf.int32),
                       tf.constant(clock, tf.int64))


def simulate(env: in_graph_batch_env.InGraphBatchEnv, actor: Actor,
             carry: structs.Carry, steps: int, explore: bool,
             quota: tf.Tensor | None = None) -> Simulation:
  """Step all environments `steps` times, or until they have done their quota.

  Args:
    env: Environments whose latest observations `carry` holds.
    actor: Chooses the actions.
    carry: From `initial_carry` or the simulation before.
    steps: Number of batched steps, T; with a quota, T is at most this.
    explore: Sample actions, or take the mean action.
    quota: Episodes that each environment plays, of shape [B] and type int32.
      Then it waits for the others, at the beginning of its next one.
  """
  def step_once(carry, left):
    action = actor.act(carry.observ, carry.clock, explore)
    step, seconds = env.step(action, None if quota is None else left > 0)
    transition = structs.Transition(
        carry.observ, action, step.reward, step.terminated, step.truncated,
        step.next_observ, step.valid)
    score = carry.score + step.reward
    length = carry.length + tf.cast(step.valid, tf.int32)
    ended = step.terminated | step.truncated
    carry = structs.Carry(
        step.observ, tf.where(ended, 0.0, score), tf.where(ended, 0, length),
        carry.clock + 1)
    left -= tf.cast(ended, tf.int32)
    episodes = structs.Episodes(ended, score, length)
    return carry, left, (transition, episodes), seconds

  def unfinished(index, carry, left, memory, env_seconds):
    return (index < steps) & tf.reduce_any(left > 0)

  def body(index, carry, left, memory, env_seconds):
    carry, left, row, seconds = step_once(carry, left)
    memory = tf.nest.map_structure(
        lambda array, value: array.write(index, value), memory, row)
    return index + 1, carry, left, memory, env_seconds + seconds

  left = tf.fill([len(env)], tf.int32.max) if quota is None else quota
  spec = env.spec, structs.Episodes(*[
      tf.TensorSpec([len(env)], dtype) for dtype in
      (tf.bool, tf.float32, tf.int32)])
  memory = tf.nest.map_structure(
      lambda field: tf.TensorArray(
          field.dtype, steps, element_shape=field.shape), spec)
  taken, carry, left, memory, env_seconds = tf.while_loop(
      unfinished, body, (0, carry, left, memory, tf.constant(0.0, tf.float64)),
      maximum_iterations=steps)
  length = steps if quota is None else None
  transitions, episodes = tf.nest.map_structure(
      lambda field, array: tf.ensure_shape(
          array.gather(tf.range(taken)), [length, *field.shape]), spec, memory)
  return Simulation(carry, transitions, episodes, left, env_seconds)
