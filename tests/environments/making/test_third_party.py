"""Ids of other packages are registered, or an error names their extra."""

import importlib
import pathlib
import re
import sys

import pytest

from agents import config as config_lib
from agents.environments.making import make, third_party

_PROJECT = (pathlib.Path(__file__).parents[3] / "pyproject.toml").read_text()
_IDS = {
  "ALE/Pong-v5": "atari",
  "dm_control/cheetah-run-v0": "dm-control",
  "PointMaze_UMazeDense-v3": "robotics",
  "AdroitHandDoor-v1": "robotics",
  "HandReach-v3": "robotics",
  "FetchReachDense-v4": "robotics",
  "BipedalWalker-v3": "box2d",
  "LunarLanderContinuous-v3": "box2d",
  "gymnasium_robotics:FetchReach-v4": "robotics",
}


@pytest.mark.parametrize("env_id", _IDS)
def test_each_id_belongs_to_an_extra_of_the_project(env_id):
  family = third_party.find(env_id)
  assert family.extra == _IDS[env_id]
  assert re.search(rf"^{family.extra} = \[", _PROJECT, re.MULTILINE)


@pytest.mark.parametrize(
  "env_id",
  [
    "HalfCheetah-v5",
    "CartPole-v1",
    "Handy-v0",
    "my.ALE/Pong-v5",
    "tests.toy:HandReach",
    "FetchTasks:Arm",
  ],
)
def test_other_ids_belong_to_no_extra(env_id):
  assert third_party.find(env_id) is None
  third_party.register(env_id)


@pytest.mark.parametrize("env_id", _IDS)
def test_error_names_the_missing_extra(env_id, monkeypatch):
  for module in third_party.find(env_id).modules:
    monkeypatch.setitem(sys.modules, module, None)  # Hides the module.
  with pytest.raises(config_lib.ConfigError) as caught:
    make.check(config_lib.Env(env_id))
  assert f"`pip install 'batched-ppo[{_IDS[env_id]}]'`" in str(caught.value)
  assert f"env.id={env_id} needs " in str(caught.value)


def test_error_names_the_extra_of_incompatible_packages(monkeypatch):
  def fail(name):
    raise AttributeError(f"{name} needs an older MuJoCo.")

  monkeypatch.setattr(importlib, "import_module", fail)
  with pytest.raises(config_lib.ConfigError, match=r"batched-ppo\[dm-control\].*an older Mu"):
    third_party.register("dm_control/cheetah-run-v0")


@pytest.mark.parametrize(
  "env_id, module",
  [
    ("ALE/Pong-v5", "ale_py"),
    ("dm_control/cheetah-run-v0", "shimmy"),
    ("PointMaze_UMazeDense-v3", "gymnasium_robotics"),
    ("LunarLander-v3", "Box2D"),
  ],
)
def test_environments_of_other_packages_are_built(env_id, module):
  pytest.importorskip(module)
  env = make.MakeEnv(config_lib.Env(env_id, wrappers=({"FlattenObservation": {}},)))()
  try:
    first, _ = env.reset(seed=3)
    again, _ = env.reset(seed=3)
    assert env.observation_space.contains(first)
    assert first.tobytes() == again.tobytes()
    env.step(env.action_space.sample())
  finally:
    env.close()
