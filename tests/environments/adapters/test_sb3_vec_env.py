"""Stable-Baselines3 gets from us what it gets from its own DummyVecEnv."""

import importlib.util
import subprocess
import sys

import pytest

from tests import command

if not importlib.util.find_spec("stable_baselines3"):
  pytest.skip("Needs stable_baselines3.", allow_module_level=True)


@pytest.fixture(autouse=True)
def patience(deadline):
  """Workers import all of their library, too."""
  deadline(300)


def _run(check: str, workers: int):
  subprocess.run(
      [sys.executable, "-c", "from tests.environments.adapters import sb3_checks; "
       f"sb3_checks.{check}({workers})"], cwd=command.ROOT, check=True)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("check", [
    "everything_returned_is_equal", "chosen_environments_are_reached",
    "options_that_differ_are_refused"])
def test_it_is_a_vec_env(check, workers):
  _run(check, workers)


@pytest.mark.slow
def test_their_ppo_learns_in_it():
  _run("their_ppo_learns", 2)
