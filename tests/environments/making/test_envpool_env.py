"""Single environments of EnvPool behave like Gymnasium's environments."""

import gymnasium
import numpy as np
import pytest

from agents import config as config_lib
from agents.environments.making import envpool_env, make

pytest.importorskip("envpool")

_ROBOT = "BarkourJoystick-v1"


def _config(env_id, **options):
  return config_lib.Env(env_id, backend="envpool", **options)


def _make(env_id, **options):
  return make.MakeEnv(_config(env_id, **options))()


def _values(observ):
  parts = observ if isinstance(observ, dict) else {"": observ}
  return {key: np.asarray(part).tolist() for key, part in parts.items()}


def _play(env, seed, actions):
  """Returns the values of an episode, up to its end."""
  values = [_values(env.reset(seed=seed)[0])]
  for action in actions:
    observ, *rest, _ = env.step(action)
    values.append((_values(observ), *rest))
    if any(rest[1:]):
      break
  return values


def _falling(num_steps):
  """Returns actions after which the robot falls at once."""
  pattern = np.where(np.arange(12) % 3 == 1, 1.0, -1.0)
  return [pattern] * num_steps


@pytest.mark.parametrize("env_id", ["Catch-v0", "Parking-v0", "MiniGrid-DoorKey-5x5-v0"])
def test_seed_determines_the_episode(env_id):
  env, other = _make(env_id), _make(env_id)
  env.action_space.seed(0)
  actions = [env.action_space.sample() for _ in range(9)]
  episode = _play(env, 2**31 - 2, actions)
  _play(env, 4, actions[:3])
  assert _play(env, 2**31 - 2, actions) == _play(other, 2**31 - 2, actions) == episode
  assert any(_play(env, seed, actions) != episode for seed in range(3))


def test_resets_without_seed_continue_the_random_numbers():
  env = _make("Parking-v0")
  first, second, third = (_values(env.reset(seed=seed)[0]) for seed in (1, None, None))
  assert first != second != third
  assert [_values(env.reset(seed=seed)[0]) for seed in (1, None)] == [first, second]
  assert _values(_make("Parking-v0").reset()[0]) != _values(_make("Parking-v0").reset()[0])


def test_reached_goals_terminate_and_the_time_limit_truncates():
  forward, right = 2, 1
  path = [forward, forward, right, forward, forward]
  for max_length, expected in ((None, (True, False)), (4, (False, True))):
    env = _make("MiniGrid-Empty-5x5-v0", max_length=max_length)
    *_, (_, reward, *ends) = episode = _play(env, 0, path)
    assert tuple(ends) == expected and len(episode) == 1 + (max_length or 5)
    assert (reward > 0) == expected[0] and type(reward) is float
  assert make.stated_length(_config("MiniGrid-Empty-5x5-v0")) == 100
  assert make.max_length(_config("MiniGrid-Empty-5x5-v0", max_length=4)) == 4
  assert make.stated_length(_config("Catch-v0")) is None


def test_terminations_at_the_time_limit_are_reported():
  *_, (_, _, *ends) = episode = _play(_make(_ROBOT), 0, _falling(40))
  assert ends == [True, False]
  length = len(episode) - 1
  *_, (_, _, *ends) = limited = _play(_make(_ROBOT, max_length=length), 0, _falling(40))
  assert ends == [True, True] and len(limited) == len(episode)


def test_robots_have_reward_parts_and_the_frame_rate_of_their_controller():
  env = _make(_ROBOT)
  env.reset(seed=0)
  *_, info = env.step(env.action_space.sample())
  assert {"reward_tracking_lin_vel", "reward_torques"} <= info.keys()
  assert make.fps(_config(_ROBOT)) == 50


def test_integer_boxes_of_actions_become_choices():
  env = _make("Minesweeper-v0")
  assert env.action_space == gymnasium.spaces.MultiDiscrete([10, 10])
  env.reset(seed=0)
  observ, *_ = env.step(np.array([3, 9]))
  assert observ["board"][3, 9] != -1 and (observ["board"] == -1).sum() < 100


def test_prefix_selects_envpool_although_gymnasium_has_the_task():
  assert not envpool_env.is_native(_config("Blackjack-v1"))
  assert not envpool_env.is_native(config_lib.Env("Catch-v0"))
  env = _make("envpool:Blackjack-v1")
  assert isinstance(env.unwrapped, envpool_env.EnvPoolEnv)
  assert env.spec.id == "envpool:Blackjack-v1"
  with pytest.raises(config_lib.ConfigError, match="env.id=envpool:Ant-v3 evaluates it in EnvPool"):
    make.check(_config("Ant-v3"))


@pytest.mark.parametrize(
  "env_id, kwargs, message",
  [
    ("Catch-v1", {}, "EnvPool has no Catch-v1.*Similar ids of EnvPool: Catch-v0"),
    ("Catch-v0", {"size": 3}, "Catch-v0 does not take the argument 'size'.*height, .*width"),
    ("Catch-v0", {"num_envs": 3}, "argument 'num_envs'.*Use num_envs, num_workers"),
    ("Catch-v0", {"max_episode_steps": 3}, "env.max_length"),
    ("Catch-v0", {"height": "tall"}, "does not accept env.kwargs={'height': 'tall'}"),
    ("Go9x9-v1", {}, "a game of 2 players"),
  ],
)
def test_unknown_tasks_and_arguments_are_errors(env_id, kwargs, message):
  with pytest.raises(config_lib.ConfigError, match=message):
    make.check(_config(env_id, kwargs=kwargs))


def test_arguments_change_the_task():
  assert _make("Catch-v0", kwargs={"height": 7, "width": 4}).observation_space.shape == (7, 4)


def test_frames_show_the_task_or_the_error_names_the_reason():
  env = make.MakeEnv(_config("MiniGrid-Empty-5x5-v0"), "rgb_array")()
  env.reset(seed=0)
  frames = [env.render()]
  env.step(1)
  frames.append(env.render())
  for frame in frames:
    assert frame.dtype == np.uint8 and frame.shape == (160, 160, 3)
  assert (frames[0] != frames[1]).any()
  env = make.MakeEnv(_config("Catch-v0"), "rgb_array")()
  env.reset(seed=0)
  with pytest.raises(RuntimeError, match="can't render this task: render not implemented"):
    env.render()


@pytest.mark.slow
def test_every_kind_of_observation_and_action_steps():
  ids = ["FetchReach-v4", "Maze-v0", "MetaWorld/Assembly-v3", "Play2048-v1", "Pong-v5"]
  ids += ["myoFingerPoseFixed-v0", "SearchAndRescue-v0", "Tetris-v0"]
  for env_id in ids:
    env = _make(env_id)
    make.check(_config(env_id))
    env.reset(seed=0)
    observ, reward, *_ = env.step(env.action_space.sample())
    assert env.observation_space.contains(observ), env_id
    assert np.isfinite(reward)
