"""The loop that fuses inference, stepping and remembering."""

from __future__ import annotations

from typing import Any
from typing import NamedTuple
from typing import Protocol

import numpy as np
import tensorflow as tf

from agents import spaces
from agents import types
from agents.simulation import in_graph_batch_env


class Actor(Protocol):
  """What the simulation knows of an algorithm."""

  def initial_state(self, amount: int) -> Any:
    """Return what is remembered where `amount` episodes begin: a structure of
    zeros of shape [amount, ...], or of nothing."""

  def noise(self, clock: tf.Tensor, amount: int) -> tf.Tensor:
    """Return what chance adds to `amount` actions, [amount, ...] float32."""

  def act(self, observ: tf.Tensor, state: Any, noise: tf.Tensor | None
          ) -> tuple[tf.Tensor, Any]:
    """Return actions for observations of shape [N, ...], [N, ...], and what is
    to be remembered.

    Without noise, they are what the policy holds best.
    """


class Simulation(NamedTuple):
  """What happened in T steps of all environments."""

  carry: types.Carry  # To continue from.
  transitions: types.Transition  # [T, B, ...]
  left: tf.Tensor  # [N] int32, episodes of the quota still to play here.
  env_seconds: tf.Tensor  # [] float64, in the environments and getting there.
  exchange_seconds: tf.Tensor  # [] float64, with other machines.
  news: list[tf.Tensor]  # From each machine, bytes; see `InGraphBatchEnv`.


def initial_carry(observ: np.ndarray, clock: Any = 0,
                  state: Any = types.NOTHING
                  ) -> types.Carry:
  """Begin with all episodes at their first observation.

  Args:
    observ: From `BatchEnv.reset`.
    clock: To count random numbers from.
    state: From `Actor.initial_state`.
  """
  return types.Carry(tf.constant(spaces.as_bytes(np.asarray(observ))),
                       tf.constant(clock, tf.int64), state)


def simulate(env: in_graph_batch_env.InGraphBatchEnv, actor: Actor,
             carry: types.Carry, steps: int, explore: bool,
             quota: tf.Tensor | None = None) -> Simulation:
  """Step all environments `steps` times, or until they have done their quota.

  If they are in groups, these take turns, and one acts while others step. The
  loop remembers actions and packed answers; all that can be done for the whole
  collection at once is done behind it. There, too, machines that step some of
  the environments each tell the others what has come of it.

  Args:
    env: Environments whose latest observations `carry` holds.
    actor: Chooses the actions.
    carry: From `initial_carry` or the simulation before.
    steps: Number of batched steps, T; with a quota, T is at most this.
    explore: Sample actions, or take the mean action.
    quota: Episodes that each environment plays, of shape [B] and type int32,
      those that break off among them. Then it waits for the others, at the
      beginning of its next one. The environments must be in one group.
  """
  batch, groups, here = len(env), env.groups, env.rows
  size = batch // groups
  if quota is not None and groups > 1:
    raise ValueError("Environments with a quota must be in one group.")

  def unfinished(step, clock, observ, states, left, memory, env_seconds):
    return step < steps if quota is None else tf.reduce_any(left > 0)

  def noise_at(clock):
    return actor.noise(clock, env.whole)[here]

  noises = None
  if explore and quota is None:
    # All at once: between the steps of environments, which leave nothing else
    # in the caches, the same operations take several times as long.
    noises = tf.map_fn(
        noise_at, carry.step_counter + tf.range(steps, dtype=tf.int64),
        fn_output_signature=tf.float32, parallel_iterations=1)

  def body(step, clock, observ, states, left, memory, env_seconds):
    states = list(states)  # Of each group.
    noise = None
    if explore:
      noise = noise_at(clock) if noises is None else noises[step]
    for group in range(groups):
      rows = slice(group * size, (group + 1) * size)
      # Side by side, noise and policy would take longer: TensorFlow would wake
      # a thread for one of them.
      with tf.control_dependencies([] if noise is None else [noise]):
        action, states[group] = _act(
            actor, observ, states[group],
            None if noise is None else noise[rows],
            env.batch_env.rows.start + rows.start, env.batch_env.whole)
      packed, seconds = env.exchange(
          action, None if quota is None else left > 0)
      answers = env.unpack(packed)
      memory = tf.nest.map_structure(
          lambda array, value, index=step * groups + group: array.write(
              index, value), memory, (action, packed))
      # From here on, this is about the group whose turn is next.
      observ = answers.observ
      env_seconds += seconds
      following = (group + 1) % groups
      states[following] = _remembered(
          states[following], answers, following <= group or step > 0)
    if quota is not None:
      broken = (left > 0) & ~answers.valid
      left -= tf.cast(
          answers.terminated | answers.truncated | broken, tf.int32)
    return (step + 1, clock + 1, observ, tuple(states), left, memory,
            env_seconds)

  left = tf.zeros([batch], tf.int32) if quota is None else quota[here]
  spec = env.action_spec, env.packed_spec
  memory = tf.nest.map_structure(
      lambda field: tf.TensorArray(
          field.dtype, steps * groups, element_shape=field.shape), spec)
  states = tuple(
      tf.nest.map_structure(
          lambda tensor, first=first: tensor[first:first + size], carry.state)
      for first in range(here.start, here.stop, size))
  taken, _, observ, states, left, memory, env_seconds = tf.while_loop(
      unfinished, body, (
          0, carry.step_counter, carry.observ[here.start:here.start + size], states,
          left, memory, tf.constant(0.0, tf.float64)),
      maximum_iterations=steps)
  with tf.control_dependencies([observ]):
    rest, seconds = env.drain()
  states = (states[0], *(
      _remembered(state, env.unpack(answers))
      for state, answers in zip(states[1:], tf.unstack(rest), strict=True)))
  state = tf.nest.map_structure(lambda *parts: tf.concat(parts, 0), *states)
  length = steps if quota is None else None
  def own_batch(tensor):
    """Turn [T * groups, N, ...] into [T, B, ...]."""
    return tf.ensure_shape(
        tf.reshape(tensor, [taken, batch, *tensor.shape[2:]]),
        [length, batch, *tensor.shape[2:]])
  action, packed = tf.nest.map_structure(
      lambda array: array.gather(tf.range(taken * groups)), memory)
  # Answers come that many turns after their actions.
  packed = tf.concat([packed[groups - 1:], rest], 0)
  action, answers = tf.nest.map_structure(
      own_batch, (action, env.unpack(packed)))
  told, exchange_seconds = env.machines.tell(_Collected(
      action, answers, env.final_observ(answers), state,
      env.latest_news(answers)))
  action, answers, final, state = _whole(
      told, quota is not None)[:4]
  clock = carry.step_counter + tf.shape(action, tf.int64)[0]
  observ = tf.concat([carry.observ[None], answers.observ], 0)
  transitions = types.Transition(
      observ[:-1], action, answers.reward, answers.terminated,
      answers.truncated, in_graph_batch_env.successors(answers, final),
      answers.valid, final)
  with tf.control_dependencies([final]):
    # The next simulation must not begin before these have been taken.
    carry = types.Carry(tf.identity(observ[-1]), clock, state)
  return Simulation(carry, transitions, left, env_seconds + seconds,
                    exchange_seconds, [part.news for part in told])


class _Collected(NamedTuple):
  """What T steps of N environments have led to."""

  action: tf.Tensor  # [T, N, ...]
  answers: in_graph_batch_env.Answers  # [T, N, ...]
  final: tf.Tensor  # [E, ...], observations that ended an episode.
  state: Any  # [N, ...], what the policy remembers.
  news: tf.Tensor  # [n] uint8


def _whole(told: list[_Collected], waited: bool) -> _Collected:
  """Put together what all machines have collected.

  Args:
    told: By each of them.
    waited: Whether those that have stepped less often wait for the others.
  """
  steps = None if waited else told[0].action.shape[0]
  if len(told) > 1 and waited:
    most = tf.reduce_max([tf.shape(part.action)[0] for part in told])
    told = [_waiting(part, most) for part in told]
  def together(axis):
    return lambda *parts: parts[0] if len(parts) == 1 else tf.concat(
        parts, axis)
  action, answers = tf.nest.map_structure(together(1), *(
      (part.action, part.answers) for part in told))
  batch = action.shape[1]
  action, answers = tf.nest.map_structure(lambda tensor: tf.ensure_shape(
      tensor, [steps, batch, *tensor.shape[2:]]), (action, answers))
  state = tf.nest.map_structure(lambda *parts: tf.ensure_shape(
      together(0)(*parts), [batch, *parts[0].shape[1:]]), *(
          part.state for part in told))
  final = together(0)(*(part.final for part in told))
  if len(told) > 1 and 0 not in final.shape[1:]:
    times = []  # In which order these would have come on one machine.
    for index, part in enumerate(told):
      ended = part.answers.terminated | part.answers.truncated
      time, row = tf.unstack(tf.where(ended), axis=1)
      times.append(time * batch + index * ended.shape[1] + row)
    final = tf.gather(final, tf.argsort(tf.concat(times, 0)))
  return _Collected(action, answers, final, state, told[0].news)


def _waiting(part: _Collected, steps: tf.Tensor) -> _Collected:
  """Add steps up to a number in which the environments have only waited."""
  taken = tf.shape(part.action)[0]
  last = tf.minimum(tf.range(steps), taken - 1)
  action, answers = tf.nest.map_structure(
      lambda tensor: tf.gather(tensor, last), (part.action, part.answers))
  stepped = (tf.range(steps) < taken)[:, None]
  return part._replace(action=action, answers=answers._replace(
      valid=answers.valid & stepped,
      terminated=answers.terminated & stepped,
      truncated=answers.truncated & stepped))


def _act(actor: Actor, observ: tf.Tensor, state: Any, noise: tf.Tensor | None,
         first: int, whole: int) -> tuple[tf.Tensor, Any]:
  """Return what `actor.act` does, the same bits as for the whole batch.

  The last bits of a product of matrices depend on how many rows there are, and
  those of exponentials on their place among them. So other rows stand where
  those of other groups and machines would.

  Args:
    actor: Chooses the actions.
    observ: Of N environments, [N, ...].
    state: What the policy remembers of them, [N, ...].
    noise: For their actions, [N, ...].
    first: Number of the first of them in the whole batch.
    whole: Environments in that.
  """
  amount = observ.shape[0]
  if amount == whole:
    return actor.act(observ, state, noise)
  rows = np.clip(np.arange(whole) - first, 0, amount - 1)
  observ, state, filled = tf.nest.map_structure(
      lambda tensor: tf.gather(tensor, rows),
      (observ, state, () if noise is None else noise))
  return tf.nest.map_structure(
      lambda tensor: tensor[first:first + amount],
      actor.act(observ, state, None if noise is None else filled))


def _remembered(state: Any, answers: in_graph_batch_env.Answers,
                stepped: bool | tf.Tensor = True) -> Any:
  """Return the state with zeros where another episode begins.

  Args:
    state: Of N environments, [N, ...].
    answers: Of the same.
    stepped: False before they have answered to a step.
  """
  goes_on = answers.valid & ~(answers.terminated | answers.truncated)
  goes_on |= ~tf.convert_to_tensor(stepped)
  def keep(tensor):
    mask = tf.reshape(goes_on, [-1] + [1] * (tensor.shape.rank - 1))
    return tf.where(mask, tensor, tf.zeros_like(tensor))
  return tf.nest.map_structure(keep, state)
