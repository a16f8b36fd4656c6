"""SB3VecEnv returns the same results as Stable-Baselines3's DummyVecEnv."""

import importlib.util
import subprocess
import sys

import pytest

from tests.support import command

if not importlib.util.find_spec("stable_baselines3"):
  pytest.skip("Needs stable_baselines3.", allow_module_level=True)


@pytest.fixture(autouse=True)
def long_deadline(deadline):
  """Sets a long time limit: workers import Stable-Baselines3 and PyTorch."""
  deadline(300)


def _run(check: str, workers: int):
  code = f"from tests.environments.adapters import sb3_checks; sb3_checks.{check}({workers})"
  subprocess.run([sys.executable, "-c", code], cwd=command.ROOT, check=True)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
  "check",
  [
    "returned_values_are_equal",
    "selected_environments_are_accessible",
    "different_options_are_refused",
  ],
)
def test_vec_env_equals_dummy_vec_env(check, workers):
  _run(check, workers)


@pytest.mark.slow
def test_sb3_ppo_learns_with_sb3_vec_env():
  _run("sb3_ppo_learns", 2)
