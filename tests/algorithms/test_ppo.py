"""BatchPPO: comparison with an independent transcription, and properties."""

import dataclasses
import functools
import re

import gymnasium
import numpy as np
import pytest
import tensorflow as tf
from agents.configs.presets import paper

from agents import config as config_lib
from agents import types
from agents.algorithms import feed_forward_model, gradient_accumulation, ppo
from agents.networks import distribution_for_space, feed_forward
from agents.ops import random
from agents.simulation import rollout_to_batch
from tests.algorithms import reference
from tests.support import modes

_STEPS, _BATCH = 6, 3
_ROWS = _STEPS * _BATCH
_NETWORK = config_lib.Network(policy_layers=(4, 3), value_layers=(3,))
_CHUNK_ROWS = 7  # Splits a batch into three chunks.

# Large steps and narrow bounds, so that every bound has an effect.
_MODERN = config_lib.Algorithm(
  segment_length=_STEPS,
  update_epochs=2,
  minibatch_size=5,
  learning_rate=0.03,
  lr_schedule="linear",
  discount=0.9,
  gae_lambda=0.8,
  clip_ratio=0.05,
  value_coef=0.7,
  entropy_coef=0.02,
  max_grad_norm=5.0,
  observ_clip=1.2,
)
_PRESET = paper.apply(config_lib.Config())
_PAPER = dataclasses.replace(
  _PRESET.algorithm,
  update_epochs=4,
  learning_rate=0.05,
  discount=0.9,
  kl_target=0.005,
  observ_clip=1.2,
  reward_clip=1.5,
)
_EVERYTHING = dataclasses.replace(
  _MODERN,
  kl_target=0.004,
  kl_penalty=0.5,
  kl_cutoff_coef=50.0,
  value_clip=0.1,
  reward_scale="reward",
  reward_clip=1.5,
  bootstrap_truncation=False,
  max_grad_norm=1.2,
)
_SETTINGS = {
  "modern": (_MODERN, _NETWORK),
  "paper": (
    _PAPER,
    dataclasses.replace(_PRESET.network, policy_layers=(4, 3), value_layers=(3,), init_std=1.0),
  ),
  "everything": (_EVERYTHING, dataclasses.replace(_NETWORK, activation="elu")),
}

_OBSERV = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)
_SPACES = {
  "gaussian": gymnasium.spaces.Box(-1, 1, (2,), np.float32),
  "categorical": gymnasium.spaces.Discrete(3),
}
_REFERENCES = {"gaussian": reference.Gaussian, "categorical": reference.Categorical}
_both_policies = pytest.mark.parametrize("policy", list(_SPACES))
# `_shared` caches each algorithm, so that each one compiles only once.
_each_shared = pytest.mark.parametrize(
  "settings, policy",
  [
    ("modern", "gaussian"),
    *(
      pytest.param(*case, marks=pytest.mark.slow)
      for case in (("paper", "gaussian"), ("everything", "categorical"))
    ),
  ],
)


def _algorithm(
  config=_MODERN,
  action_space=_SPACES["gaussian"],
  observation_space=_OBSERV,
  network=_NETWORK,
  seed=11,
):
  policy = feed_forward.Policy(distribution_for_space.make(action_space, network), network, seed)
  algorithm = ppo.BatchPPO(
    config,
    observation_space,
    feed_forward_model.Networks(policy, feed_forward.feed_forward_value(network, seed + 1)),
    seed,
  )
  # Weights are random, because the initial biases and the initial last layer of
  # the policy are almost zero.
  rng = np.random.default_rng(seed)
  for name, variable in algorithm.variables().items():
    if name.endswith(("kernel", "bias")):
      variable.assign(0.7 * rng.normal(size=variable.shape))
  return algorithm


def _state(algorithm):
  return {name: np.array(variable) for name, variable in algorithm.variables().items()}


@functools.cache
def _built(settings, policy):
  config, network = _SETTINGS[settings]
  algorithm = _algorithm(config, _SPACES[policy], network=network)
  return algorithm, _state(algorithm)


def _shared(settings="modern", policy="gaussian"):
  """Returns a cached algorithm with initial values of all variables.

  The cached program is compiled for the chunks of `_small_chunks`.
  """
  algorithm, state = _built(settings, policy)
  for name, variable in algorithm.variables().items():
    variable.assign(state[name])
  return algorithm


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch):
  """Splits small batches into several chunks."""
  monkeypatch.setattr(gradient_accumulation, "_CHUNK_ROWS", _CHUNK_ROWS)
  monkeypatch.setattr(gradient_accumulation, "MAX_ROWS", _CHUNK_ROWS)


def _draw(rng, space, shape):
  """Draws values of a space; many floats exceed the bounds of a Box."""
  if isinstance(space, gymnasium.spaces.Discrete):
    return rng.integers(0, space.n, shape)
  if space.dtype == np.uint8:
    return rng.integers(0, 256, (*shape, *space.shape)).astype(np.uint8)
  return 2 * rng.normal(size=(*shape, *space.shape)).astype(np.float32)


def _transitions(
  seed, action_space=_SPACES["gaussian"], observation_space=_OBSERV, lengths=(6, 2, 5)
):
  """Returns random steps, with all kinds of episode ends.

  Args:
    seed: Seed of the random numbers.
    action_space: Space of the actions.
    observation_space: Space of the observations.
    lengths: Number of valid steps of each environment; later steps are invalid.
  """
  rng = np.random.default_rng(seed)
  shape = _STEPS, _BATCH
  terminated, truncated = np.zeros((2, *shape), bool)
  terminated[1, 0] = truncated[1, 1] = truncated[2, 0] = True
  terminated[4, 2] = True
  return types.Transition(
    observ=_draw(rng, observation_space, shape),
    action=_draw(rng, action_space, shape),
    reward=(1 + 3 * rng.normal(size=shape)).astype(np.float32),
    terminated=terminated,
    truncated=truncated,
    # Learning uses only the successors of last steps of sequences.
    next_observ=_draw(rng, observation_space, shape),
    valid=np.arange(_STEPS)[:, None] < np.array(lengths),
  )


def _batch_of(transitions, rows=_ROWS):
  """Converts transitions to a batch of at least `rows` rows."""
  rows = gradient_accumulation.padded_rows(rows)
  spec = rollout_to_batch.RolloutSpec(_STEPS, None, rows, rows)
  return spec.flatten(types.Transition(*map(tf.constant, transitions)))


def _learn(algorithm, transitions, step_counter=0, progress=0.25, rows=_ROWS):
  return _learn_from(algorithm, _batch_of(transitions, rows), step_counter, progress)


def _learn_from(algorithm, experience, step_counter=0, progress=0.25):
  metrics, _ = algorithm.learn(
    experience, tf.constant(step_counter, tf.int64), tf.constant(progress)
  )
  return {name: value.numpy() for name, value in metrics.items()}


def _orders(config, valid, step_counter, seed=11):
  """Returns the row indices of each gradient step, for each epoch."""
  num_valid = valid.sum()
  if config.minibatch_size is None:
    return [[np.arange(num_valid)]] * config.update_epochs
  rows = gradient_accumulation.padded_rows(_ROWS)

  def order(epoch):
    key = random.key(
      random.stream(seed, "shuffle"), tf.constant(step_counter * config.update_epochs + epoch)
    )
    order = random.permutation(rows, key, first=tf.range(rows) < num_valid)
    return order.numpy()[:num_valid]

  return [
    np.split(order(epoch), range(config.minibatch_size, num_valid, config.minibatch_size))
    for epoch in range(config.update_epochs)
  ]


def _assert_close(got, wanted, context="", **tolerance):
  assert got.keys() == wanted.keys()
  for name, value in wanted.items():
    np.testing.assert_allclose(got[name], value, err_msg=f"{name} {context}", **tolerance)


# For each update, the valid steps of each environment; the last update has no
# padding.
_LENGTHS = [(6, 2, 5), (1, 6, 3), (6, 6, 6)]


def _expected(state, update, config, network, policy):
  """Computes one update by the reference."""
  transitions = _transitions(update, _SPACES[policy], lengths=_LENGTHS[update])
  return reference.learn(
    state,
    reference.sequences(transitions),
    _orders(config, transitions.valid, update * _STEPS),
    0.25 * update,
    config,
    network,
    _REFERENCES[policy],
  )


def _check_against_reference(algorithm, config, network, policy, num_updates=3):
  """Compares all variables and metrics of several updates."""
  state = _state(algorithm)
  effects = []
  for update in range(num_updates):
    metrics = _learn(
      algorithm,
      _transitions(update, _SPACES[policy], lengths=_LENGTHS[update]),
      update * _STEPS,
      0.25 * update,
    )
    state, expected, update_effects = _expected(state, update, config, network, policy)
    for got, wanted in ((metrics, expected), (_state(algorithm), state)):
      _assert_close(got, wanted, f"in update {update}", rtol=2e-4, atol=2e-5)
    effects.append(update_effects)
  # Every bound must change some of the values, but not all of them.
  for name in effects[0]:
    assert 0 < np.mean([shares[name] for shares in effects]) < 1, name
  if config.kl_penalty:
    assert state["penalty/weight:0"] != config.kl_penalty
  if config.lr_schedule == "kl_adaptive":
    assert state["step_size/rate:0"] != config.learning_rate


@_each_shared
def test_update_equals_its_transcription(settings, policy):
  _check_against_reference(_shared(settings, policy), *_SETTINGS[settings], policy)


@pytest.mark.slow
@pytest.mark.parametrize(
  "settings, policy",
  [("modern", "categorical"), ("paper", "categorical"), ("everything", "gaussian")],
)
def test_update_equals_its_transcription_with_other_policies(settings, policy):
  config, network = _SETTINGS[settings]
  if policy == "gaussian":  # Gaussian policies have larger gradients.
    config = dataclasses.replace(config, max_grad_norm=9.0)
  with modes.functions_run_eagerly():
    _check_against_reference(
      _algorithm(config, _SPACES[policy], network=network), config, network, policy
    )


def _reference_state(config, network):
  """Returns the variables of the reference after two updates."""
  state = _state(_algorithm(config, network=network))
  for update in range(2):
    state = _expected(state, update, config, network, "gaussian").state
  return state


@pytest.mark.slow
@pytest.mark.parametrize(
  "settings, changes",
  [
    ("modern", {"lr_schedule": "kl_adaptive", "learning_rate": 4e-3, "value_clip": 0.02}),
    ("modern", {"lr_schedule": "kl_adaptive_linear", "learning_rate": 2e-3}),
    (
      "modern",
      {
        "lr_schedule": "constant",
        "recompute_advantages": False,
        "normalize_advantage": False,
        "normalize_observ": False,
      },
    ),
    (
      "modern",
      {"minibatch_size": None, "entropy_coef": 0.0, "value_coef": 2.0, "max_grad_norm": 12.0},
    ),
    (
      "modern",
      {
        "discount": 1.0,
        "gae_lambda": 1.0,
        "clip_ratio": None,
        "max_grad_norm": None,
        "bootstrap_truncation": False,
      },
    ),
    ("modern", {"kl_penalty": 0.5, "kl_penalty_factor": 3.0, "reward_clip": 2.0}),
    ("modern", {"kl_cutoff_coef": 50.0, "kl_cutoff_factor": 3.0, "reward_scale": "none"}),
    ("paper", {"kl_penalty": 0.0, "recompute_advantages": True, "normalize_advantage": False}),
    ("paper", {"kl_cutoff_coef": 0.0, "clip_ratio": 0.05, "adam_epsilon": 1e-3, "kl_target": 1e-3}),
    (
      "paper",
      {
        "bootstrap_truncation": True,
        "gae_lambda": 0.5,
        "value_clip": 0.1,
        "reward_scale": "return",
      },
    ),
    ("paper", {"minibatch_size": 4, "lr_schedule": "linear", "entropy_coef": 0.1}),
  ],
  ids=str,
)
def test_every_option_equals_its_transcription_and_has_an_effect(settings, changes, monkeypatch):
  # A single chunk takes less time.
  monkeypatch.setattr(gradient_accumulation, "_CHUNK_ROWS", 512)
  base, network = _SETTINGS[settings]
  config = dataclasses.replace(base, **changes)
  with modes.functions_run_eagerly():
    _check_against_reference(
      _algorithm(config, network=network), config, network, "gaussian", num_updates=2
    )
  with_all = _reference_state(config, network)
  for name in changes:
    without = _reference_state(dataclasses.replace(config, **{name: getattr(base, name)}), network)
    assert any(
      np.abs(without.get(key, np.inf) - value).max() > 1e-3 for key, value in with_all.items()
    ), f"{name} has no effect."


@pytest.mark.slow
@pytest.mark.parametrize("activation, mean_activation", [("relu", "linear"), ("elu", "tanh")])
def test_update_equals_its_transcription_with_other_activations(activation, mean_activation):
  network = dataclasses.replace(_NETWORK, activation=activation, mean_activation=mean_activation)
  with modes.functions_run_eagerly():
    _check_against_reference(
      _algorithm(network=network), _MODERN, network, "gaussian", num_updates=2
    )


@_each_shared
def test_rewriting_the_padding_changes_nothing(settings, policy):
  experience = _batch_of(_transitions(0, _SPACES[policy]))
  valid = experience.valid.numpy()
  padding, rng = ~valid, np.random.default_rng(1)
  assert 0 < padding.sum() < _ROWS
  num_sequences = experience.sequence.numpy()[valid].max() + 1

  def with_normal_padding(field, factor):
    array = field.numpy()
    array[padding] = factor * rng.normal(size=array[padding].shape)
    return tf.constant(array)

  def with_integer_padding(field, choices):
    array = field.numpy()
    array[padding] = rng.integers(0, choices, array[padding].shape)
    return tf.constant(array)

  final_observ = experience.final_observ.numpy()
  assert num_sequences < len(final_observ)
  final_observ[num_sequences:] = 1e30
  other = experience._replace(
    observ=with_normal_padding(experience.observ, 1e30),
    # Ratios must be finite, because they are multiplied by zero.
    action=(
      with_integer_padding(experience.action, 3)
      if policy == "categorical"
      else with_normal_padding(experience.action, 10)
    ),
    reward=with_normal_padding(experience.reward, 1e10),
    sequence=with_integer_padding(experience.sequence, len(final_observ)),
    final_observ=tf.constant(final_observ),
    **{
      name: with_integer_padding(getattr(experience, name), 2)
      for name in ("terminated", "truncated", "last")
    },
  )
  results = []
  for each in (experience, other):
    algorithm = _shared(settings, policy)
    metrics = _learn_from(algorithm, each)
    results.append({**metrics, **_state(algorithm)})
  for name, value in results[0].items():
    np.testing.assert_array_equal(results[1][name], value, err_msg=name)


def _learned(config, transitions, rows=_ROWS):
  algorithm = _algorithm(config)
  with modes.functions_run_eagerly():
    metrics = _learn(algorithm, transitions, rows=rows)
  return {**metrics, **_state(algorithm)}


@pytest.mark.slow
@pytest.mark.parametrize("size", [8, pytest.param(3, marks=pytest.mark.slow)])
def test_update_is_independent_of_the_chunk_size(size, monkeypatch):
  # Some episodes cross the boundaries of chunks.
  config = dataclasses.replace(_PAPER, update_epochs=2, recompute_advantages=True, gae_lambda=0.9)
  transitions = _transitions(0, lengths=(6, 6, 4))
  monkeypatch.setattr(gradient_accumulation, "_CHUNK_ROWS", 512)
  whole = _learned(config, transitions)
  monkeypatch.setattr(gradient_accumulation, "_CHUNK_ROWS", size)
  monkeypatch.setattr(gradient_accumulation, "MAX_ROWS", size)
  _assert_close(_learned(config, transitions), whole, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_larger_padding_changes_nothing():
  transitions = _transitions(0, lengths=(6, 6, 6))
  config = dataclasses.replace(_PAPER, update_epochs=2)
  _assert_close(
    _learned(config, transitions, 3 * _ROWS), _learned(config, transitions), rtol=1e-5, atol=1e-6
  )


@pytest.mark.slow
@pytest.mark.parametrize("order", [[2, 0, 1], [1, 0, 2]], ids=str)
def test_update_is_independent_of_the_order_of_environments(order):
  transitions = _transitions(0)
  permuted = tf.nest.map_structure(lambda field: field[:, order], transitions)
  results = []
  for each in (transitions, permuted):
    algorithm = _shared("paper")
    results.append({**_learn(algorithm, each), **_state(algorithm)})
  _assert_close(results[1], results[0], rtol=1e-5, atol=1e-6)


@_each_shared
def test_learning_rate_zero_keeps_ratio_one_and_kl_zero(settings, policy):
  algorithm = _shared(settings, policy)
  step_size = algorithm.variables()["step_size/rate:0"]
  step_size.assign(0.0)
  before = _state(algorithm)
  metrics = _learn(algorithm, _transitions(0, _SPACES[policy]))
  assert metrics["learning_rate"] == metrics.get("clip_fraction", 0) == 0
  assert metrics.get("kl_cutoff", 0) == 0
  assert abs(metrics["kl"]) < 1e-7
  assert abs(metrics["policy_loss"]) < 1e-6
  assert metrics["grad_norm"] > 0
  for name, value in _state(algorithm).items():
    if name.startswith(("policy/", "value/")):
      np.testing.assert_array_equal(value, before[name], err_msg=name)


_ONE_STEP = dataclasses.replace(_MODERN, update_epochs=1, minibatch_size=None, max_grad_norm=None)


@pytest.mark.fast_variants(1)
@_both_policies
def test_at_the_first_gradient_step_ratio_is_one_and_kl_zero(policy):
  # The bounds are so narrow that any other ratio or KL would exceed them.
  config = dataclasses.replace(
    _ONE_STEP,
    clip_ratio=1e-4,
    kl_target=1e-6,
    kl_cutoff_factor=1.0,
    kl_cutoff_coef=1e6,
    kl_penalty=1e3,
  )
  transitions, states = _transitions(0, _SPACES[policy]), []
  for each in (config, _ONE_STEP):
    algorithm = _algorithm(each, _SPACES[policy])
    with modes.functions_run_eagerly():
      metrics = _learn(algorithm, transitions)
    states.append(_state(algorithm))
    assert metrics.get("kl_cutoff", 0) == metrics["clip_fraction"] == 0
    assert abs(metrics["policy_loss"]) < 1e-6  # Mean of normalized advantages.
    assert metrics["kl"] > 1e-5  # KL divergence after the gradient step.
  for name, value in states[0].items():
    if name.startswith(("policy/", "value/")):
      np.testing.assert_allclose(states[1][name], value, rtol=1e-4, atol=1e-5, err_msg=name)


def _values(algorithm, observ):
  """Returns values of observations [..., 2] before any update."""
  return reference.forward(
    _state(algorithm), "value", _NETWORK, np.clip(observ.reshape(-1, 2), -1.2, 1.2)
  )[-1].reshape(observ.shape[:-1])


def _first_losses(transitions, **changes):
  """Returns losses of the first gradient step, and values.

  The ratio is 1 in this step. Therefore the negative policy loss is the mean
  advantage, and the value loss is the mean squared advantage.

  Returns:
    List of both means, values of observations, and values of true successors.
  """
  config = dataclasses.replace(_ONE_STEP, normalize_advantage=False, **changes)
  algorithm = _algorithm(config)
  values = [_values(algorithm, observ) for observ in (transitions.observ, transitions.next_observ)]
  with modes.functions_run_eagerly():
    metrics = _learn(algorithm, transitions)
  return [-metrics["policy_loss"], metrics["value_loss"]], *values


@pytest.mark.fast_variants(2)
@pytest.mark.parametrize(
  "end, bootstrap_truncation, bootstraps",
  [
    ("terminated", True, False),
    ("truncated", True, True),
    ("truncated", False, False),
    ("cut", True, True),
    ("cut", False, True),
  ],
)
def test_value_bootstraps_only_where_future_reward_exists(end, bootstrap_truncation, bootstraps):
  ends = np.full((_STEPS, _BATCH), True)
  transitions = _transitions(0)._replace(
    terminated=ends & (end == "terminated"), truncated=ends & (end == "truncated"), valid=ends
  )
  if end == "cut":  # Every other step is invalid, so sequences have one step.
    transitions.valid[1::2] = False
  means, value, next_value = _first_losses(transitions, bootstrap_truncation=bootstrap_truncation)
  advantage = transitions.reward - value + bootstraps * 0.9 * next_value
  advantage = advantage[transitions.valid]
  np.testing.assert_allclose(means, [advantage.mean(), (advantage**2).mean()], rtol=1e-4)


def _episodes(*lengths):
  """Returns one terminated episode of each environment."""
  steps = np.arange(_STEPS)[:, None]
  return _transitions(0)._replace(
    terminated=steps == np.array(lengths) - 1,
    truncated=np.zeros((_STEPS, _BATCH), bool),
    valid=steps < np.array(lengths),
  )


@pytest.mark.parametrize("lengths", [(6, 6, 6), (1, 4, 2)])
def test_padding_does_not_provide_the_value_after_the_last_step(lengths):
  # The original implementation of 2017 reads this value from padding.
  transitions = _episodes(*lengths)
  means, value, _ = _first_losses(transitions, gae_lambda=0.0)
  advantage = transitions.reward - value
  advantage[:-1] += 0.9 * np.where(transitions.valid[1:], value[1:], 0)
  advantage = advantage[transitions.valid]
  np.testing.assert_allclose(means, [advantage.mean(), (advantage**2).mean()], rtol=1e-4)


def test_value_target_with_lambda_one_is_the_discounted_return():
  transitions = _episodes(3, 1, 5)
  means, value, _ = _first_losses(transitions, gae_lambda=1.0)
  errors = [
    sum(0.9 ** (later - step) * transitions.reward[later, env] for later in range(step, length))
    - value[step, env]
    for env, length in enumerate((3, 1, 5))
    for step in range(length)
  ]
  np.testing.assert_allclose(means, [np.mean(errors), np.mean(np.square(errors))], rtol=1e-4)


def test_steps_of_long_and_short_episodes_have_equal_weight():
  # The original implementation of 2017 includes padding in its means. Here,
  # values and lambda are zero, so the advantages are the rewards.
  transitions = _episodes(1, 6, 2)
  transitions.reward[:] = [[9, 1, 4]] * _STEPS
  config = dataclasses.replace(_ONE_STEP, normalize_advantage=False, gae_lambda=0.0, discount=0.5)
  algorithm = _algorithm(config)
  for name, variable in algorithm.variables().items():
    if name.startswith("value/"):
      variable.assign(tf.zeros_like(variable))
  with modes.functions_run_eagerly():
    metrics = _learn(algorithm, transitions)
  rewards = np.array([9] + [1] * 6 + [4] * 2)
  np.testing.assert_allclose(
    [-metrics["policy_loss"], metrics["value_loss"]],
    [rewards.mean(), (rewards**2).mean()],
    rtol=1e-5,
  )
  np.testing.assert_allclose(  # The moments contain the nine valid steps.
    metrics["reward_scale"], rewards.std(), rtol=1e-5
  )
  assert algorithm.variables()["observ/count:0"].numpy() == 9
  np.testing.assert_allclose(
    metrics["observ_mean"], transitions.observ[transitions.valid].mean(), rtol=1e-4
  )


def _act(algorithm, observ, step_counter=0, explore=True):
  noise = algorithm.noise(tf.constant(step_counter, tf.int64), len(observ))
  action, _ = algorithm.act(tf.constant(observ), types.NOTHING, noise if explore else None)
  return action.numpy()


@_both_policies
def test_action_without_noise_is_the_mode(policy):
  algorithm = _algorithm(action_space=_SPACES[policy])
  observ = _draw(np.random.default_rng(0), _OBSERV, (50,))
  output = reference.forward(_state(algorithm), "policy", _NETWORK, np.clip(observ, -1.2, 1.2))[-1]
  expected = output if policy == "gaussian" else output.argmax(-1)
  np.testing.assert_allclose(_act(algorithm, observ, explore=False), expected, rtol=1e-4, atol=1e-5)


@_both_policies
def test_sampled_actions_repeat_by_seed_and_step_counter(policy):
  observ = np.zeros((50, 2), np.float32)
  algorithm = _algorithm(action_space=_SPACES[policy])
  first, again, later = (_act(algorithm, observ, step_counter) for step_counter in (3, 3, 4))
  np.testing.assert_array_equal(first, again)
  assert (first != later).any()
  other = _algorithm(action_space=_SPACES[policy], seed=12)
  for name, variable in other.variables().items():
    if name.startswith("policy/"):
      variable.assign(algorithm.variables()[name])
  assert (_act(other, observ, 3) != first).any()


def test_sampled_actions_are_not_clipped():
  algorithm = _algorithm(network=dataclasses.replace(_NETWORK, init_std=3.0))
  observ = np.zeros((2000, 2), np.float32)
  action = _act(algorithm, observ)
  noise = action - _act(algorithm, observ, explore=False)
  # Clipping to [-1, 1] would leave a std below 1.
  np.testing.assert_allclose(noise.std(), 3.0, rtol=0.1)


@pytest.mark.fast_variants(1)
@modes.eager_and_compiled
def test_acting_changes_no_variable(prepare):
  algorithm = _algorithm()
  before = _state(algorithm)
  noise = prepare(functools.partial(algorithm.noise, num_envs=5))(tf.constant(0, tf.int64))
  for action_noise in (noise, None):
    act = prepare(functools.partial(algorithm.act, state=types.NOTHING, noise=action_noise))
    act(tf.fill([5, 2], 9.0))
  for name, value in _state(algorithm).items():
    np.testing.assert_array_equal(value, before[name], err_msg=name)


def test_acting_normalizes_by_the_moments_of_all_updates():
  algorithm = _algorithm()
  transitions = _transitions(0)
  observ = transitions.observ[0]
  before = _act(algorithm, observ, explore=False)
  with modes.functions_run_eagerly():
    # The learning rate is 0, so that only the moments change.
    _learn(algorithm, transitions, progress=1.0)
  after = _act(algorithm, observ, explore=False)
  assert np.abs(before - after).max() > 0.01
  seen = transitions.observ[transitions.valid].astype(np.float64)
  raw = _algorithm(dataclasses.replace(_MODERN, normalize_observ=False))
  normalized = np.clip((observ - seen.mean(0)) / seen.std(0), -1.2, 1.2)
  np.testing.assert_allclose(
    _act(raw, normalized.astype(np.float32), explore=False), after, rtol=1e-4, atol=1e-5
  )


@pytest.mark.slow
@_each_shared
def test_learning_is_compiled_once(settings, policy):
  # XLA compiles again for each value that must be static, such as the limit of
  # a tf.range.
  algorithm = _shared(settings, policy)
  programs = set()
  for update, lengths in enumerate(_LENGTHS):
    arguments = (
      _batch_of(_transitions(update, _SPACES[policy], lengths=lengths)),
      tf.constant(update, tf.int64),
      tf.constant(update / 3),
    )
    program = algorithm.learn.experimental_get_compiler_ir(*arguments)("hlo")
    main = program[program.index("ENTRY") :]
    inputs = algorithm.learn.get_concrete_function(*arguments).inputs
    assert len(re.findall(r" parameter\(", main)) == len(inputs)
    programs.add(program)
  assert len(programs) == 1
  assert algorithm.learn.experimental_get_tracing_count() == 1


@pytest.mark.slow
@pytest.mark.parametrize(
  "config, policy",
  [
    (dataclasses.replace(_MODERN, lr_schedule="kl_adaptive"), "gaussian"),
    (dataclasses.replace(_PAPER, update_epochs=2), "categorical"),
  ],
  ids=["modern", "paper"],
)
def test_variables_contain_the_complete_state(config, policy):
  first = _algorithm(config, _SPACES[policy])
  with modes.functions_run_eagerly():
    _learn(first, _transitions(0, _SPACES[policy]))
    second = _algorithm(config, _SPACES[policy])
    targets = second.variables()
    assert targets.keys() == first.variables().keys()
    for name, value in _state(first).items():
      targets[name].assign(value)
    for algorithm in (first, second):
      _learn(algorithm, _transitions(1, _SPACES[policy]), step_counter=_STEPS)
  state = _state(second)
  for name, value in _state(first).items():
    np.testing.assert_array_equal(state[name], value, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize(
  "observation_space, action_space",
  [
    (gymnasium.spaces.Box(0, 255, (2, 2), np.uint8), gymnasium.spaces.Box(-1, 1, (), np.float32)),
    (gymnasium.spaces.Discrete(4), gymnasium.spaces.Box(-1, 1, (2, 3))),
    (gymnasium.spaces.Box(-9, 9, (2, 3)), gymnasium.spaces.Discrete(2, start=5)),
    (gymnasium.spaces.Box(-9, 9, ()), gymnasium.spaces.Discrete(2)),
  ],
  ids=str,
)
def test_learns_in_all_supported_spaces(observation_space, action_space):
  algorithm = _algorithm(_EVERYTHING, action_space, observation_space)
  transitions = _transitions(0, action_space, observation_space)
  action = _act(algorithm, transitions.observ[0])
  assert action.shape == transitions.action[0].shape
  assert action.dtype == transitions.action.dtype
  before = _state(algorithm)
  with modes.functions_run_eagerly():
    metrics = _learn(algorithm, transitions)
  _assert_finite(metrics, algorithm)
  for name, value in _state(algorithm).items():
    if name.endswith("output/kernel"):
      assert (value != before[name]).any(), name


def _assert_finite(metrics, algorithm):
  for name, value in {**metrics, **_state(algorithm)}.items():
    assert np.isfinite(value).all(), name


@pytest.mark.fast_variants(1)
@pytest.mark.parametrize("settings", ["modern", "paper"])
def test_equal_advantages_keep_all_numbers_finite(settings):
  algorithm = _shared(settings)
  for name, variable in algorithm.variables().items():
    if name.startswith("value/"):
      variable.assign(tf.zeros_like(variable))
  transitions = _transitions(0)
  transitions.reward[:] = 0
  _assert_finite(_learn(algorithm, transitions), algorithm)


@_each_shared
def test_update_from_one_step_is_finite(settings, policy):
  algorithm = _shared(settings, policy)
  transitions = _transitions(0, _SPACES[policy], lengths=(0, 1, 0))
  for _ in range(2):
    _assert_finite(_learn(algorithm, transitions), algorithm)
