"""Digests depend on every bit of a policy, but not on the order of arrays."""

import numpy as np
import pytest

from agents.training.run_folder import checkpoint
from agents.zoo import fingerprint

_ARRAYS = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.float64(1)}


def test_order_of_arrays_does_not_change_the_digest():
  swapped = dict(reversed(_ARRAYS.items()))
  assert fingerprint.digest(swapped) == fingerprint.digest(_ARRAYS)


@pytest.mark.parametrize(
  "change",
  [
    {"a": np.nextafter(_ARRAYS["a"], np.float32(9))},
    {"a": _ARRAYS["a"].reshape(3, 2)},
    {"a": _ARRAYS["a"].view(np.int32)},
    {"c": np.float64(1)},
  ],
)
def test_changed_bit_shape_type_or_name_changes_the_digest(change):
  assert fingerprint.digest({**_ARRAYS, **change}) != fingerprint.digest(_ARRAYS)


def test_variables_of_the_optimizer_are_left_out(tmp_path):
  names = "variable/policy/bias", "variable/adam/momentum", "variable/observ/mean", "clock"
  checkpoint.save(tmp_path, 1, dict.fromkeys(names, np.zeros(2)), {})
  kept = fingerprint.variables(checkpoint.newest(tmp_path))
  assert set(kept) == {"variable/policy/bias", "variable/observ/mean"}


def test_platform_contains_the_variables_of_the_compiler(monkeypatch):
  before = fingerprint.platform()
  monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
  now = fingerprint.platform()
  assert {name for name in now if now[name] != before[name]} == {"XLA_FLAGS"}
