"""Wrappers change only the results of a step that they are meant to change."""

import gymnasium
import numpy as np
import pytest

from agents.environments.making import wrappers
from tests import toy
from tests.environments import faulty_envs


def test_action_repeat_sums_rewards():
  env = wrappers.ActionRepeat(toy.Counter(length=100), 3)
  env.reset(seed=5)
  # Rewards are 1 + 2 + 3, then 4 + 5 + 6.
  assert env.step(0)[:4] == (pytest.approx([5, 3]), 6.0, False, False)
  assert env.step(0)[:4] == (pytest.approx([5, 6]), 15.0, False, False)


@pytest.mark.parametrize("truncates", [False, True])
def test_action_repeat_stops_when_the_episode_ends(truncates):
  env = wrappers.ActionRepeat(toy.Counter(4, truncates), 3)
  env.reset(seed=5)
  env.step(0)
  observ, reward, terminated, truncated, _ = env.step(0)
  assert observ.tolist() == [5, 4] and reward == 4.0
  assert (terminated, truncated) == (not truncates, truncates)


def test_action_repeat_sums_reward_parts():
  # The environment reports half of each step's reward as a part.
  env = wrappers.ActionRepeat(toy.Counter(length=5), 3)
  env.reset(seed=5)
  for _ in range(2):
    _, reward, _, _, info = env.step(0)
    assert info["reward_part"] == 0.5 * reward


def test_action_repeat_repeats_the_action():
  received = []

  class Env(toy.Counter):
    def step(self, action):
      received.append(action)
      return super().step(action)

  env = wrappers.ActionRepeat(Env(length=100), 3)
  env.reset(seed=0)
  env.step("a")
  env.step("b")
  assert received == ["a"] * 3 + ["b"] * 3


def test_random_start_takes_at_most_max_steps():
  env = wrappers.RandomStart(toy.Counter(length=100), 4)
  steps = [env.reset(seed=seed)[0][1] for seed in range(100)]
  assert set(steps) == {0, 1, 2, 3, 4}


def test_random_start_depends_only_on_the_seed():
  env, other = (wrappers.RandomStart(gymnasium.make("CartPole-v1"), 8) for _ in range(2))
  for seed in range(20):
    expected, _ = env.reset(seed=seed)
    # `other` first begins an episode with another seed.
    other.reset(seed=seed + 1)
    other.step(1)
    assert other.reset(seed=seed)[0].tobytes() == expected.tobytes()
    assert env.step(0)[0].tobytes() == other.step(0)[0].tobytes()


def test_random_start_takes_different_actions():
  env = wrappers.RandomStart(toy.Counter(length=100), 9)
  actions = set()
  for seed in range(30):
    if env.reset(seed=seed)[0][1]:
      actions.add(float(env.unwrapped.last_action[0]))
  assert len(actions) > 20
  assert min(actions) < -1 and max(actions) > 1  # The space is [-2, 2].


def test_random_start_and_environment_draw_different_numbers():
  # Targets and actions are uniform in [-1, 1]. The reward of a step is 1 if its
  # action equals the target.
  rewards = []

  class Env(toy.Target):
    def step(self, action):
      result = super().step(action)
      rewards.append(result[1])
      return result

  env = wrappers.RandomStart(Env(length=100), 1)
  for seed in range(50):
    env.reset(seed=seed)
  assert len(rewards) > 10
  assert np.mean(rewards) < 0.9


def test_random_start_resets_an_episode_that_ends():
  env = wrappers.RandomStart(toy.Counter(length=2), 7)
  steps = [env.reset(seed=seed)[0][1] for seed in range(50)]
  assert set(steps) == {0, 1}


def test_frame_delta_observes_differences():
  env = wrappers.FrameDelta(toy.Counter(length=3))
  for seed in (5, 6):
    assert env.reset(seed=seed)[0].tolist() == [seed, 0]
    for _ in range(3):
      observ, reward, terminated, truncated, _ = env.step(0)
      assert observ.tolist() == [0, 1]
    assert (reward, terminated, truncated) == (3, True, False)


def test_sum_of_frame_deltas_is_the_observation():
  plain, delta = (gymnasium.make("Pendulum-v1") for _ in range(2))
  delta = wrappers.FrameDelta(delta)
  plain.reset(seed=3)
  total, _ = delta.reset(seed=3)
  for _ in range(20):
    expected = plain.step(np.ones(1))[0]
    total = total + delta.step(np.ones(1))[0]
    np.testing.assert_allclose(total, expected, atol=1e-5)


def test_frame_delta_copies_a_reused_array():
  env = wrappers.FrameDelta(faulty_envs.Reusing())
  env.reset(seed=5)
  assert [env.step(0)[0].tolist() for _ in range(3)] == [[0, 1]] * 3


def test_frame_delta_has_no_bounds():
  env = wrappers.FrameDelta(gymnasium.make("Pendulum-v1"))
  assert env.observation_space == gymnasium.spaces.Box(-np.inf, np.inf, (3,), np.float32)


@pytest.mark.parametrize("env_id", ["FrozenLake-v1", "Blackjack-v1"])
def test_frame_delta_needs_floats(env_id):
  with pytest.raises(TypeError, match="frame_delta needs.*(Discrete|Tuple)"):
    wrappers.FrameDelta(gymnasium.make(env_id))


def _episode_end(env, seed):
  """Returns (length, terminated, truncated) of an episode."""
  observ, _ = env.reset(seed=seed)
  assert observ.tolist() == [seed, 0]
  for length in range(1, 100):
    observ, _, terminated, truncated, _ = env.step(0)
    assert observ.tolist() == [seed, length]
    if terminated or truncated:
      return length, terminated, truncated


@pytest.mark.parametrize("truncates", [False, True])
def test_staggered_limit_truncates_only_the_episode_of_its_seed(truncates):
  env = wrappers.StaggeredTimeLimit(toy.Counter(7, truncates), seed=5, length=3)
  for seed in (4, 5, 6, 5, 5, 4):
    assert _episode_end(env, seed) == (
      (3, False, True) if seed == 5 else (7, not truncates, truncates)
    )


@pytest.mark.parametrize("length", [7, 8])
def test_episode_that_ends_by_itself_is_not_truncated(length):
  env = wrappers.StaggeredTimeLimit(toy.Counter(7), seed=5, length=length)
  assert _episode_end(env, 5) == (7, True, False)


@pytest.mark.parametrize("seed", [4, 5])
def test_info_contains_cut_short_only_at_the_staggered_limit(seed):
  env = wrappers.StaggeredTimeLimit(toy.Counter(7), seed=5, length=3)
  env.reset(seed=seed)
  reported = [env.step(0)[4].get("cut_short") for _ in range(3)]
  assert reported == [None, None, True if seed == 5 else None]


def test_step_method_that_an_environment_replaces_is_called():
  class Env(toy.Counter):
    def reset(self, **kwargs):
      self.step = lambda action: "replaced"
      return super().reset(**kwargs)

  env = wrappers.StaggeredTimeLimit(Env(), seed=5, length=3)
  env.reset(seed=4)
  assert env.step(0) == "replaced"


def test_steps_of_episodes_with_other_seeds_are_returned_unchanged():
  result = object()

  class Env(toy.Counter):
    def step(self, action):
      return result

  env = wrappers.StaggeredTimeLimit(Env(), seed=5, length=3)
  env.reset(seed=4)
  assert env.step(0) is result


def test_action_mask_observes_the_mask_in_infos():
  env = wrappers.ActionMask(gymnasium.make("Taxi-v4"))
  observ, info = env.reset(seed=0)
  for _ in range(20):
    assert env.observation_space.contains(observ)
    np.testing.assert_array_equal(observ["action_mask"], info["action_mask"])
    action = int(np.flatnonzero(observ["action_mask"])[0])
    observ, _, _, _, info = env.step(action)


def test_action_mask_rejects_environments_without_masks():
  with pytest.raises(ValueError, match="'action_mask' after resets"):
    wrappers.ActionMask(toy.Target(discrete=True)).reset(seed=0)
  with pytest.raises(TypeError, match="needs Discrete or MultiDiscrete"):
    wrappers.ActionMask(toy.Target())
