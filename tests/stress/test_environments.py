"""Disturbances change the simulation of any environment of a run."""

import contextlib

import gymnasium
import numpy as np
import pytest

from agents import config as config_lib
from agents.environments.making import make
from agents.stress import disturbances, environments

_ROBOTS = "InvertedPendulum InvertedDoublePendulum Reacher Pusher Swimmer Hopper HalfCheetah"
_ROBOTS += " Walker2d Ant Humanoid HumanoidStandup"


def _model(env):
  """Returns the model after a reset."""
  with contextlib.closing(make.MakeEnv(env)()) as made:
    made.reset(seed=0)
    return made.unwrapped.model


@pytest.mark.parametrize("name", _ROBOTS.split())
def test_gymnasium_robots_support_all_disturbances(name):
  env = config_lib.Env(f"{name}-v5")
  environments.check(environments.undisturbed(env), disturbances.DISTURBANCES)


def test_control_group_of_a_randomized_run_has_the_original_simulation():
  randomization = {"friction": [0.1, 0.2], "mass": [2, 3], "push": [1, 2], "observe": True}
  env = config_lib.Env("Hopper-v5", wrappers=({"DomainRandomization": randomization},))
  control = environments.undisturbed(env)
  original, model = gymnasium.make("Hopper-v5").unwrapped.model, _model(control)
  for field in ("geom_friction", "body_mass", "body_inertia"):
    np.testing.assert_array_equal(getattr(model, field), getattr(original, field))
  with contextlib.closing(make.MakeEnv(control)()) as made:
    observ, info = made.reset(seed=0)
    np.testing.assert_array_equal(observ["randomization"], [1, 1, 0])
  # A disturbance takes precedence over the constant values.
  slippery = _model(environments.disturbed(control, "friction", 0.5, 0.5))
  np.testing.assert_allclose(slippery.geom_friction, original.geom_friction / 2)
  loaded = _model(environments.disturbed(control, "payload", 0.5, 0.5))
  added = loaded.body_mass - original.body_mass
  np.testing.assert_allclose(added, [0, original.body_mass.sum() / 2, 0, 0, 0])


@pytest.mark.parametrize(
  "settings, limit",
  [({}, 1000), ({"action_repeat": 4}, 250), ({"random_start": 9}, 1000), ({"max_length": 7}, 7)],
)
def test_only_terminated_episodes_are_shorter_than_the_time_limit(settings, limit):
  control = environments.undisturbed(config_lib.Env("HalfCheetah-v5", **settings))
  assert control.max_length == limit
  with contextlib.closing(make.MakeEnv(control)()) as env:
    env.reset(seed=0)
    action, length, truncated = np.zeros(env.action_space.shape, np.float32), 0, False
    while not truncated:
      *_, truncated, _ = env.step(action)
      length += 1
  assert length == limit


@pytest.mark.parametrize(
  "env, names, message",
  [
    (config_lib.Env("CartPole-v1"), ["push"], "push is not possible.*needs a MuJoCo environment"),
    (
      config_lib.Env(
        "InvertedPendulum-v5",
        kwargs={"render_mode": "rgb_array"},
        wrappers=({"Pixels": {"size": [64, 64]}},),
      ),
      ["friction", "noise"],
      "noise changes numbers, but this policy observes images",
    ),
  ],
)
def test_unsupported_environments_are_errors(env, names, message):
  with pytest.raises(config_lib.ConfigError, match=message):
    environments.check(environments.undisturbed(env), names)
