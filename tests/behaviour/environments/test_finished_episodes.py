"""Finished episodes have the correct score, length and last observation."""

import functools
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import pytest

from agents.environments import batch_env
from agents.environments.data import episode_data
from agents.environments.making import action_scaling
from tests import toy
from tests.environments import faulty_envs, rollouts

_SEED = 2
_pauses = pytest.mark.parametrize("probability", [0.0, 0.6], ids=["busy", "pauses"])


class _Images(toy.Counter):
  """Observes an image of bytes in which one pixel depends on the step."""

  def __init__(self, length: int = 3):
    super().__init__(length)
    self.observation_space = gymnasium.spaces.Box(0, 255, (4, 3, 1), np.uint8)

  def _observ(self):
    image = np.full((4, 3, 1), self._seed % 251, np.uint8)
    image[self._step % 4, self._step % 3] = 255 - self._step
    return image


# Batches with vectors, discrete observations and images. Sums of some rewards
# are rounded to float32.
_BATCHES = {
  **rollouts.BATCHES,
  "images": [functools.partial(_Images, length) for length in range(1, 6)],
  "equal_lengths": [functools.partial(toy.Counter, 3)] * 5,
}
_names = pytest.mark.parametrize(
  "name",
  [
    "toy",
    "hopper",
    "images",
    "equal_lengths",
    *(
      pytest.param(name, marks=pytest.mark.slow)
      for name in ("cartpole", "frozen_lake", "cheetah", "uneven", "wrapped")
    ),
  ],
)


class _Expected(NamedTuple):
  """A finished episode of an environment that is stepped without a batch."""

  time: int  # Index of the batched step that ends the episode.
  index: int  # Index of the environment in the batch.
  score: float
  length: int
  info: dict[str, Any]
  final_observ: np.ndarray


def _play_alone(env, index, actions, active, dtype):
  """Plays one environment in plain Python; returns its finished episodes."""
  convert = action_scaling.action_converter(env.action_space)
  finished, episode, score, length = [], 0, np.float32(0), 0
  env.reset(seed=episode_data.episode_seed(_SEED, index, episode))
  for time, (action, active_rows) in enumerate(zip(actions, active)):
    if not active_rows[index]:
      continue
    observ, reward, terminated, truncated, info = env.step(convert(action)[index])
    score, length = np.float32(score + np.float32(reward)), length + 1
    if terminated or truncated:
      finished.append(_Expected(time, index, float(score), length, info, np.array(observ, dtype)))
      episode, score, length = episode + 1, np.float32(0), 0
      env.reset(seed=episode_data.episode_seed(_SEED, index, episode))
  env.close()
  return finished


@functools.cache
def _reference(name, probability, num_steps=60):
  """Returns actions, active rows and finished episodes of all environments.

  Args:
    name: Key of `_BATCHES`.
    probability: Probability that an environment between two episodes waits
      for one step.
    num_steps: Number of batched steps, T.

  Returns:
    Actions [T, 5, ...], T bool arrays of shape [5], and the episodes in order
    of time and environment.
  """
  constructors = _BATCHES[name]
  with batch_env.BatchEnv(constructors, seed=_SEED) as batch:
    first = batch.reset()
    actions = rollouts.draw_actions(batch.action_space, 5, num_steps)
    played = rollouts.roll_with_pauses(batch, actions, probability)
    active = [step.valid for step, _ in played]
  assert np.all(active) == (probability == 0)
  finished = [
    episode
    for index, constructor in enumerate(constructors)
    for episode in _play_alone(constructor(), index, actions, active, first.dtype)
  ]
  return actions, active, sorted(finished, key=lambda x: (x.time, x.index))


def _roll(batch, actions, active):
  for row in zip(actions, active, strict=True):
    batch.step_packed(*row)


def _assert_finished(batch, expected):
  """Compares the finished episodes of a batch bit by bit."""
  finished, final_observ = batch.take_finished(), batch.take_final_observ()
  for episode, observ, reference in zip(finished, final_observ, expected, strict=True):
    assert type(episode.score) is float and type(episode.length) is int
    assert (episode.score, episode.length) == (reference.score, reference.length)
    assert "reward_parts" in episode.info
    for key, value in reference.info.items():
      np.testing.assert_equal(episode.info[key], value)
    assert observ.dtype == reference.final_observ.dtype
    assert observ.shape == reference.final_observ.shape
    assert observ.tobytes() == reference.final_observ.tobytes()


@pytest.mark.parametrize("probability", [0.0, 0.6])
def test_references_cover_simultaneous_ends_and_rounded_scores(probability):
  counts, rounded = set(), set()
  for name in _BATCHES:
    *_, finished = _reference(name, probability)
    times = [episode.time for episode in finished]
    counts |= {times.count(time) for time in range(60)}
    rounded |= {name for episode in finished if episode.score * 4 != round(episode.score * 4)}
  assert counts >= {0, 1, 2}
  assert 5 in counts or probability > 0
  assert {"uneven", "hopper", "cheetah"} <= rounded


@pytest.mark.fast_variants(6)
@_pauses
@_names
def test_finished_episodes_equal_those_of_separate_environments(name, probability, mode):
  actions, active, expected = _reference(name, probability)
  with batch_env.BatchEnv(_BATCHES[name], mode, _SEED) as batch:
    batch.reset()
    _roll(batch, actions, active)
    _assert_finished(batch, expected)


@pytest.mark.fast_variants(4)
@_pauses
@_names
def test_restored_episodes_end_like_uninterrupted_ones(name, probability, mode):
  actions, active, expected = _reference(name, probability)
  for cut in (1, 23, 40):
    with batch_env.BatchEnv(_BATCHES[name], mode, _SEED) as batch:
      batch.reset()
      _roll(batch, actions[:cut], active[:cut])
      arrays = batch.snapshot().arrays()
      _assert_finished(batch, [x for x in expected if x.time < cut])
    with batch_env.BatchEnv(_BATCHES[name], mode, _SEED) as batch:
      batch.restore(episode_data.EpisodeState.from_arrays(arrays))
      again = batch.snapshot().arrays()
      _assert_finished(batch, [])  # Replays report no episodes.
      _roll(batch, actions[cut:], active[cut:])
      _assert_finished(batch, [x for x in expected if x.time >= cut])
    assert again.keys() == arrays.keys()
    for field, array in arrays.items():
      assert again[field].dtype == array.dtype
      assert again[field].tobytes() == array.tobytes()


def test_snapshot_contains_the_scores_of_running_episodes():
  actions, active, _ = _reference("uneven", 0.6)
  with batch_env.BatchEnv(_BATCHES["uneven"], seed=_SEED) as batch:
    batch.reset()
    _roll(batch, actions[:23], active[:23])
    running = batch.snapshot()
  assert running.score.dtype == np.float32 and running.score.shape == (5,)
  assert ((running.score != 0) == (running.length > 0)).all()
  assert 0 in running.length and running.length.any()


@pytest.mark.parametrize("name", ["toy", "frozen_lake", "hopper", "images"])
def test_finished_episodes_can_be_taken_after_any_step(name, mode):
  actions, active, expected = _reference(name, 0.6)
  with batch_env.BatchEnv(_BATCHES[name], mode, _SEED) as batch:
    batch.reset()
    for time in range(len(actions)):
      _roll(batch, actions[time : time + 1], active[time : time + 1])
      if time % 3 == 2:
        _assert_finished(batch, [x for x in expected if time - 3 < x.time <= time])
    assert not batch.take_finished() and not batch.take_final_observ()


def test_last_observations_are_copies_if_the_environment_reuses_its_array(mode):
  with batch_env.BatchEnv([faulty_envs.Reusing] * 2, mode) as batch:
    seeds = batch.reset()[:, 0].tolist()
    for _ in range(7):
      batch.step_packed(np.zeros((2, 1)))
    final_observ = np.array(batch.take_final_observ())
  # Each environment has finished two episodes of three steps.
  assert final_observ[:, 1].tolist() == [3] * 4
  assert final_observ[:2, 0].tolist() == seeds


def test_reset_sets_scores_to_zero(mode):
  with batch_env.BatchEnv([toy.Counter] * 2, mode) as batch:
    for _ in range(2):
      batch.reset()
      for _ in range(2):
        batch.step(np.zeros((2, 1)))
    assert batch.take_finished() == []
    assert batch.snapshot().score.tolist() == [3, 3]
    batch.step(np.zeros((2, 1)))
    finished = batch.take_finished()
  assert [(episode.score, episode.length) for episode in finished] == [(6, 3), (6, 3)]


def test_scores_are_added_up_in_float32(mode):
  # Above 2^24, float32 has even numbers only, so adding 1 changes nothing.
  constructors = [
    functools.partial(faulty_envs.Rewards, (2.0**24, 1, 1, 1)),
    functools.partial(faulty_envs.Rewards, (1, 1, 1, 2.0**24)),
  ]
  with batch_env.BatchEnv(constructors, mode) as batch:
    batch.reset()
    for _ in range(2):
      batch.step(np.zeros((2, 1)))
    running = episode_data.EpisodeState.from_arrays(batch.snapshot().arrays())
    batch.restore(running)
    for _ in range(2):
      batch.step(np.zeros((2, 1)))
    scores = [episode.score for episode in batch.take_finished()]
  assert scores == [2**24, 2**24 + 4]


def test_failed_step_prevents_a_snapshot_until_a_restore():
  constructors = [toy.Counter, lambda: toy.Faulty("raise")]
  with batch_env.BatchEnv(constructors) as batch:
    batch.reset()
    batch.step(np.zeros((2, 1)))
    before = batch.snapshot()
    with pytest.raises(ValueError):
      batch.step(np.zeros((2, 1)))  # Environment 0 has completed the step.
    with pytest.raises(RuntimeError, match="Cannot snapshot"):
      batch.snapshot()
    batch.restore(before)
    assert batch.snapshot().observ.tobytes() == before.observ.tobytes()


@pytest.mark.parametrize("restored", [True, False])
def test_reset_and_restore_drop_pending_final_observations(restored):
  with batch_env.BatchEnv([lambda: toy.Counter(2)]) as batch:
    batch.reset()
    snapshot = batch.snapshot()
    for _ in range(3):
      batch.step(np.zeros((1, 1)))
    assert len(batch.take_final_observ()) == 1
    batch.step(np.zeros((1, 1)))  # Ends the second episode.
    if restored:
      batch.restore(snapshot)
    else:
      batch.reset()
    assert not batch.take_final_observ()
