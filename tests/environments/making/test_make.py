"""`make` builds environments by name, or its error names the mistake."""

import cloudpickle
import gymnasium
import numpy as np
import pytest

from agents import config as config_lib
from agents.environments.data import episode_data
from agents.environments.making import make
from tests import toy
from tests.environments import faulty_envs

_FAULTY = faulty_envs.__name__


def _make(env_id, render_mode=None, **options):
  return make.MakeEnv(config_lib.Env(env_id, **options), render_mode)()


def _play(env, action=None, seed=0):
  """Returns (rewards, terminated, truncated) of one episode.

  Takes random actions if `action` is None.
  """
  env.reset(seed=seed)
  rewards, terminated, truncated = [], False, False
  while not (terminated or truncated):
    sample = env.action_space.sample() if action is None else action
    _, reward, terminated, truncated, _ = env.step(sample)
    rewards.append(reward)
  env.close()
  return rewards, terminated, truncated


def test_gymnasium_id_is_built():
  env = _make("CartPole-v1")
  assert env.spec.id == "CartPole-v1"
  # Gymnasium's checker must be off, because it slows down every step.
  assert "PassiveEnvChecker" not in str(env)
  assert len(_play(env)[0]) > 5


def test_class_of_a_module_is_built():
  env = _make("tests.toy:Counter", kwargs={"length": 7, "truncates": True})
  assert type(env.unwrapped) is toy.Counter
  assert _play(env, 0) == ([1, 2, 3, 4, 5, 6, 7], False, True)


def test_module_that_registers_an_id_is_imported():
  env = _make(f"{_FAULTY}:Odd-v0", kwargs={"length": 7})
  assert type(env.unwrapped) is toy.Counter
  # The module registers the id with a time limit of two steps.
  assert _play(env, 0) == ([1, 2], False, True)


def test_function_of_a_module_is_called():
  env = _make(f"{_FAULTY}:make_cheetah")
  assert env.spec.id == "HalfCheetah-v5"
  env.close()


def test_arguments_reach_the_environment():
  env = _make("HalfCheetah-v5", kwargs={"forward_reward_weight": 0.0})
  env.reset(seed=0)
  *_, info = env.step(np.ones(6, np.float32))
  env.close()
  assert info["reward_forward"] == 0 and info["reward_ctrl"] < 0


@pytest.mark.parametrize("max_length", [5, 250])
def test_max_length_replaces_the_time_limit_of_the_task(max_length):
  rewards, terminated, truncated = _play(_make("Pendulum-v1", max_length=max_length))
  assert (len(rewards), terminated, truncated) == (max_length, False, True)
  assert len(_play(_make("Pendulum-v1"))[0]) == 200


def test_max_length_does_not_change_termination():
  env = _make("tests.toy:Counter", max_length=4)
  assert _play(env, 0) == ([1, 2, 3], True, False)


def test_max_length_counts_steps_of_the_agent():
  env = _make(
    "tests.toy:Counter", kwargs={"length": 100}, max_length=2, action_repeat=3, random_start=4
  )
  for seed in range(5):
    start = int(env.reset(seed=seed)[0][1])
    # `action_repeat` also repeats the random actions.
    assert start % 3 == 0
    expected = [sum(range(start + first, start + first + 3)) for first in (1, 4)]
    assert _play(env, 0, seed) == (expected, False, True)


def test_wrappers_of_all_settings_can_be_combined():
  env = _make("Hopper-v5", max_length=5, action_repeat=2, random_start=3, frame_delta=True)
  rewards = _play(env)[0]
  assert 1 <= len(rewards) <= 5


def test_wrappers_are_applied_by_name():
  env = _make(
    "Pendulum-v1",
    wrappers=(
      {f"{_FAULTY}:Doubled": {"factor": 3}},
      {"DelayObservation": {"delay": 1}},
      {"TransformReward": {"func": float}},
    ),
    max_length=5,
  )
  plain = _make("Pendulum-v1")
  plain.reset(seed=0)
  env.reset(seed=0)
  for _ in range(3):
    action = np.ones(1, np.float32)
    assert env.step(action)[1] == 3 * plain.step(action)[1]
  assert str(env).startswith("<TimeLimit<TransformReward<DelayObservation<Doubled<")
  env.close()
  plain.close()


def test_wrappers_turn_a_control_task_into_images():
  pytest.importorskip("cv2")
  env = _make(
    "CartPole-v1",
    kwargs={"render_mode": "rgb_array"},
    wrappers=(
      {"AddRenderObservation": {"render_only": True}},
      {"GrayscaleObservation": {}},
      {"ResizeObservation": {"shape": [84, 80]}},
    ),
  )
  observ, _ = env.reset(seed=0)
  env.close()
  assert observ.shape == env.observation_space.shape == (84, 80)
  assert observ.dtype == np.uint8 and observ.min() < 100 < observ.max()


def test_constructor_can_be_pickled():
  constructor = make.MakeEnv(config_lib.Env("tests.toy:Counter", {"length": 7}, max_length=5))
  assert str(constructor) == "tests.toy:Counter"
  copy = cloudpickle.loads(cloudpickle.dumps(constructor))
  assert copy == constructor
  assert len(_play(copy(), 0)[0]) == 5


@pytest.mark.parametrize(
  "env, message",
  [
    (config_lib.Env(""), "env.id is empty"),
    (config_lib.Env("HalfCheeta-v5"), "HalfCheeta"),
    (config_lib.Env("HalfCheetah-v99"), "v99"),
    (config_lib.Env("no_such_module:Env-v0"), "no_such_module"),
    (config_lib.Env(":Env"), "'' is not the complete name of a module"),
    (config_lib.Env(".toy:Counter"), "'.toy' is not the complete name of a module"),
    (config_lib.Env("tests.toy:Countre"), "Countre"),
    (config_lib.Env("tests.toy:Countre-v0"), "Countre"),
    (config_lib.Env(f"{_FAULTY}:make_nothing"), "NoneType"),
    (config_lib.Env("tests.toy:os"), "must be an environment class"),
    (config_lib.Env("os:getcwd"), "must be an environment class"),
    (config_lib.Env("fractions:Fraction"), "must be an environment class"),
    (config_lib.Env(f"{_FAULTY}:FalsyError"), "must be an environment class"),
    (config_lib.Env("HalfCheetah-v5", {"speed": 3}), "speed"),
    (config_lib.Env("tests.toy:Counter", {"speed": 3}), "speed"),
    (config_lib.Env("tests.toy:Counter", {3: 3}), "3"),
    (
      config_lib.Env("CartPole-v1", wrappers=({"GreyscaleObservation": {}},)),
      "env.wrappers=.*has no class of this name. Did you mean 'GrayscaleObs",
    ),
    (
      config_lib.Env("CartPole-v1", wrappers=({"os:getcwd": {}},)),
      "env.wrappers=os:getcwd: the module has no class of this name",
    ),
    (
      config_lib.Env("CartPole-v1", wrappers=({"tests.toy:Counter": {}},)),
      "env.wrappers=tests.toy:Counter: it must be derived from gymnasium",
    ),
    (config_lib.Env("CartPole-v1", wrappers=({"nowhere:Any": {}},)), "nowhere"),
    (config_lib.Env("CartPole-v1", wrappers=({"TimeAwareObservation": {"speed": 3}},)), "speed"),
    (config_lib.Env("CartPole-v1", wrappers=({"AddRenderObservation": {}},)), "render_mode"),
    (
      config_lib.Env("tests.commands.checks.test_environment_checker:TextObservation"),
      "Observation space Text",
    ),
    (config_lib.Env("FrozenLake-v1", frame_delta=True), "frame_delta"),
  ],
)
def test_check_names_the_mistake(env, message):
  with pytest.raises(config_lib.ConfigError, match=message):
    make.check(env)


def test_exit_of_an_environment_is_an_error(tmp_path):
  kwargs = {"path": tmp_path / "log", "fault": "exit"}
  with pytest.raises(RuntimeError, match=r"The environment has called sys.exit\(3\)"):
    make.check(config_lib.Env(f"{_FAULTY}:LogsLifetime", kwargs))


def test_check_notes_a_missing_time_limit():
  (note,) = make.check(config_lib.Env("tests.toy:Counter"))
  assert "tests.toy:Counter declares no time limit" in note
  assert "env.max_length" in note
  assert make.check(config_lib.Env("tests.toy:Counter", max_length=9)) == []
  assert make.check(config_lib.Env("CartPole-v1")) == []
  assert make.check(config_lib.Env(f"{_FAULTY}:Odd-v0")) == []


def test_check_notes_observations_that_only_look_like_images():
  (note,) = make.check(config_lib.Env("Blackjack-v1", wrappers=({f"{__name__}:FloatImage": {}},)))
  assert "shape (40, 36, 3) and type float32, so networks treat it as a vector" in note


class FloatImage(gymnasium.ObservationWrapper):
  """Observes images of floats."""

  def __init__(self, env):
    super().__init__(gymnasium.wrappers.TimeLimit(env, 9))
    self.observation_space = gymnasium.spaces.Box(0, 1, (40, 36, 3))

  def observation(self, _):
    return np.zeros((40, 36, 3), np.float32)


def test_endless_episodes_are_truncated():
  env = make.MakeEnv(config_lib.Env("CliffWalking-v1"))()
  env.reset(seed=0)
  up, steps, truncated = 0, 0, False
  while not truncated:
    _, _, terminated, truncated, _ = env.step(up)
    steps += 1
    assert not terminated
  assert steps == 10_000


@pytest.mark.parametrize(
  "env, expected",
  [
    (config_lib.Env("CliffWalking-v1"), None),
    (config_lib.Env("CliffWalking-v1", max_length=7), 7),
    (config_lib.Env("HalfCheetah-v5", action_repeat=3), 334),
    (config_lib.Env("tests.toy:Counter"), None),
  ],
)
def test_stated_length_is_the_configured_or_registered_limit(env, expected):
  assert make.stated_length(env) == expected


_FOUR_STEPS = {"TimeLimit": {"max_episode_steps": 4}}


@pytest.mark.parametrize(
  "env, expected",
  [
    (config_lib.Env("Pendulum-v1"), 200),
    (config_lib.Env("HalfCheetah-v5", action_repeat=4), 250),
    (config_lib.Env("HalfCheetah-v5", action_repeat=3), 334),
    (config_lib.Env("Pendulum-v1", action_repeat=300), 1),
    # `max_length` counts steps of the agent.
    (config_lib.Env("HalfCheetah-v5", max_length=7, action_repeat=3), 7),
    (config_lib.Env("Pendulum-v1", max_length=900), 900),
    (config_lib.Env("Pendulum-v1", frame_delta=True, random_start=9), 200),
    (config_lib.Env("tests.toy:Counter", max_length=9), 9),
    (config_lib.Env(f"{_FAULTY}:Odd-v0"), 2),
    (config_lib.Env(f"{_FAULTY}:make_cheetah"), 1000),
    (config_lib.Env("tests.toy:Counter", wrappers=(_FOUR_STEPS,), action_repeat=2), 2),
    (config_lib.Env("Pendulum-v1", wrappers=(_FOUR_STEPS,)), 4),
  ],
  ids=str,
)
def test_max_length_of_an_episode(env, expected):
  assert make.max_length(env) == expected


@pytest.mark.parametrize("action_repeat", [3, 7, 250])
def test_no_episode_is_longer_than_max_length(action_repeat):
  config = config_lib.Env("Pendulum-v1", action_repeat=action_repeat, random_start=2)
  env = make.MakeEnv(config)()
  lengths = [len(_play(env, seed=seed)[0]) for seed in range(5)]
  assert max(lengths) == make.max_length(config)


def test_unknown_max_length_is_an_error():
  with pytest.raises(
    config_lib.ConfigError, match="tests.toy:Counter registers no time limit.*set env.max_length"
  ):
    make.max_length(config_lib.Env("tests.toy:Counter"))


def test_max_length_closes_the_environment(tmp_path):
  path = tmp_path / "log"
  env = config_lib.Env(f"{_FAULTY}:LogsLifetime", {"path": str(path)})
  with pytest.raises(config_lib.ConfigError, match="no time limit"):
    make.max_length(env)
  assert path.read_text().split() == ["built", "closed"]


def test_check_requires_a_render_mode_for_videos():
  env = config_lib.Env("HalfCheetah-v5")
  assert make.check(env, needs_rendering=True) == []
  with pytest.raises(config_lib.ConfigError, match="rgb_array"):
    make.check(config_lib.Env("tests.toy:Counter", max_length=9), needs_rendering=True)


def test_check_closes_the_environment(tmp_path):
  path = tmp_path / "log"
  kwargs = {"path": str(path)}
  make.check(config_lib.Env(f"{_FAULTY}:LogsLifetime", kwargs))
  assert path.read_text().split() == ["built", "closed"]


def test_made_environment_has_the_spaces_of_the_task():
  env = _make("HalfCheetah-v5")
  assert isinstance(env.observation_space, gymnasium.spaces.Box)
  assert env.observation_space.shape == (17,)
  assert env.action_space.shape == (6,)
  env.close()
  assert faulty_envs.ProcessInfo().observation_space.shape == (2,)


def _first_lengths(constructors, seed):
  """Returns the lengths of the first two episodes of each environment."""
  lengths = []
  for index, constructor in enumerate(constructors):
    env = constructor()
    lengths.append(
      [
        len(_play(env, seed=episode_data.episode_seed(seed, index, number))[0])
        for number in range(2)
      ]
    )
  return lengths


def test_first_episodes_of_a_staggered_batch_have_different_lengths():
  constructors = make.staggered(config_lib.Env("Pendulum-v1", action_repeat=2), 4, 7)
  assert _first_lengths(constructors, 7) == [[25, 100], [50, 100], [75, 100], [100, 100]]
  constructors = make.staggered(config_lib.Env("Pendulum-v1", max_length=3), 5, 7)
  assert [first for first, _ in _first_lengths(constructors, 7)] == [1, 2, 2, 3, 3]


def test_tasks_without_time_limit_are_not_staggered():
  config = config_lib.Env("tests.toy:Counter")
  assert make.staggered(config, 3, 7) == make.constructors(config, 3, 7)
