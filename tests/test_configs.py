"""Named configs and users' config files load, and fit their environments."""

import ast
import os
import pathlib
import subprocess
import sys

import gymnasium
import pytest

from agents import config as config_lib
from agents import configs, spaces
from agents.environments.making import make
from tests.support import config_fixtures

_ENVS = {
  "ant": "Ant-v5",
  "barkour": "robots/barkour-v0",
  "breakout": "ALE/Breakout-v5",
  "cartpole": "CartPole-v1",
  "cheetah": "HalfCheetah-v5",
  "debug": "InvertedPendulum-v5",
  "dmc_cartpole_swingup": "dm_control/cartpole-swingup-v0",
  "dmc_cheetah_run": "dm_control/cheetah-run-v0",
  "dmc_hopper_hop": "dm_control/hopper-hop-v0",
  "dmc_humanoid_stand": "dm_control/humanoid-stand-v0",
  "dmc_walker_run": "dm_control/walker-run-v0",
  "dmc_walker_walk": "dm_control/walker-walk-v0",
  "g1": "robots/g1-v0",
  "go1": "robots/go1-v0",
  "go1_getup": "Go1Getup-v1",
  "go1_rough": "robots/go1_rough-v0",
  "h1": "robots/h1-v0",
  "hopper": "Hopper-v5",
  "humanoid": "Humanoid-v5",
  "humanoid_standup": "HumanoidStandup-v5",
  "inverted_double_pendulum": "InvertedDoublePendulum-v5",
  "inverted_pendulum": "InvertedPendulum-v5",
  "pendulum": "Pendulum-v1",
  "pixel_cartpole": "CartPole-v1",
  "pixel_inverted_pendulum": "InvertedPendulum-v5",
  "pong": "ALE/Pong-v5",
  "pusher": "Pusher-v5",
  "reacher": "Reacher-v5",
  "spot": "robots/spot-v0",
  "swimmer": "Swimmer-v5",
  "t1": "robots/t1-v0",
  "walker": "Walker2d-v5",
}

_ROBOTS = "barkour", "g1", "go1", "go1_getup", "go1_rough", "h1", "spot", "t1"
# Configs without an environment, from which other configs are derived.
_BASES = "atari", "default", "dm_control", "short_segments"

_USER_CONFIG = """
from agents.configs import default
CONFIG = default.CONFIG.override({"env.id": "CartPole-v1", "seed": 7})
"""


def test_names_lists_all_configs():
  assert configs.names() == sorted([*_ENVS, *_BASES])


@pytest.mark.parametrize("name", _ENVS)
def test_environment_of_a_config_can_be_built(name):
  assert configs.load(name)[0] == name
  assert configs.load(name)[1].env.id == _ENVS[name]
  config = config_fixtures.config(name)
  # Notes would report an unknown time limit or images that are not supported.
  assert make.check(config.env) == []


@pytest.mark.parametrize("name", _ENVS)
def test_spaces_of_an_environment_are_supported(name):
  config = config_fixtures.config(name)
  env = make.MakeEnv(config.env)()
  try:
    spaces.check(env.observation_space, env.action_space)
    expected = (
      gymnasium.spaces.Discrete
      if name in ("breakout", "cartpole", "pixel_cartpole", "pong")
      else gymnasium.spaces.Box
    )
    assert isinstance(env.action_space, expected)
    if not config.env.renders:  # Only workers render.
      observ, _ = env.reset(seed=0)
      assert env.observation_space.contains(observ)
      env.step(env.action_space.sample())
  finally:
    env.close()


@pytest.mark.parametrize("name", configs.names())
def test_config_round_trips_through_text(name):
  _, config = configs.load(name)
  text = config_lib.dump(config)
  assert config_lib.load(text, name) == config
  assert "!" not in text


@pytest.mark.parametrize("name", [*_ENVS, "atari", "dm_control", "short_segments"])
def test_config_file_lists_only_differences_from_its_base(name):
  tree = ast.parse(pathlib.Path(f"{configs.__path__[0]}/{name}.py").read_text())
  assert ast.get_docstring(tree)
  settings = next(ast.literal_eval(node) for node in ast.walk(tree) if isinstance(node, ast.Dict))
  imported = {
    alias.name
    for node in ast.walk(tree)
    if isinstance(node, ast.ImportFrom)
    for alias in node.names
  }
  (base_name,) = imported & {*_BASES, "go1"}
  base = configs.load(base_name)[1]
  for key, value in settings.items():
    assert base.override({key: value}) != base, key
  assert base.override(settings) == configs.load(name)[1]


@pytest.mark.parametrize("name", _ENVS)
def test_config_has_the_expected_budget(name):
  budgets = {
    "breakout": 10_000_000,
    "cartpole": 100_000,
    "debug": 8_192,
    "dmc_humanoid_stand": 10_000_000,
    **dict.fromkeys(_ROBOTS, 8_000_000),
    "pendulum": 300_000,
    "pixel_cartpole": 300_000,
    "pixel_inverted_pendulum": 300_000,
    "pong": 2_500_000,
  }
  _, config = configs.load(name)
  usual_budget = 3_000_000 if name.startswith("dmc_") else 1_000_000
  assert config.steps == budgets.get(name, usual_budget)


def test_default_config_equals_the_default_values():
  assert configs.load("default") == ("default", config_lib.Config())


@pytest.mark.parametrize("name", _BASES)
def test_base_configs_have_no_environment(name):
  with pytest.raises(config_lib.ConfigError, match="env.id is empty"):
    make.check(configs.load(name)[1].env)


def test_loading_configs_imports_no_tensorflow_and_no_mujoco():
  code = (
    "import sys\nfrom agents import configs\n"
    "from agents.configs import presets\n"
    "for name in configs.names():\n"
    "  presets.apply('paper', configs.load(name)[1])\n"
    "print('tensorflow' in sys.modules, 'mujoco' in sys.modules)"
  )
  root = pathlib.Path(configs.__file__).parents[1]
  result = subprocess.run(
    [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
  )
  assert result.stdout.strip() == "False False"


@pytest.mark.parametrize(
  "name, message",
  [
    ("cheeta", "no such config. Did you mean 'cheetah'?"),
    ("half_cheetah", "Did you mean 'cheetah'?"),
    ("xyz", "Configs: ant, atari, barkour, breakout"),
    ("", "no such config"),
    ("default.CONFIG", "no such config"),
    ("missing.py", "no Python file"),
    ("folder/missing.py", "no Python file"),
    ("./cheetah", "no Python file"),
    ("/", "no Python file"),
  ],
)
def test_unknown_names_are_errors_with_suggestions(name, message):
  with pytest.raises(config_lib.ConfigError) as caught:
    configs.load(name)
  assert f"--config {name}: " in str(caught.value)
  assert message in str(caught.value)


def test_user_file_is_loaded_by_its_path(tmp_path, monkeypatch):
  (tmp_path / "folder").mkdir()
  path = tmp_path / "folder" / "mine.py"
  path.write_text(_USER_CONFIG)
  monkeypatch.chdir(tmp_path)
  monkeypatch.setenv("HOME", str(tmp_path))
  for name in (
    str(path),
    os.path.join("folder", "mine.py"),
    os.path.join("~", "folder", "mine.py"),
  ):
    run_name, config = configs.load(name)
    assert run_name == "mine"
    assert config == config_lib.Config(env=config_lib.Env("CartPole-v1"), seed=7)
  monkeypatch.chdir(tmp_path / "folder")
  assert configs.load("mine.py")[0] == "mine"


def test_user_file_may_have_the_name_of_a_shipped_config(tmp_path):
  path = tmp_path / "cheetah.py"
  path.write_text(_USER_CONFIG)
  assert configs.load(str(path))[1].env.id == "CartPole-v1"
  assert configs.load("cheetah")[1].env.id == "HalfCheetah-v5"


def test_user_file_may_define_dataclasses(tmp_path):
  path = tmp_path / "mine.py"
  path.write_text(
    "from __future__ import annotations\n"
    "import dataclasses\n"
    "@dataclasses.dataclass\n"
    "class Task:\n"
    "  weight: int = 3\n" + _USER_CONFIG
  )
  assert configs.load(str(path))[1].seed == 7


@pytest.mark.parametrize(
  "code",
  [
    "",
    "config = 3",
    "CONFIG = 3",
    "CONFIG = {'steps': 3}",
    "from agents.config import Config as CONFIG",
  ],
)
def test_user_file_without_config_is_an_error(code, tmp_path):
  path = tmp_path / "mine.py"
  path.write_text(code)
  with pytest.raises(config_lib.ConfigError, match="mine.py: expected a module-level CONFIG"):
    configs.load(str(path))


def test_error_in_a_user_file_names_the_line(tmp_path):
  path = tmp_path / "mine.py"
  path.write_text("raise KeyError('mine')")
  with pytest.raises(config_lib.ConfigError) as caught:
    configs.load(str(path))
  assert f'File "{path}", line 1' in str(caught.value)
  assert "KeyError: 'mine'" in str(caught.value)
