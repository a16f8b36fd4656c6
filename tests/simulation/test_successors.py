"""Each transition contains its true successor, also at ends of episodes."""

import functools
from typing import Any

import gymnasium
import numpy as np
import pytest
import tensorflow as tf

from agents.environments import batch_env
from agents.environments.data import episode_data
from agents.simulation import in_graph_batch_env, simulate
from tests import toy
from tests.support import modes

_SEED = 3
_INF = np.inf
_SPACES = {
  "vector": gymnasium.spaces.Box(-_INF, _INF, (2,), np.float32),
  "scalar": gymnasium.spaces.Box(-_INF, _INF, (), np.float32),
  "image": gymnasium.spaces.Box(0, 255, (4, 3, 1), np.uint8),
  "choice": gymnasium.spaces.Discrete(2**60),
}
# Episode length of each environment.
_LENGTHS = {
  "one": (3,),
  "single steps": (1, 1, 1),
  "different": (2, 3, 7),
  "equal": (4, 4, 4),
  "mixed": (2, 4, 2, 5),
  "endless": (99, 99),
}
_spaces = pytest.mark.parametrize("space", _SPACES)
_lengths = pytest.mark.parametrize("lengths", _LENGTHS)
_both_modes = pytest.mark.parametrize("eager", [True, False], ids=["eager", "graph"])


class _SeedAndStep(toy.Counter):
  """Observes a value of its space that depends on seed and step."""

  def __init__(self, space: gymnasium.Space, length: int):
    super().__init__(length)
    self.observation_space = space

  def _observ(self):
    space, key = self.observation_space, 100 * self._seed + self._step
    if isinstance(space, gymnasium.spaces.Discrete):
      return 2**53 + key
    rng = np.random.default_rng(key)
    if space.dtype == np.uint8:
      return rng.integers(0, 256, space.shape, np.uint8)
    return rng.normal(0, 9, space.shape).astype(np.float32)


class _Actor:
  """Returns the step counter as the action of every environment."""

  def noise(self, step_counter, num_envs):
    return tf.fill([num_envs, 1], tf.cast(step_counter, tf.float32))

  def initial_state(self, num_envs):
    return ()

  def act(self, observ, state, noise):
    return noise, state


def _constructors(space, lengths):
  return [functools.partial(_SeedAndStep, _SPACES[space], length) for length in _LENGTHS[lengths]]


def _step_alone(constructors, targets):
  """Steps each environment separately, without a batch environment.

  Args:
    constructors: Functions that return the environments.
    targets: For each simulation, the number of steps, or a tuple with the
      number of episodes of each environment.

  Returns:
    Nested list over simulations, steps and environments. Each element contains
    the observation, the true successor, and whether the episode ended.
  """
  simulations: list[Any] = []
  envs = [constructor() for constructor in constructors]
  episode = [0] * len(envs)
  observs = [_reset(env, index, 0) for index, env in enumerate(envs)]
  for target in targets:
    rows: list[Any] = []
    episodes_left = None if isinstance(target, int) else list(target)
    while len(rows) < target if episodes_left is None else any(episodes_left):
      row = []
      for index, env in enumerate(envs):
        observ = next_observ = observs[index]
        end = False
        if episodes_left is None or episodes_left[index]:
          next_observ, _, end, _, _ = env.step(np.zeros(1))
        observs[index] = next_observ
        if end:
          episode[index] += 1
          observs[index] = _reset(env, index, episode[index])
          if episodes_left:
            episodes_left[index] -= 1
        row.append((observ, next_observ, end))
      rows.append(row)
    simulations.append(rows)
  return simulations


def _reset(env, index, episode):
  return env.reset(seed=episode_data.episode_seed(_SEED, index, episode))[0]


def _assert_same_bits(transitions, rows):
  assert len(transitions.observ) == len(rows)
  for time, row in enumerate(rows):
    for index, (observ, next_observ, end) in enumerate(row):
      for field, expected in (
        (transitions.observ, observ),
        (transitions.next_observ, next_observ),
        (transitions.terminated, end),
      ):
        tensor = field[time, index]
        array = np.array(expected, tensor.dtype.as_numpy_dtype)
        assert tensor.shape == array.shape
        assert tensor.numpy().tobytes() == array.tobytes(), (time, index)


def _simulator(batch):
  """Returns a function that runs a simulation from a carry to a target."""
  env = in_graph_batch_env.InGraphBatchEnv(batch)

  @functools.partial(tf.function, autograph=False)
  def run(carry, target):
    if isinstance(target, int):
      return simulate.simulate(env, _Actor(), carry, target)
    return simulate.simulate_episodes(
      env, _Actor(), carry, 40, True, tf.constant(target, tf.int32)
    )[0]

  return run


def _assert_successors(constructors, targets, eager):
  """Compares consecutive simulations with separate environments."""
  expected = _step_alone(constructors, targets)
  with batch_env.BatchEnv(constructors, seed=_SEED) as batch, modes.functions_run_eagerly(eager):
    run = _simulator(batch)
    carry = simulate.initial_carry(batch.reset())
    for target, rows in zip(targets, expected, strict=True):
      simulation = run(carry, target)
      carry = simulation.carry
      _assert_same_bits(simulation.transitions, rows)
      # The simulation has already taken all final observations.
      assert batch.take_final_observ() == []


@pytest.mark.parametrize("name", _SPACES)
def test_observations_of_separate_environments_are_distinct(name):
  # With equal observations, other tests could mistake a reset for a successor.
  (rows,) = _step_alone(_constructors(name, "mixed"), [12])
  distinct = {np.array(value).tobytes() for row in rows for *observs, _ in row for value in observs}
  # Four first observations, 48 successors, and resets before the last step.
  resets = sum(end for row in rows[:-1] for *_, end in row)
  assert len(distinct) == 4 + 4 * 12 + resets and resets > 5


@pytest.mark.fast_variants(8)
@_lengths
@_spaces
def test_successors_of_one_simulation(space, lengths):
  _assert_successors(_constructors(space, lengths), [12], eager=True)


@pytest.mark.fast_variants(1)
@pytest.mark.parametrize(
  "space, lengths",
  [
    *((space, "mixed") for space in _SPACES),
    *(
      pytest.param("vector", lengths, marks=pytest.mark.slow)
      for lengths in _LENGTHS
      if lengths != "mixed"
    ),
  ],
)
def test_successors_of_consecutive_simulations(space, lengths):
  # Some simulations end inside an episode. In other ones, no episode ends.
  _assert_successors(_constructors(space, lengths), [5, 1, 1, 1, 8, 2], eager=False)


@pytest.mark.fast_variants(4)
@pytest.mark.parametrize("lengths", ["different", "equal"])
@pytest.mark.parametrize(
  "space, eager",
  [
    *((space, True) for space in _SPACES),
    ("vector", False),
    *(pytest.param(space, False, marks=pytest.mark.slow) for space in _SPACES if space != "vector"),
  ],
)
def test_successors_of_fixed_numbers_of_episodes(space, lengths, eager):
  _assert_successors(
    _constructors(space, lengths), [(1, 1, 1), (3, 1, 0), (0, 2, 1), (2, 2, 2)], eager
  )


@_both_modes
@pytest.mark.parametrize("target", [5, (2, 1)], ids=["steps", "episodes"])
def test_empty_observations_have_successors(target, eager):
  empty = gymnasium.spaces.Box(-_INF, _INF, (0,), np.float32)
  _assert_successors(
    [functools.partial(_SeedAndStep, empty, length) for length in (2, 3)], [target] * 2, eager
  )


@pytest.mark.fast_variants(2)
@pytest.mark.parametrize("target", [4, (2, 1, 3)], ids=["steps", "episodes"])
@pytest.mark.parametrize("space", ["vector", "image", "choice"])
def test_successors_of_several_simulations_in_one_graph(space, target):
  constructors = _constructors(space, "different")
  expected = _step_alone(constructors, [target] * 3)
  with batch_env.BatchEnv(constructors, seed=_SEED) as batch:
    run = _simulator(batch)

    @tf.function
    def run_all(carry):
      transitions = []
      for _ in range(3):
        simulation = run(carry, target)
        carry = simulation.carry
        transitions.append(simulation.transitions)
      return transitions

    carry = simulate.initial_carry(batch.reset())
    for transitions, rows in zip(run_all(carry), expected, strict=True):
      _assert_same_bits(transitions, rows)
    assert batch.take_final_observ() == []


def test_final_observations_are_taken_although_successors_are_unused():
  # An evaluation uses only the scores.
  constructors = _constructors("vector", "different")
  with batch_env.BatchEnv(constructors, seed=_SEED) as batch:
    run = _simulator(batch)

    @tf.function
    def play(carry):
      return run(carry, (2, 1, 1)).carry

    carry = simulate.initial_carry(batch.reset())
    for _ in range(2):
      carry = play(carry)
      assert batch.take_final_observ() == []
    assert len(batch.take_finished()) == 8
