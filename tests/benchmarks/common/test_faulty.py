import os

import numpy as np
import pytest

from benchmarks.common import faulty


@pytest.mark.parametrize("fault", ["raise", "nan"])
def test_one_environment_fails_once(fault, tmp_path):
  path = tmp_path / "fault"
  envs = [faulty.Faulty("Pendulum-v1", str(path)) for _ in range(3)]
  intact = faulty.Faulty("Pendulum-v1", str(tmp_path / "nothing"))
  for env in (*envs, intact):
    env.reset(seed=3)

  def step():
    failed = []
    expected = intact.step(np.ones(1))[0]
    for index, env in enumerate(envs):
      try:
        observ = env.step(np.ones(1))[0]
      except ValueError:
        failed.append(index)
        continue
      if np.isnan(observ).all():
        failed.append(index)
      else:
        np.testing.assert_array_equal(observ, expected)
    return failed

  assert step() == []
  faulty.request(path, fault)
  assert step() == [0]
  assert step() == []
  assert not os.listdir(tmp_path)
