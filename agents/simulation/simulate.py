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
  env_seconds: tf.Tensor  # [] float64, in the environments and getting there.


def initial_carry(observ: tf.Tensor, clock: int = 0) -> structs.Carry:
  """Begin with all episodes at their first observation."""
  batch = observ.shape[0]
  return structs.Carry(observ, tf.zeros([batch]), tf.zeros([batch], tf.int32),
                       tf.constant(clock, tf.int64))


def simulate(env: in_graph_batch_env.InGraphBatchEnv, actor: Actor,
             carry: structs.Carry, steps: int, explore: bool) -> Simulation:
  """Step all environments `steps` times.

  Args:
    env: Environments whose latest observations `carry` holds.
    actor: Chooses the actions.
    carry: From `initial_carry` or the simulation before.
    steps: Number of batched steps, T.
    explore: Sample actions, or take the mean action.
  """
  def step_once(carry):
    action = actor.act(carry.observ, carry.clock, explore)
    step, seconds = env.step(action)
    transition = structs.Transition(
        carry.observ, action, step.reward, step.terminated, step.truncated,
        step.next_observ)
    score, length = carry.score + step.reward, carry.length + 1
    ended = step.terminated | step.truncated
    carry = structs.Carry(
        step.observ, tf.where(ended, 0.0, score), tf.where(ended, 0, length),
        carry.clock + 1)
    return carry, transition, structs.Episodes(ended, score, length), seconds

  def body(index, carry, memory, env_seconds):
    carry, *row, seconds = step_once(carry)
    memory = tf.nest.map_structure(
        lambda array, value: array.write(index, value), memory, tuple(row))
    return index + 1, carry, memory, env_seconds + seconds

  spec = env.spec, structs.Episodes(*[
      tf.TensorSpec([len(env)], dtype) for dtype in
      (tf.bool, tf.float32, tf.int32)])
  memory = tf.nest.map_structure(
      lambda field: tf.TensorArray(
          field.dtype, steps, element_shape=field.shape), spec)
  _, carry, memory, env_seconds = tf.while_loop(
      lambda index, *_: index < steps, body,
      (0, carry, memory, tf.constant(0.0, tf.float64)),
      maximum_iterations=steps)
  transitions, episodes = tf.nest.map_structure(
      lambda field, array: tf.ensure_shape(
          array.stack(), [steps, *field.shape]), spec, memory)
  return Simulation(carry, transitions, episodes, env_seconds)
