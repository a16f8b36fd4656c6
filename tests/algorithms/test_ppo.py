"""BatchPPO against an independent transcription, and its properties."""

import dataclasses
import functools
import math

import gymnasium
import numpy as np
import pytest
import tensorflow as tf

from agents import config as config_lib
from agents import structs
from agents.algorithms import ppo
from agents.networks import feed_forward
from agents.ops import random
from tests import modes
from tests.algorithms import reference

_STEPS, _BATCH = 4, 2
_LAYERS = (3, 3)

# Large steps and narrow bounds, so that two epochs meet every clip.
_CONFIG = config_lib.Algorithm(
    segment_length=_STEPS, update_epochs=2, minibatch_size=4,
    learning_rate=0.03, lr_schedule="linear", discount=0.9, gae_lambda=0.8,
    clip_ratio=0.05, value_coef=0.7, entropy_coef=0.02, max_grad_norm=6.0,
    observ_clip=1.2)
_ONE_MINIBATCH = dataclasses.replace(
    _CONFIG, update_epochs=1, minibatch_size=_STEPS * _BATCH)

_OBSERV = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)
_SPACES = {"gaussian": gymnasium.spaces.Box(-1, 1, (2,), np.float32),
           "categorical": gymnasium.spaces.Discrete(3)}
_HEADS = {"gaussian": reference.Gaussian, "categorical": reference.Categorical}
_both_policies = pytest.mark.parametrize("policy", list(_SPACES))
_both_modes = pytest.mark.parametrize(
    "eager", [True, False], ids=["eager", "compiled"])


def _algorithm(config=_CONFIG, action_space=_SPACES["gaussian"],
               observation_space=_OBSERV, init_std=0.6, seed=11):
  if isinstance(action_space, gymnasium.spaces.Discrete):
    policy = feed_forward.feed_forward_categorical(
        _LAYERS, int(action_space.n), seed)
  else:
    policy = feed_forward.feed_forward_gaussian(
        _LAYERS, math.prod(action_space.shape), init_std, seed)
  value = feed_forward.feed_forward_value(_LAYERS, seed + 1)
  algorithm = ppo.BatchPPO(
      config, observation_space, action_space, policy, value, seed)
  # Biases and the policy's last layer begin at zero or close to it.
  rng = np.random.default_rng(seed)
  for name, variable in algorithm.variables().items():
    if name.endswith(("kernel", "bias")):
      variable.assign(0.7 * rng.normal(size=variable.shape))
  return algorithm


@functools.cache
def _built(policy):
  algorithm = _algorithm(action_space=_SPACES[policy])
  return algorithm, _state(algorithm)


def _shared(policy):
  """Return one algorithm, as it was when new, that compiles only once."""
  algorithm, state = _built(policy)
  for name, variable in algorithm.variables().items():
    variable.assign(state[name])
  return algorithm


def _state(algorithm):
  return {name: np.array(variable)
          for name, variable in algorithm.variables().items()}


def _draw(rng, space, shape):
  """Numbers for a space; most of the actions lie outside of a Box."""
  if isinstance(space, gymnasium.spaces.Discrete):
    return rng.integers(0, space.n, shape)
  if space.dtype == np.uint8:
    return rng.integers(0, 256, (*shape, *space.shape)).astype(np.uint8)
  return 2 * rng.normal(size=(*shape, *space.shape)).astype(np.float32)


def _segment(seed, action_space=_SPACES["gaussian"], observation_space=_OBSERV):
  rng = np.random.default_rng(seed)
  shape = _STEPS, _BATCH
  terminated, truncated = np.zeros((2, *shape), bool)
  terminated[1, 0] = truncated[2, 1] = truncated[3, 0] = True
  return structs.Transition(
      observ=_draw(rng, observation_space, shape),
      action=_draw(rng, action_space, shape),
      reward=(1 + 3 * rng.normal(size=shape)).astype(np.float32),
      terminated=terminated, truncated=truncated,
      next_observ=_draw(rng, observation_space, shape))


def _learn(algorithm, segment, clock=0, progress=0.25):
  metrics = algorithm.learn(
      structs.Transition(*map(tf.constant, segment)),
      tf.constant(clock, tf.int64), tf.constant(progress))
  return {name: value.numpy() for name, value in metrics.items()}


def _orders(config, clock, seed=11):
  """The order of the rows at every epoch, drawn as learning draws it."""
  @tf.function(jit_compile=True)
  def order(counter):
    key = random.key(random.stream(seed, "shuffle"), counter)
    return random.permutation(_STEPS * _BATCH, key)
  return [order(tf.constant(clock * config.update_epochs + epoch)).numpy()
          for epoch in range(config.update_epochs)]


def _check_against_reference(algorithm, config, policy):
  """Compare all variables and metrics over three phases of learning."""
  state = _state(algorithm)
  clipped, norms = [], []
  for phase in range(3):
    clock, progress = phase * _STEPS, 0.25 * phase
    segment = _segment(phase, _SPACES[policy])
    metrics = _learn(algorithm, segment, clock, progress)
    state, expected, phase_norms = reference.learn(
        state, segment, _orders(config, clock), progress, config,
        len(_LAYERS), _HEADS[policy])
    for got, wanted in ((metrics, expected), (_state(algorithm), state)):
      assert got.keys() == wanted.keys()
      for name, value in wanted.items():
        np.testing.assert_allclose(
            got[name], value, rtol=1e-4, atol=1e-5,
            err_msg=f"{name}, phase {phase}")
    clipped.append(expected["clip_fraction"])
    norms.extend(phase_norms)
  # Else a clip was never, or always, in effect.
  assert 0 < np.mean(clipped) < 1
  assert min(norms) < config.max_grad_norm < max(norms)


@_both_policies
@_both_modes
def test_learning_equals_its_transcription(policy, eager):
  with modes.functions_run_eagerly(eager):
    _check_against_reference(_shared(policy), _CONFIG, policy)


@pytest.mark.parametrize("changes", [
    {"lr_schedule": "kl_adaptive", "learning_rate": 4e-3},
    {"lr_schedule": "constant"}, {"recompute_advantages": False},
    {"normalize_advantage": False}, {"normalize_observ": False},
    {"normalize_return": False}, {"entropy_coef": 0.0, "value_coef": 2.0},
    {"discount": 1.0, "gae_lambda": 1.0}], ids=str)
def test_every_switch_does_what_its_transcription_does(changes):
  config = dataclasses.replace(_CONFIG, **changes)
  with modes.functions_run_eagerly():
    _check_against_reference(_algorithm(config), config, "gaussian")


@_both_policies
@_both_modes
def test_without_a_step_the_ratio_is_one_and_the_kl_zero(policy, eager):
  algorithm = _shared(policy)
  before = _state(algorithm)
  with modes.functions_run_eagerly(eager):
    metrics = _learn(algorithm, _segment(0, _SPACES[policy]), progress=1.0)
  assert metrics["learning_rate"] == metrics["clip_fraction"] == 0
  assert abs(metrics["kl"]) < 1e-7
  assert abs(metrics["policy_loss"]) < 1e-6
  assert metrics["grad_norm"] > 0
  for name, value in _state(algorithm).items():
    if name.startswith(("policy/", "value/")):
      np.testing.assert_array_equal(value, before[name], err_msg=name)


@_both_policies
def test_at_the_first_minibatch_the_ratio_is_one(policy):
  # Any ratio but one would be counted as clipped.
  config = dataclasses.replace(_ONE_MINIBATCH, clip_ratio=1e-4)
  algorithm = _algorithm(config, _SPACES[policy])
  with modes.functions_run_eagerly():
    metrics = _learn(algorithm, _segment(0, _SPACES[policy]))
  assert metrics["clip_fraction"] == 0
  assert abs(metrics["policy_loss"]) < 1e-6  # Normalized advantages' mean.
  assert metrics["kl"] > 1e-5  # Yet it has moved since.


def _one_step_values(algorithm, segment):
  """Values of all states and successors, from the networks themselves."""
  state = _state(algorithm)
  def value(observ):
    hidden = np.clip(observ.reshape(-1, 2), -1.2, 1.2)
    for index in range(2):
      hidden = np.tanh(hidden @ state[f"value/hidden_{index}/kernel"]
                       + state[f"value/hidden_{index}/bias"])
    return (hidden @ state["value/output/kernel"]
            + state["value/output/bias"])[:, 0]
  return value(segment.observ), value(segment.next_observ)


@pytest.mark.parametrize("terminated", [True, False],
                         ids=["terminated", "truncated"])
def test_truncation_bootstraps_and_termination_does_not(terminated):
  config = dataclasses.replace(_ONE_MINIBATCH, normalize_advantage=False)
  algorithm = _algorithm(config)
  ends = np.full((_STEPS, _BATCH), True)
  segment = _segment(0)._replace(
      terminated=ends & terminated, truncated=ends & (not terminated))
  value, next_value = _one_step_values(algorithm, segment)
  advantage = segment.reward.reshape(-1) - value
  if not terminated:
    advantage += 0.9 * next_value
  with modes.functions_run_eagerly():
    metrics = _learn(algorithm, segment)
  np.testing.assert_allclose(
      metrics["policy_loss"], -advantage.mean(), rtol=1e-4)
  np.testing.assert_allclose(
      metrics["value_loss"], (advantage ** 2).mean(), rtol=1e-4)


def _act(algorithm, observ, clock=0, explore=True):
  return algorithm.act(
      tf.constant(observ), tf.constant(clock, tf.int64), explore).numpy()


@_both_policies
def test_without_exploring_the_action_is_the_mode(policy):
  algorithm = _shared(policy)
  observ = _draw(np.random.default_rng(0), _OBSERV, (50,))
  state = _state(algorithm)
  hidden = np.clip(observ, -1.2, 1.2)
  for index in range(2):
    hidden = np.tanh(hidden @ state[f"policy/hidden_{index}/kernel"]
                     + state[f"policy/hidden_{index}/bias"])
  output = hidden @ state["policy/output/kernel"] + state["policy/output/bias"]
  expected = output if policy == "gaussian" else output.argmax(-1)
  for clock in (0, 1):
    np.testing.assert_allclose(
        _act(algorithm, observ, clock, explore=False), expected, rtol=1e-4,
        atol=1e-5)


@_both_policies
def test_exploring_repeats_by_seed_and_clock(policy):
  observ = np.zeros((50, 2), np.float32)
  algorithm = _algorithm(action_space=_SPACES[policy])
  first, again, later = (_act(algorithm, observ, clock) for clock in (3, 3, 4))
  np.testing.assert_array_equal(first, again)
  assert (first != later).any()
  other = _algorithm(action_space=_SPACES[policy], seed=12)
  for name, variable in other.variables().items():
    if name.startswith("policy/"):
      variable.assign(algorithm.variables()[name])
  assert (_act(other, observ, 3) != first).any()


def test_exploring_leaves_the_action_space_where_the_noise_does():
  algorithm = _algorithm(init_std=3.0)
  observ = np.zeros((2000, 2), np.float32)
  action = _act(algorithm, observ)
  noise = action - _act(algorithm, observ, explore=False)
  # Clipping to [-1, 1] would leave a std below 1.
  np.testing.assert_allclose(noise.std(), 3.0, rtol=0.1)


@modes.both
def test_acting_changes_no_variable(prepare):
  algorithm = _algorithm()
  before = _state(algorithm)
  for explore in (True, False):
    act = prepare(functools.partial(algorithm.act, explore=explore))
    act(tf.fill([5, 2], 9.0), tf.constant(0, tf.int64))
  for name, value in _state(algorithm).items():
    np.testing.assert_array_equal(value, before[name], err_msg=name)


def test_acting_normalizes_by_all_that_was_learned_from():
  algorithm = _algorithm()
  segment = _segment(0)
  observ = segment.observ[0]
  before = _act(algorithm, observ, explore=False)
  with modes.functions_run_eagerly():
    _learn(algorithm, segment, progress=1.0)  # Moves the moments alone.
  after = _act(algorithm, observ, explore=False)
  assert np.abs(before - after).max() > 0.1
  seen = segment.observ.reshape(-1, 2).astype(np.float64)
  raw = _algorithm(dataclasses.replace(_CONFIG, normalize_observ=False))
  normalized = np.clip((observ - seen.mean(0)) / seen.std(0), -1.2, 1.2)
  np.testing.assert_allclose(
      _act(raw, normalized.astype(np.float32), explore=False), after,
      rtol=1e-4, atol=1e-5)


def test_learning_is_traced_once():
  algorithm = _shared("gaussian")
  for phase in range(3):
    _learn(algorithm, _segment(phase), phase * _STEPS, phase / 3)
  assert algorithm.learn.experimental_get_tracing_count() == 1


@_both_policies
def test_variables_are_all_there_is(policy):
  # All that a checkpoint holds makes another algorithm the same, bit for bit.
  config = dataclasses.replace(_CONFIG, lr_schedule="kl_adaptive")
  first = _algorithm(config, _SPACES[policy])
  with modes.functions_run_eagerly():
    _learn(first, _segment(0, _SPACES[policy]))
    second = _algorithm(config, _SPACES[policy])
    targets = second.variables()
    assert targets.keys() == first.variables().keys()
    for name, value in _state(first).items():
      targets[name].assign(value)
    for algorithm in (first, second):
      _learn(algorithm, _segment(1, _SPACES[policy]), clock=_STEPS)
  state = _state(second)
  for name, value in _state(first).items():
    np.testing.assert_array_equal(state[name], value, err_msg=name)


@pytest.mark.parametrize("observation_space, action_space", [
    (gymnasium.spaces.Box(0, 255, (2, 2), np.uint8),
     gymnasium.spaces.Box(-1, 1, (), np.float32)),
    (gymnasium.spaces.Discrete(4), gymnasium.spaces.Box(-1, 1, (2, 3))),
    (gymnasium.spaces.Box(-9, 9, (2, 3)),
     gymnasium.spaces.Discrete(2, start=5)),
    (gymnasium.spaces.Box(-9, 9, ()), gymnasium.spaces.Discrete(2))], ids=str)
def test_learns_in_all_supported_spaces(observation_space, action_space):
  algorithm = _algorithm(_CONFIG, action_space, observation_space)
  segment = _segment(0, action_space, observation_space)
  action = _act(algorithm, segment.observ[0])
  assert action.shape == segment.action[0].shape
  assert action.dtype == segment.action.dtype
  before = _state(algorithm)
  with modes.functions_run_eagerly():
    metrics = _learn(algorithm, segment)
  assert all(np.isfinite(value) for value in metrics.values())
  for name, value in _state(algorithm).items():
    assert np.isfinite(value).all(), name
    if name.endswith("output/kernel"):
      assert (value != before[name]).any(), name


def test_advantages_that_are_all_alike_do_no_harm():
  algorithm = _algorithm()
  for name, variable in algorithm.variables().items():
    if name.startswith("value/"):
      variable.assign(tf.zeros_like(variable))
  segment = _segment(0)
  segment.reward[:] = 0
  with modes.functions_run_eagerly():
    metrics = _learn(algorithm, segment)
  assert all(np.isfinite(value) for value in metrics.values())
  for name, value in _state(algorithm).items():
    assert np.isfinite(value).all(), name


def test_a_minibatch_size_that_does_not_divide_is_refused():
  algorithm = _algorithm(dataclasses.replace(_CONFIG, minibatch_size=3))
  with modes.functions_run_eagerly():
    with pytest.raises(ValueError, match="don't divide 8 rows"):
      _learn(algorithm, _segment(0))
