"""Combines the transitions that several machines have collected."""

from typing import Any, NamedTuple

import tensorflow as tf

from agents import types
from agents.distributed import collectives
from agents.simulation import in_graph_batch_env, simulate


class _Share(NamedTuple):
  """T steps of the N environments of one machine."""

  action: tf.Tensor  # [T, N, ...]
  results: in_graph_batch_env.StepResult  # [T, N, ...]
  final_observ: tf.Tensor  # [E, ...], last observations of episodes.
  state: Any  # [N, ...], state of the policy.


def gather_simulations(
    communicator: collectives.Communicator, simulation: simulate.Simulation,
    carry: types.Carry, num_steps: int | None) -> simulate.Simulation:
  """Returns the simulation of all machines together.

  Args:
    communicator: The machines.
    simulation: Simulation of this machine's environments.
    carry: Carry of all environments before the simulation.
    num_steps: Number of steps, or None if it differs between machines.

  Returns:
    Simulation of all environments, with "exchange" in its seconds.
  """
  shares, seconds = communicator.all_gather(_share(simulation))
  if num_steps is None:
    longest = tf.reduce_max([tf.shape(share.action)[0] for share in shares])
    shares = [_pad(share, longest) for share in shares]
  action, results = tf.nest.map_structure(
      lambda *parts: tf.concat(parts, 1),
      *((share.action, share.results) for share in shares))
  num_envs = carry.observ.shape[0]
  action, results = tf.nest.map_structure(lambda tensor: tf.ensure_shape(
      tensor, [num_steps, num_envs, *tensor.shape[2:]]), (action, results))
  state = tf.nest.map_structure(
      lambda *parts: tf.ensure_shape(
          tf.concat(parts, 0), [num_envs, *parts[0].shape[1:]]),
      *(share.state for share in shares))
  carry, transitions = simulate.transitions_of(
      carry, action, results, _final_observ(shares, num_envs), state)
  return simulate.Simulation(
      carry, transitions, {**simulation.seconds, "exchange": seconds})


def _share(simulation: simulate.Simulation) -> _Share:
  following, transitions = simulation.carry, simulation.transitions
  observ = tf.concat(
      [transitions.observ[1:], following.observ[None]], 0)
  return _Share(
      transitions.action, in_graph_batch_env.StepResult(
          observ, transitions.reward, transitions.terminated,
          transitions.truncated, transitions.valid),
      transitions.final_observ, following.state)


def _pad(share: _Share, num_steps: tf.Tensor) -> _Share:
  """Appends steps in which all environments wait."""
  length = tf.shape(share.action)[0]
  rows = tf.minimum(tf.range(num_steps), length - 1)
  action, results = tf.nest.map_structure(
      lambda tensor: tf.gather(tensor, rows), (share.action, share.results))
  stepped = (tf.range(num_steps) < length)[:, None]
  return share._replace(action=action, results=results._replace(
      valid=results.valid & stepped,
      terminated=results.terminated & stepped,
      truncated=results.truncated & stepped))


def _final_observ(shares: list[_Share], num_envs: int) -> tf.Tensor:
  """Returns the last observations of all episodes, by time and environment."""
  final_observ = tf.concat([share.final_observ for share in shares], 0)
  if 0 in final_observ.shape[1:]:
    return final_observ
  positions, first = [], 0
  for share in shares:
    ended = share.results.ended
    time, row = tf.unstack(tf.where(ended), axis=1)
    positions.append(time * num_envs + first + row)
    first += ended.shape[1]
  return tf.gather(final_observ, tf.argsort(tf.concat(positions, 0)))
