"""Environments fail when they are told to, and leaks are seen."""

import os

import numpy as np
import pytest

from benchmarks import soak
from benchmarks.envs import faulty


@pytest.mark.parametrize("fault", ["raise", "nan"])
def test_one_environment_fails_once(fault, tmp_path):
  path = tmp_path / "fault"
  envs = [faulty.Faulty("Pendulum-v1", str(path)) for _ in range(3)]
  plain = faulty.Faulty("Pendulum-v1", str(tmp_path / "nothing"))
  for env in (*envs, plain):
    env.reset(seed=3)
  def play():
    failed = []
    expected = plain.step(np.ones(1))[0]
    for number, env in enumerate(envs):
      try:
        observ = env.step(np.ones(1))[0]
      except ValueError:
        failed.append(number)
        continue
      if np.isnan(observ).all():
        failed.append(number)
      else:
        np.testing.assert_array_equal(observ, expected)
    return failed
  assert play() == []
  faulty.order(path, fault)
  assert play() == [0]
  assert play() == []
  assert not os.listdir(tmp_path)


def test_rows_that_differ_only_in_times_are_alike():
  row = {"step": 3, "return_mean": 1.0, "seconds": 2.0, "restarts": 1,
         "stepping_share": 0.5}
  other = {**row, "seconds": 3.0, "restarts": 0, "stepping_share": 0.1}
  assert soak._without_times(row) == soak._without_times(other)
  assert soak._without_times({**row, "return_mean": 2.0}) != (
      soak._without_times(other))


def test_a_score_is_that_of_the_last_evaluations():
  rows = [{"phase": "eval", "return_mean": float(x)} for x in range(5)]
  rows.append({"phase": "train", "return_mean": 100.0})
  rows.append({"phase": "eval", "return_mean": None})
  assert soak._score(rows) == 3.0
  assert np.isnan(soak._score([]))
