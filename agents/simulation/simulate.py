"""The simulation loop: inference, stepping and storing in one graph."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
import tensorflow as tf

from agents import spaces, types
from agents.simulation import in_graph_batch_env

_Env = in_graph_batch_env.InGraphBatchEnv


class Actor(Protocol):
  """The methods of an algorithm that choose actions."""

  def initial_state(self, num_envs: int) -> Any:
    """Returns the state at the start of episodes: zeros of shape [B, ...]."""

  def noise(self, step_counter: tf.Tensor, num_envs: int) -> tf.Tensor:
    """Returns random numbers to sample actions, [B, ...] float32."""

  def act(self, observ: tf.Tensor, state: Any, noise: tf.Tensor | None) -> tuple[tf.Tensor, Any]:
    """Returns actions for observations, both [B, ...], and the next state.

    Without noise, the actions are the mode of the distribution.
    """


class Simulation(NamedTuple):
  """T steps of all environments."""

  carry: types.Carry  # Start of the next simulation.
  transitions: types.Transition  # [T, B, ...]
  # Durations by name, in seconds, float64. "env" is the duration of all batched
  # steps, including the calls from the graph to Python.
  seconds: dict[str, tf.Tensor]


def initial_carry(
  observ: np.ndarray, step_counter: Any = 0, state: Any = types.NOTHING
) -> types.Carry:
  """Returns the carry at the start of episodes.

  Args:
    observ: First observations, [B, ...].
    step_counter: Number of batched steps so far; seeds the random numbers.
    state: Result of `Actor.initial_state`.
  """
  return types.Carry(
    tf.constant(spaces.as_bytes(np.asarray(observ))), tf.constant(step_counter, tf.int64), state
  )


def simulate(env: _Env, actor: Actor, carry: types.Carry, num_steps: int) -> Simulation:
  """Steps all environments `num_steps` times with sampled actions.

  The loop stores only actions and packed results. The other tensors are
  computed after the loop, for all steps at once.

  Args:
    env: B environments; `carry` contains their latest observations.
    actor: Chooses the actions.
    carry: Result of `initial_carry` or of the previous simulation.
    num_steps: Number of batched steps, T.

  Returns:
    Transitions of shape [T, B, ...], and the carry after these steps.
  """
  # Draws the noise of all steps before the loop. Between two steps, the draw
  # would take several times as long, because environments evict the CPU caches.
  noise = tf.map_fn(
    lambda counter: actor.noise(counter, len(env)),
    carry.step_counter + tf.range(num_steps, dtype=tf.int64),
    fn_output_signature=tf.float32,
    parallel_iterations=1,
  )
  return _loop(env, actor, carry, num_steps, lambda step: noise[step])[0]


def simulate_episodes(
  env: _Env,
  actor: Actor,
  carry: types.Carry,
  max_steps: int,
  explore: bool,
  episodes_left: tf.Tensor,
) -> tuple[Simulation, tf.Tensor]:
  """Steps the environments until each one has played its share of episodes.

  An environment that has played its episodes waits at the start of the next
  episode.

  Args:
    env: B environments; `carry` contains their latest observations.
    actor: Chooses the actions.
    carry: Result of `initial_carry` or of the previous simulation.
    max_steps: Maximum number of batched steps.
    explore: True samples actions; false takes the mode of their distribution.
    episodes_left: Number of episodes that each environment plays, [B] int32.
      Failed episodes count, too.

  Returns:
    Simulation of up to `max_steps` steps, and the number of episodes that each
    environment has not played yet, [B] int32.
  """

  def noise(step: tf.Tensor) -> tf.Tensor | None:
    step_counter = carry.step_counter + tf.cast(step, tf.int64)
    return actor.noise(step_counter, len(env)) if explore else None

  return _loop(env, actor, carry, max_steps, noise, episodes_left)


def make_transitions(
  carry: types.Carry,
  action: tf.Tensor,
  results: in_graph_batch_env.StepFields,
  final_observ: tf.Tensor,
  state: Any,
) -> tuple[types.Carry, types.Transition]:
  """Combines actions and results of T steps.

  Args:
    carry: Carry before the steps.
    action: Actions of shape [T, B, ...].
    results: Results of shape [T, B, ...].
    final_observ: Last observations of episodes, in order of time, [E, ...].
    state: State of the policy after the steps, [B, ...].

  Returns:
    Carry after the steps, and transitions of shape [T, B, ...].
  """
  observ = tf.concat([carry.observ[None], results.observ], 0)
  _, reward, terminated, truncated, valid = results
  next_observ = in_graph_batch_env.successors(results, final_observ)
  transitions = types.Transition(
    observ[:-1], action, reward, terminated, truncated, next_observ, valid, final_observ
  )
  counter = carry.step_counter + tf.shape(action, tf.int64)[0]
  # The next simulation must begin after this one has taken final observations.
  with tf.control_dependencies([final_observ]):
    return types.Carry(tf.identity(observ[-1]), counter, state), transitions


def reset_state(state: Any, continues: tf.Tensor) -> Any:
  """Returns the policy's state, with zeros where another episode begins.

  Args:
    state: Structure of tensors of shape [B, ...].
    continues: Whether the episode continues, [B] bool.

  Returns:
    Structure like `state`.
  """

  def keep(tensor: tf.Tensor) -> tf.Tensor:
    mask = tf.reshape(continues, [-1] + [1] * (tensor.shape.rank - 1))
    return tf.where(mask, tensor, tf.zeros_like(tensor))

  return tf.nest.map_structure(keep, state)


def _loop(
  env: _Env,
  actor: Actor,
  carry: types.Carry,
  max_steps: int,
  noise: Callable[[tf.Tensor], tf.Tensor | None],
  episodes_left: tf.Tensor | None = None,
) -> tuple[Simulation, Any]:
  """Steps `max_steps` times, or until no environment has episodes left."""
  has_quota = episodes_left is not None

  def body(step: tf.Tensor, observ: tf.Tensor, state: Any, *stored: Any) -> tuple[Any, ...]:
    actions, results, seconds, left = stored
    step_noise = noise(step)
    # Draws the noise before the policy runs. In parallel, both would take more
    # time, because TensorFlow would wake another thread.
    with tf.control_dependencies([] if step_noise is None else [step_noise]):
      action, state = actor.act(observ, state, step_noise)
    active = left > 0 if has_quota else None
    packed, step_seconds = env.step_packed(action, active)
    result = env.unpack(packed)
    if has_quota:
      left -= tf.cast(result.ended | active & ~result.valid, tf.int32)
    state = reset_state(state, result.valid & ~result.ended)
    actions, results = actions.write(step, action), results.write(step, packed)
    return step + 1, result.observ, state, actions, results, seconds + step_seconds, left

  specs = env.action_spec, env.packed_spec
  arrays = [tf.TensorArray(spec.dtype, max_steps, element_shape=spec.shape) for spec in specs]
  seconds, left = tf.constant(0.0, tf.float64), episodes_left if has_quota else ()
  step, _, state, *arrays, seconds, left = tf.while_loop(
    lambda step, *carried: tf.reduce_any(carried[-1] > 0) if has_quota else step < max_steps,
    body,
    (0, carry.observ, carry.state, *arrays, seconds, left),
    maximum_iterations=max_steps,
  )
  action, packed = (
    array.gather(tf.range(step)) if has_quota else array.stack() for array in arrays
  )
  results = env.unpack(packed)
  carry, transitions = make_transitions(carry, action, results, env.final_observ(results), state)
  return Simulation(carry, transitions, {"env": seconds}), left
