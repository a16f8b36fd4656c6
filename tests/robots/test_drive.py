"""Commands are read from text and keys, and reach the robot."""

import numpy as np
import pytest

from agents import config
from agents.robots import drive, velocity_env


def test_text_contains_commands_and_durations():
  phases = drive.parse_commands("1,0,0 for 3s; -0.5, 0.2 ,1e-1 for 0.5 s;")
  assert phases == [drive.Phase((1.0, 0.0, 0.0), 150), drive.Phase((-0.5, 0.2, 0.1), 25)]


@pytest.mark.parametrize(
  "text",
  ["1,0 for 3s", "1,0,0", "1,0,0 for 3", "a,0,0 for 3s", "1,0,0 for 0s", "nan,0,0 for 3s"]
  + ["1,0,0 for infs", "1,0,0 for -1s", "1,0,0 for 3s, 0,0,1 for 2s"],
)
def test_other_text_is_a_user_error(text):
  with pytest.raises(config.ConfigError, match="is not a command.*1,0,0 for 3s"):
    drive.parse_commands(text)
  with pytest.raises(config.ConfigError, match="is empty"):
    drive.parse_commands(" ; ")


def test_other_environments_take_no_commands():
  with pytest.raises(config.ConfigError, match="config go1.*Ant-v5"):
    drive.check(config.Env("Ant-v5"))
  drive.check(config.Env("robots/h1-v0"))


def test_keys_change_the_command_within_its_limits(capsys):
  env, command = velocity_env.VelocityEnv("go1"), np.zeros(3)
  up, left, period, space, other = 265, 263, 46, 32, 65
  drive.press(command, up, env)
  drive.press(command, left, env)
  drive.press(command, period, env)
  np.testing.assert_allclose(command, np.array([1.5, -0.8, 1.2]) / 4)
  for _ in range(9):
    drive.press(command, up, env)
  assert command[0] == 1.5
  drive.press(command, other, env)
  drive.press(command, space, env)
  assert not command.any()
  assert capsys.readouterr().out.count("command") == 13


def test_command_of_the_driver_reaches_observation_and_gait():
  env = velocity_env.VelocityEnv("go1")
  env.reset(seed=0)
  env.set_command((0.5, -0.1, 0.2))
  np.testing.assert_allclose(env.observe()["state"][-5:-2], (0.5, -0.1, 0.2))
  for _ in range(50):
    observ, *_ = env.step(np.zeros(12))
  np.testing.assert_allclose(observ["state"][-5:-2], (0.5, -0.1, 0.2))
