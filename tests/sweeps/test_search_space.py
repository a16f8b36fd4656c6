import optuna
import pytest

from agents import config as config_lib
from agents.sweeps import search_space

DEFAULT = config_lib.Config()


def _draws(text, num_draws=200):
  """Returns random settings of a search space."""
  space = search_space.SearchSpace(text, "space.yaml")
  study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
  return [space.suggest(study.ask()) for _ in range(num_draws)]


def _values(text, num_draws=200):
  return [value for draw in _draws(text, num_draws) for value in draw.values()]


def test_ranges_of_integers_suggest_integers():
  assert set(_values("a: {low: 3, high: 6}")) == {3, 4, 5, 6}
  assert set(_values("a: {low: 2, high: 8, step: 3}")) == {2, 5, 8}
  assert all(type(value) is int for value in _values("a: {low: 3, high: 6}"))


@pytest.mark.parametrize("low, high", [("1e-5", "1e-3"), ("0.00001", "1.0e-3")])
def test_log_ranges_are_uniform_on_a_logarithmic_scale(low, high):
  values = _values(f"a: {{low: {low}, high: {high}, log: true}}", 1000)
  assert all(type(value) is float and 1e-5 <= value <= 1e-3 for value in values)
  assert 400 < sum(value < 1e-4 for value in values) < 600


def test_ranges_of_floats_are_uniform():
  values = _values("a: {low: 0, high: 1.0}", 1000)
  assert 400 < sum(value < 0.5 for value in values) < 600
  assert set(_values("a: {low: 0, high: 1.0, step: 0.5}")) == {0, 0.5, 1}


def test_choices_keep_their_types():
  values = _values("a: [[64, 64], null, tanh, 3, 0.5, true]", 300)
  for expected in ([64, 64], None, "tanh", 3, 0.5, True):
    assert any(value == expected and type(value) is type(expected) for value in values)


def test_all_keys_are_suggested():
  assert _draws("a.b: [1]\nc: [2]", 1) == [{"a.b": 1, "c": 2}]


@pytest.mark.parametrize(
  "text, message",
  [
    ("", "space.yaml: expected lines such as"),
    ("[1, 2]", "space.yaml: expected lines such as"),
    ("a: 3", "space.yaml: a: expected a range or choices"),
    ("a: []", "space.yaml: a: the list of choices is empty"),
    ("a: {low: 1}", "space.yaml: a lacks high"),
    ("a: {low: 1, high: 2, lgo: true}", "no field 'lgo'"),
    ("a: {low: x, high: 2}", "`a.low` must be of type float"),
    ("a: {low: 2, high: 2}", "`low` must be below `high`"),
    ("a: {low: 0, high: 1, log: true}", "`low` must be positive"),
    ("a: {low: 1, high: 2, log: true, step: 1}", "`step` must be"),
    ("a: {low: 1, high: .inf}", "both must be finite"),
    ("seed: [1, 2]", "every trial uses a different seed"),
    ("a: {", "space.yaml: "),
  ],
)
def test_invalid_space_raises_an_error(text, message):
  with pytest.raises(config_lib.ConfigError, match=message):
    search_space.SearchSpace(text, "space.yaml")


@pytest.mark.parametrize(
  "text, message",
  [
    ("algorithm.learning_rte: [1e-3]", "did you mean|learning_rate"),
    ("network.activation: [tanh, rleu]", "activation: 'rleu' is invalid"),
    ("algorithm.update_epochs: {low: 0, high: 3}", "epochs: 0 is invalid"),
    ("num_envs: {low: 64, high: 128.5}", "num_envs: 128.5 is invalid"),
    ("algorithm.minibatch_size: [64, 96]", "96 is invalid: .* must divide"),
  ],
)
def test_invalid_value_raises_an_error(text, message):
  space = search_space.SearchSpace(text, "space.yaml")
  with pytest.raises(config_lib.ConfigError, match=f"space.yaml: .*{message}"):
    space.check(DEFAULT.override)


def test_value_that_is_valid_with_some_others_is_accepted():
  space = search_space.SearchSpace(
    "algorithm.minibatch_size: [64, 96]\nnum_envs: [64, 48]", "space.yaml"
  )
  space.check(DEFAULT.override)
