"""Exported functions compute the same outputs as the policy in training."""

import importlib.util

import gymnasium
import numpy as np
import pytest

from agents import config as config_lib
from agents.export import evaluate, formats, signature, verify
from agents.export import policy as policy_lib
from agents.translation import numpy_player
from tests.export import any_space_env, untrained_runs

FORMATS = [
  pytest.param(
    name,
    marks=[
      pytest.mark.skipif(
        not all(map(importlib.util.find_spec, formats.load(name).modules)),
        reason="A required package is not installed.",
      )
    ],
  )
  for name in formats.NAMES
]


def _random_inputs(policy, batch, rng):
  """Returns random inputs with types, shapes and ranges of the signature."""
  inputs = {}
  for name, field in policy.inputs.items():
    shape = batch, *field.shape
    if field.role == "noise":
      inputs[name] = numpy_player.draw_noise(rng, field.drawn, batch).astype(np.float32)
    elif field.dtype in ("float32", "float64"):
      inputs[name] = rng.normal(size=shape).astype(field.dtype)
    elif field.dtype == "bool":
      inputs[name] = rng.integers(0, 2, shape).astype(bool)
    elif field.dtype == "uint8":
      inputs[name] = rng.integers(0, 256, shape).astype(np.uint8)
    else:  # Integers: the first or the second choice.
      first = field.low or 0
      inputs[name] = rng.integers(first, first + 2, shape).astype(field.dtype)
  return inputs


def _export(name, policy, folder):
  """Exports a policy and returns the loaded function."""
  file_format = formats.load(name)
  file_format.write(policy, folder / file_format.file)
  return file_format.load(folder / file_format.file)


def _assert_same(outputs, expected):
  assert outputs.keys() == expected.keys()
  for name in expected:
    np.testing.assert_allclose(
      outputs[name].astype(float), expected[name].astype(float), atol=1e-5, err_msg=name
    )


@pytest.mark.fast_variants(4)
@pytest.mark.parametrize(
  "kind, sampled",
  [
    pytest.param(
      kind,
      sampled,
      id=f"{kind}-{'sampled' if sampled else 'mean'}",
      # Sampling depends only on the distribution, so two kinds are enough.
      marks=[]
      if kind in (("beta", "choice") if sampled else ("box", "choice", "gru", "nested"))
      else [pytest.mark.slow],
    )
    for kind in untrained_runs.CHANGES
    for sampled in (False, True)
  ],
)
def test_exported_function_equals_training_for_any_batch_size(kind, sampled, tmp_path):
  policy = untrained_runs.load(tmp_path, kind, sampled)
  training_function = evaluate.training_function(policy)
  rng = np.random.default_rng(0)
  exported = [_export(name, policy, tmp_path) for name in ("savedmodel", "npz")]
  for batch in (1, 5):
    inputs = _random_inputs(policy, batch, rng)
    expected = training_function(inputs)
    assert list(expected) == list(policy.outputs)
    for function in exported:
      outputs = function(inputs)
      _assert_same(outputs, expected)
      for name, field in policy.outputs.items():
        assert outputs[name].dtype == field.dtype, name
        assert outputs[name].shape == (batch, *field.shape), name


@pytest.mark.fast_variants(1)
@pytest.mark.parametrize(
  "name", [param for param in FORMATS if param.values[0] in ("tflite", "onnx")]
)
@pytest.mark.parametrize(
  "kind",
  [
    "box",
    *(
      pytest.param(kind, marks=pytest.mark.slow)
      for kind in ("choice", "beta", "squashed", "gru", "lstm", "pictures", "impala")
    ),
  ],
)
def test_optional_format_equals_training(kind, name, tmp_path):
  policy = untrained_runs.load(tmp_path, kind, sampled=True)
  inputs = _random_inputs(policy, 3, np.random.default_rng(0))
  _assert_same(_export(name, policy, tmp_path)(inputs), evaluate.training_function(policy)(inputs))


def test_onnx_rejects_nested_spaces(tmp_path):
  policy = untrained_runs.load(tmp_path, "nested")
  with pytest.raises(config_lib.ConfigError, match="Dict and Tuple spaces"):
    formats.load("onnx").check(policy)


def test_error_names_the_missing_package(monkeypatch, tmp_path):
  policy = untrained_runs.load(tmp_path, "box")
  monkeypatch.setattr(importlib.util, "find_spec", lambda module: None)
  for name in ("savedmodel", "npz"):
    formats.load(name).check(policy)
  with pytest.raises(config_lib.ConfigError, match=r"batched-ppo\[tflite\]"):
    formats.load("tflite").check(policy)


def test_inputs_have_unique_names_and_descriptions(tmp_path):
  policy = untrained_runs.load(tmp_path, "nested", sampled=True)
  assert all(field.about for field in policy.inputs.values())
  names = policy.names("observation")
  assert len(names) == len(set(names)) == 3
  assert sum(size for _, size in policy.inputs["noise"].drawn) == (policy.inputs["noise"].shape[0])
  choice = untrained_runs.load(tmp_path, "choice")
  assert choice.outputs["action"] == signature.SignatureField(
    "action", "int64", (), "a choice, from 0 to 1", (), 0, 1
  )
  box = untrained_runs.load(tmp_path, "box")
  assert box.inputs["observation"].high == [1, 1, 8]


_BOX = gymnasium.spaces.Box
_SPACES = {  # Pairs of observation space and action space.
  "wide": (_BOX(-1, 1), _BOX(-1000, 1000, (2,))),
  "many sizes": (_BOX(-1, 1), _BOX(np.array([-1, 0, 100.0]), np.array([1, 5, 2000.0]))),
  "float64": (_BOX(-1, 1, (2,), np.float64), _BOX(-0.1, 0.1, (2,), np.float64)),
  "half open": (_BOX(-1, 1), _BOX(np.array([0, -np.inf]), np.inf)),
  "bools": (gymnasium.spaces.Dict(b=_BOX(0, 1, (2,), np.bool_), q=_BOX(-1, 1)), _BOX(-1, 1)),
  "similar names": (
    gymnasium.spaces.Dict(
      {
        "A": _BOX(-1, 1),
        "a": _BOX(-1, 1),
        "a b": _BOX(-1, 1),
        "a b_2": _BOX(-1, 1),
        "a_b": _BOX(-1, 1),
      }
    ),
    gymnasium.spaces.Discrete(3, start=-1),
  ),
  "choices": (
    gymnasium.spaces.MultiBinary([2, 2]),
    gymnasium.spaces.MultiDiscrete([[2, 3]], start=[[1, 5]]),
  ),
}


@pytest.mark.fast_variants(1)
@pytest.mark.parametrize(
  "name", ["many sizes", "similar names", "bools", "choices", "float64", "half open", "wide"]
)
def test_actions_lie_in_the_space_and_equal_training(name, tmp_path, monkeypatch):
  monkeypatch.setattr(any_space_env, "SPACES", _SPACES[name])
  monkeypatch.setitem(
    untrained_runs.CHANGES,
    "any",
    {
      "env.id": "tests.export.any_space_env:Checking",
      "network.init_std": 2.0,
      "env.max_length": 20,
    },
  )
  policy = untrained_runs.load(tmp_path, "any", sampled=True)
  recorder = verify.CallRecorder()
  returns = evaluate.evaluate(policy, evaluate.training_function(policy), recorder.add)
  for format_name in ("savedmodel", "npz"):
    comparison = verify.compare(policy, _export(format_name, policy, tmp_path), recorder.calls)
    assert comparison.passed(returns), comparison


def test_checkpoint_of_another_model_is_rejected(tmp_path):
  folder, other = (untrained_runs.make_run(tmp_path, kind) for kind in ("box", "gru"))
  with pytest.raises(config_lib.ConfigError, match="do not fit"):
    policy_lib.load(folder, next(other.checkpoints.iterdir()), False)
