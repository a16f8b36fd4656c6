"""Written code builds the same environment as training."""

import gymnasium
import pytest

from agents import config as config_lib
from agents.environments.making import make, wrappers
from agents.export import environment_code


def _layers(env):
  """Returns name and time limit of each wrapper, and the environment."""
  chain = [
    (type(wrapper).__name__.replace("Default", ""), getattr(wrapper, "_max_episode_steps", None))
    for wrapper in wrappers.chain(env)
  ]
  # MakeEnv disables Gymnasium's checker.
  return [layer for layer in chain if layer[0] != "PassiveEnvChecker"], type(env.unwrapped)


@pytest.mark.parametrize(
  "name, own",
  [("tests.toy:Counter", ["tests.toy"]), ("CartPole-v1", []), ("gymnasium.envs:CartPole-v1", [])],
)
def test_code_names_modules_that_python_may_not_find(name, own):
  assert environment_code.write(config_lib.Env(id=name)).own_modules == own


@pytest.mark.parametrize(
  "changes",
  [
    {"id": "CartPole-v1"},
    {"id": "Pendulum-v1", "kwargs": {"g": 9.0}, "max_length": 30},
    {"id": "gymnasium.envs:CartPole-v1"},
    {"id": "tests.toy:Counter", "kwargs": {"length": 4}},
    {"id": "tests.toy:Counter", "max_length": 2},
    {
      "id": "Pendulum-v1",
      "action_repeat": 2,
      "random_start": 3,
      "frame_delta": True,
      "wrappers": [
        {"RescaleAction": {"min_action": -1.0, "max_action": 1.0}},
        {"agents.environments.making.wrappers:FrameDelta": {}},
      ],
    },
    {"id": "tests.environments.blocks.vectors:counters", "kwargs": {"mode": "SameStep"}},
    {"id": "Catch-v0", "backend": "envpool", "kwargs": {"width": 4}},
    {"id": "MiniGrid-Empty-5x5-v0", "backend": "envpool", "max_length": 9},
    {"id": "Pendulum-v1", "kwargs": {"g": {"each": [5.0, 6.0]}}},
    {
      "id": "Hopper-v5",
      "wrappers": [{"DomainRandomization": {"mass": [0.9, 1.1], "observe": True}}],
    },
    {"id": "CartPole-v1", "max_length": 7, "wrappers": [{"ReshapeObservation": {"shape": [2, 2]}}]},
  ],
)
def test_code_builds_the_environment_of_the_run(changes):
  if changes.get("backend") == "envpool":
    pytest.importorskip("envpool")
  config = config_lib.Config().override({f"env.{key}": value for key, value in changes.items()}).env
  env = make.MakeEnv(config)()
  code = environment_code.write(config)
  scope: dict = {}
  exec("\n".join([*(f"import {name}" for name in code.modules), *code.statements]), scope)
  assert _layers(scope["env"]) == _layers(env)
  assert scope["env"].observation_space == env.observation_space
  assert scope["env"].action_space == env.action_space


def test_code_of_a_registered_task_needs_only_gymnasium():
  assert environment_code.write(config_lib.Env(id="CartPole-v1")) == (
    ["gymnasium"],
    [],
    ['env = gymnasium.make("CartPole-v1")'],
  )
  assert gymnasium.spec("CartPole-v1").max_episode_steps
