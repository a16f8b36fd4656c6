"""SB3VecEnv equals Stable-Baselines3's DummyVecEnv in every result."""

import importlib.util
import subprocess
import sys

import pytest

from tests import command

if not importlib.util.find_spec("stable_baselines3"):
  pytest.skip("Needs stable_baselines3.", allow_module_level=True)


@pytest.fixture(autouse=True)
def long_deadline(deadline):
  """Allows for workers that import Stable-Baselines3 with PyTorch."""
  deadline(300)


def _run(check: str, workers: int):
  code = ("from tests.environments.adapters import sb3_checks; "
          f"sb3_checks.{check}({workers})")
  subprocess.run([sys.executable, "-c", code], cwd=command.ROOT, check=True)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("check", [
    "returned_values_are_equal", "selected_environments_are_accessible",
    "different_options_are_refused"])
def test_vec_env_equals_dummy_vec_env(check, workers):
  _run(check, workers)


@pytest.mark.slow
def test_sb3_ppo_learns_in_it():
  _run("sb3_ppo_learns", 2)
