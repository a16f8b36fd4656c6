"""All formats do what the policy in training does."""

import gymnasium
import numpy as np
import pytest

from agents import config as config_lib
from agents.export import formats
from agents.export import policy as policy_lib
from agents.export import verify
from tests.export import any_space_env
from tests.export import untrained_runs

FORMATS = [pytest.param(name, marks=[pytest.mark.skipif(
    not all(map(formats.installed, one.modules)), reason="is not installed")])
           for name, one in formats.FORMATS.items()]


def _inputs(policy, amount, numbers):
  """Return any observations, and states that there may be."""
  inputs = {}
  for name, field in policy.inputs.items():
    shape = amount, *field.shape
    if field.role == "noise":
      inputs[name] = verify.draw(numbers, field, amount)
    elif field.dtype in ("float32", "float64"):
      inputs[name] = numbers.normal(size=shape).astype(field.dtype)
    elif field.dtype == "bool":
      inputs[name] = numbers.integers(0, 2, shape).astype(bool)
    elif field.dtype == "uint8":
      inputs[name] = numbers.integers(0, 256, shape).astype(np.uint8)
    else:  # The first choice or the second.
      first = int(field.about.split("from ")[1].split(" ")[0]
                  ) if "from " in field.about else 0
      inputs[name] = numbers.integers(first, first + 2, shape).astype(
          field.dtype)
  return inputs


@pytest.mark.parametrize("kind, sampled", [
    pytest.param(
        kind, sampled, id=f"{kind}-{'sampled' if sampled else 'mean'}",
        # How it is sampled is a matter of the distribution alone.
        marks=[pytest.mark.slow] if kind == "impala" or sampled and kind in (
            "cheetah", "gru", "lstm", "nested", "pictures") else [])
    for kind in untrained_runs.CHANGES for sampled in (False, True)])
def test_batches_of_any_size(kind, sampled, tmp_path):
  policy = untrained_runs.load(tmp_path, kind, sampled)
  expect = verify.in_training(policy)
  numbers = np.random.default_rng(0)
  loaded = []
  for name in ("savedmodel", "npz"):
    one = formats.FORMATS[name]
    one.write(policy, tmp_path / one.file)
    loaded.append(one.load(tmp_path / one.file))
  for amount in (1, 5):
    inputs = _inputs(policy, amount, numbers)
    expected = expect(inputs)
    assert list(expected) == list(policy.outputs)
    for run in loaded:
      found = run(inputs)
      assert found.keys() == expected.keys()
      for name, field in policy.outputs.items():
        assert found[name].dtype == field.dtype, name
        assert found[name].shape == (amount, *field.shape), name
        np.testing.assert_allclose(
            found[name].astype(float), expected[name].astype(float),
            atol=1e-5, err_msg=name)


@pytest.mark.parametrize("name", FORMATS[1:3])
@pytest.mark.parametrize("kind", [
    "box", "gru",
    *(pytest.param(kind, marks=pytest.mark.slow) for kind in (
        "choice", "beta", "squashed", "lstm", "pictures", "impala"))])
def test_other_formats(kind, name, tmp_path):
  policy = untrained_runs.load(tmp_path, kind, sampled=True)
  one = formats.FORMATS[name]
  one.write(policy, tmp_path / one.file)
  run = one.load(tmp_path / one.file)
  inputs = _inputs(policy, 3, np.random.default_rng(0))
  expected, found = verify.in_training(policy)(inputs), run(inputs)
  for name in policy.outputs:
    np.testing.assert_allclose(
        found[name].astype(float), expected[name].astype(float), atol=1e-5)


def test_onnx_is_refused_where_it_can_not_be(tmp_path):
  policy = untrained_runs.load(tmp_path, "nested")
  with pytest.raises(config_lib.ConfigError, match="Dict and Tuple are bytes"):
    formats.check(["npz", "onnx"], policy)


def test_missing_packages_are_named(monkeypatch, tmp_path):
  policy = untrained_runs.load(tmp_path, "box")
  monkeypatch.setattr(formats, "installed", lambda module: False)
  formats.check(["savedmodel", "npz"], policy)
  with pytest.raises(config_lib.ConfigError, match=r"batch-ppo\[tflite\]"):
    formats.check(["savedmodel", "tflite"], policy)


def test_inputs_are_named_and_described(tmp_path):
  policy = untrained_runs.load(tmp_path, "nested", sampled=True)
  assert all(field.about for field in policy.inputs.values())
  observed = [name for name, field in policy.inputs.items()
              if field.role == "observation"]
  assert len(observed) == len(set(observed)) == 3
  assert sum(size for _, size in policy.inputs["noise"].drawn) == (
      policy.inputs["noise"].shape[0])
  choice = untrained_runs.load(tmp_path, "choice")
  assert choice.outputs["action"] == policy_lib.Field(
      "action", "int64", (), "a choice, from 0 to 1", (), 0, 1)
  assert untrained_runs.load(tmp_path, "box").inputs["observation"].high == [1, 1, 8]


_BOX = gymnasium.spaces.Box
_ODD = {
    "wide": (_BOX(-1, 1), _BOX(-1000, 1000, (2,))),
    "of many sizes": (_BOX(-1, 1), _BOX(
        np.array([-1, 0, 100.0]), np.array([1, 5, 2000.0]))),
    "float64": (_BOX(-1, 1, (2,), np.float64), _BOX(
        -0.1, 0.1, (2,), np.float64)),
    "half open": (_BOX(-1, 1), _BOX(np.array([0, -np.inf]), np.inf)),
    "with bools": (gymnasium.spaces.Dict(
        b=_BOX(0, 1, (2,), np.bool_), q=_BOX(-1, 1)), _BOX(-1, 1)),
    "of like names": (gymnasium.spaces.Dict({
        "A": _BOX(-1, 1), "a": _BOX(-1, 1), "a b": _BOX(-1, 1),
        "a b_2": _BOX(-1, 1), "a_b": _BOX(-1, 1)}),
                      gymnasium.spaces.Discrete(3, start=-1)),
    "choices": (gymnasium.spaces.MultiBinary([2, 2]),
                gymnasium.spaces.MultiDiscrete([[2, 3]], start=[[1, 5]]))}


@pytest.mark.parametrize("name", [
    "of many sizes", "with bools", "of like names", "choices",
    *(pytest.param(name, marks=pytest.mark.slow) for name in (
        "wide", "float64", "half open"))])
def test_odd_spaces(name, tmp_path, monkeypatch):
  """Whatever is sampled lies within the space, and all is as in training."""
  monkeypatch.setattr(any_space_env, "SPACES", _ODD[name])
  monkeypatch.setitem(untrained_runs.CHANGES, "odd", {
      "env.id": "tests.export.any_space_env:Checking", "network.init_std": 2.0,
      "env.max_length": 20})
  policy = untrained_runs.load(tmp_path, "odd", sampled=True)
  recorded = verify.Recorded()
  returns = verify.play(policy, verify.in_training(policy), recorded.add)
  for kind in ("savedmodel", "npz"):
    one = formats.FORMATS[kind]
    one.write(policy, tmp_path / one.file)
    found = verify.examine(policy, one.load(tmp_path / one.file),
                           recorded.steps)
    assert found.same(returns), found


def test_another_model_is_told(tmp_path):
  folder, other = (untrained_runs.make_run(tmp_path, kind) for kind in ("box", "gru"))
  with pytest.raises(config_lib.ConfigError, match="do not fit"):
    policy_lib.load(folder, next(other.checkpoints.iterdir()), False)
