"""Combines the transitions that several machines have collected."""

import functools

import tensorflow as tf

from agents import types
from agents.distributed import collectives
from agents.simulation import in_graph_batch_env, simulate


def gather_simulations(
  communicator: collectives.Communicator,
  simulation: simulate.Simulation,
  carry: types.Carry,
  num_steps: int | None,
) -> simulate.Simulation:
  """Combines the simulations of all machines.

  Args:
    communicator: Connects the machines, which must have equal numbers of
      environments.
    simulation: Simulation of this machine's environments.
    carry: Carry of all environments before the simulation.
    num_steps: Number of steps T, or None if T differs between machines.

  Returns:
    Simulation of all environments. Its field `seconds` also contains the
    duration of the exchange, by the name "exchange".
  """
  following, steps = simulation.carry, simulation.transitions
  shares, seconds = communicator.all_gather(
    (
      (
        steps.action,
        in_graph_batch_env.StepFields(
          tf.concat([steps.observ[1:], following.observ[None]], 0),
          steps.reward,
          steps.terminated,
          steps.truncated,
          steps.valid,
        ),
      ),
      steps.final_observ,
      following.state,
    )
  )
  stepped, final_observ, states = map(list, zip(*shares, strict=True))
  if num_steps is None:
    longest = tf.reduce_max([tf.shape(action)[0] for action, _ in stepped])
    stepped = [_pad(action, results, longest) for action, results in stepped]
  num_envs = carry.observ.shape[0]
  action, results = tf.nest.map_structure(
    functools.partial(_concat, [num_steps, num_envs]), *stepped
  )
  # The concatenated observations are in order of machines. `make_transitions`
  # expects the order of time, then of environments.
  final_observ = tf.concat(final_observ, 0)
  if 0 not in final_observ.shape[1:]:
    row = tf.where(results.ended)[:, 1]
    machine = row * communicator.world_size // num_envs
    final_observ = tf.gather(final_observ, tf.argsort(tf.argsort(machine, stable=True)))
  carry, transitions = simulate.make_transitions(
    carry,
    action,
    results,
    final_observ,
    tf.nest.map_structure(functools.partial(_concat, [num_envs]), *states),
  )
  return simulate.Simulation(carry, transitions, {**simulation.seconds, "exchange": seconds})


def _concat(shape: list[int | None], *parts: tf.Tensor) -> tf.Tensor:
  """Concatenates along the last axis of `shape`.

  The result has the static shape [*shape, ...].
  """
  return tf.ensure_shape(tf.concat(parts, len(shape) - 1), [*shape, *parts[0].shape[len(shape) :]])


def _pad(
  action: tf.Tensor, results: in_graph_batch_env.StepFields, num_steps: tf.Tensor
) -> tuple[tf.Tensor, in_graph_batch_env.StepFields]:
  """Appends steps in which all environments wait."""
  length = tf.shape(action)[0]
  steps = tf.minimum(tf.range(num_steps), length - 1)
  action, results = tf.nest.map_structure(
    lambda tensor: tf.gather(tensor, steps), (action, results)
  )
  is_collected = (tf.range(num_steps) < length)[:, None]
  return action, results._replace(
    valid=results.valid & is_collected,
    terminated=results.terminated & is_collected,
    truncated=results.truncated & is_collected,
  )
