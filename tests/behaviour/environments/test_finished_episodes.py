"""What is left of episodes that ended: score, length, last observation."""

import functools
from typing import Any
from typing import NamedTuple

import gymnasium
import numpy as np
import pytest

from agents.environments import batch_env
from agents.environments.data import episodes
from agents.environments.making import action_scaling
from tests import toy
from tests.environments import faulty_envs
from tests.environments import rollouts

_SEED = 2
_pauses = pytest.mark.parametrize("chance", [0.0, 0.6], ids=["busy", "pauses"])


class _Images(toy.Counter):
  """Observes the step in some corner of an image of bytes."""

  def __init__(self, length: int = 3):
    super().__init__(length)
    self.observation_space = gymnasium.spaces.Box(0, 255, (4, 3, 1), np.uint8)

  def _observ(self):
    image = np.full((4, 3, 1), self._seed % 251, np.uint8)
    image[self._step % 4, self._step % 3] = 255 - self._step
    return image


# Beside vectors and choices, pictures and rewards that float32 rounds.
_BATCHES = {
    **rollouts.BATCHES,
    "images": [functools.partial(_Images, length) for length in range(1, 6)],
    "together": [functools.partial(toy.Counter, 3)] * 5}
_names = pytest.mark.parametrize("name", [
    "toy", "hopper", "wrapped", "images", "together",
    *(pytest.param(name, marks=pytest.mark.slow) for name in (
        "cartpole", "frozen_lake", "cheetah", "uneven"))])


class _Ended(NamedTuple):
  """An episode, as an environment stepped alone tells it."""

  time: int
  index: int
  score: float
  length: int
  info: dict[str, Any]
  final_observ: np.ndarray


def _alone(env, index, actions, active, dtype):
  """Play one environment in plain Python; return its episodes that ended."""
  convert = action_scaling.action_converter(env.action_space)
  ended, episode, score, length = [], 0, np.float32(0), 0
  env.reset(seed=episodes.episode_seed(_SEED, index, episode))
  for time, (action, steps) in enumerate(zip(actions, active)):
    if not steps[index]:
      continue
    observ, reward, terminated, truncated, info = env.step(
        convert(action)[index])
    score, length = np.float32(score + np.float32(reward)), length + 1
    if terminated or truncated:
      ended.append(_Ended(
          time, index, float(score), length, info, np.array(observ, dtype)))
      episode, score, length = episode + 1, np.float32(0), 0
      env.reset(seed=episodes.episode_seed(_SEED, index, episode))
  env.close()
  return ended


@functools.cache
def _naive(name, chance, steps=60):
  """Return actions, who is active, and the episodes by order of time."""
  constructors = _BATCHES[name]
  with batch_env.BatchEnv(constructors, seed=_SEED) as batch:
    first = batch.reset()
    actions = rollouts.draw_actions(batch.action_space, 5, steps)
    played = rollouts.roll_with_pauses(batch, actions, chance)
    active = [step.valid for step, _ in played]
  assert np.all(active) == (chance == 0)
  ended = [episode for index, constructor in enumerate(constructors)
           for episode in _alone(
               constructor(), index, actions, active, first.dtype)]
  return actions, active, sorted(ended, key=lambda x: (x.time, x.index))


def _roll(batch, actions, active):
  for row in zip(actions, active, strict=True):
    batch.exchange(*row)


def _assert_finished(batch, expected):
  """Compare bit for bit what a batch says of its episodes."""
  assert len(batch.finished) == len(batch.final_observ) == len(expected)
  for finished, observ, ended in zip(
      batch.finished, batch.final_observ, expected):
    assert type(finished.score) is float and type(finished.length) is int
    assert (finished.score, finished.length) == (ended.score, ended.length)
    assert "reward_parts" in finished.info
    for key, value in ended.info.items():
      np.testing.assert_equal(finished.info[key], value)
    assert observ.dtype == ended.final_observ.dtype
    assert observ.shape == ended.final_observ.shape
    assert observ.tobytes() == ended.final_observ.tobytes()


@pytest.mark.parametrize("chance", [0.0, 0.6])
def test_the_data_is_as_it_should_be(chance):
  amounts, rounded = set(), set()
  for name in _BATCHES:
    *_, ended = _naive(name, chance)
    times = [episode.time for episode in ended]
    amounts |= {times.count(time) for time in range(60)}
    rounded |= {name for episode in ended
                if episode.score * 4 != round(episode.score * 4)}
  # None, one, several and all end in one step; some scores are rounded.
  assert amounts >= {0, 1, 2}
  assert 5 in amounts or chance
  assert {"uneven", "hopper", "cheetah"} <= rounded


@_pauses
@_names
def test_equals_playing_each_environment_alone(name, chance, mode):
  actions, active, ended = _naive(name, chance)
  with batch_env.BatchEnv(_BATCHES[name], mode, _SEED) as batch:
    batch.reset()
    _roll(batch, actions, active)
    _assert_finished(batch, ended)


@_pauses
@_names
def test_restored_episodes_end_as_if_nothing_had_happened(name, chance, mode):
  actions, active, ended = _naive(name, chance)
  for cut in (1, 23, 40):
    with batch_env.BatchEnv(_BATCHES[name], mode, _SEED) as batch:
      batch.reset()
      _roll(batch, actions[:cut], active[:cut])
      arrays = batch.snapshot().arrays()
      _assert_finished(batch, [x for x in ended if x.time < cut])
    with batch_env.BatchEnv(_BATCHES[name], mode, _SEED) as batch:
      batch.restore(episodes.EpisodeState.from_arrays(arrays))
      again = batch.snapshot().arrays()
      _assert_finished(batch, [])  # A replay ends none.
      _roll(batch, actions[cut:], active[cut:])
      _assert_finished(batch, [x for x in ended if x.time >= cut])
    assert again.keys() == arrays.keys()
    for field, array in arrays.items():
      assert again[field].dtype == array.dtype
      assert again[field].tobytes() == array.tobytes()


def test_a_snapshot_in_the_middle_has_a_score_to_continue():
  actions, active, _ = _naive("uneven", 0.6)
  with batch_env.BatchEnv(_BATCHES["uneven"], seed=_SEED) as batch:
    batch.reset()
    _roll(batch, actions[:23], active[:23])
    running = batch.snapshot()
  assert running.score.dtype == np.float32 and running.score.shape == (5,)
  assert ((running.score != 0) == (running.length > 0)).all()
  assert 0 in running.length and running.length.any()


@pytest.mark.parametrize("name", ["toy", "frozen_lake", "hopper", "images"])
def test_they_may_be_emptied_at_any_time(name, mode):
  actions, active, ended = _naive(name, 0.6)
  with batch_env.BatchEnv(_BATCHES[name], mode, _SEED) as batch:
    batch.reset()
    for time in range(len(actions)):
      _roll(batch, actions[time:time + 1], active[time:time + 1])
      if time % 3 == 2:
        _assert_finished(
            batch, [x for x in ended if time - 3 < x.time <= time])
        batch.finished.clear()
        batch.final_observ.clear()
    assert len(batch.finished) == 0


def test_last_observations_survive_a_reused_array(mode):
  with batch_env.BatchEnv([faulty_envs.Reusing] * 2, mode) as batch:
    seeds = batch.reset()[:, 0].tolist()
    for _ in range(7):
      batch.exchange(np.zeros((2, 1)))
    final_observ = np.array(batch.final_observ)
  # Two episodes of three steps in each.
  assert final_observ[:, 1].tolist() == [3] * 4
  assert final_observ[:2, 0].tolist() == seeds


def test_reset_begins_scores_again(mode):
  with batch_env.BatchEnv([toy.Counter] * 2, mode) as batch:
    for _ in range(2):
      batch.reset()
      for _ in range(2):
        batch.step(np.zeros((2, 1)))
    assert batch.finished == []
    assert batch.snapshot().score.tolist() == [3, 3]
    batch.step(np.zeros((2, 1)))
  assert [(episode.score, episode.length) for episode in batch.finished] == [
      (6, 3), (6, 3)]


def test_scores_are_added_up_in_float32(mode):
  # Beyond 2^24 float32 knows even numbers only: nothing is left of the ones.
  constructors = [functools.partial(faulty_envs.Rewards, (2.0 ** 24, 1, 1, 1)),
                  functools.partial(faulty_envs.Rewards, (1, 1, 1, 2.0 ** 24))]
  with batch_env.BatchEnv(constructors, mode) as batch:
    batch.reset()
    for _ in range(2):
      batch.step(np.zeros((2, 1)))
    running = episodes.EpisodeState.from_arrays(batch.snapshot().arrays())
    batch.restore(running)
    for _ in range(2):
      batch.step(np.zeros((2, 1)))
  scores = [episode.score for episode in batch.finished]
  assert scores == [2 ** 24, 2 ** 24 + 4]


def test_there_is_no_snapshot_of_half_a_step():
  constructors = [toy.Counter, lambda: toy.Faulty("raise")]
  with batch_env.BatchEnv(constructors) as batch:
    batch.reset()
    batch.step(np.zeros((2, 1)))
    before = batch.snapshot()
    with pytest.raises(ValueError):
      batch.step(np.zeros((2, 1)))  # The first one has gone on.
    with pytest.raises(RuntimeError, match="half a step"):
      batch.snapshot()
    batch.restore(before)
    assert batch.snapshot().observ.tobytes() == before.observ.tobytes()


@pytest.mark.parametrize("restored", [True, False])
def test_nothing_is_left_of_steps_that_are_given_up(restored):
  with batch_env.BatchEnv([lambda: toy.Counter(2)]) as batch:
    batch.reset()
    snapshot = batch.snapshot()
    for _ in range(3):
      batch.step(np.zeros((1, 1)))
    assert len(batch.final_observ) == 1
    if restored:
      batch.restore(snapshot)
    else:
      batch.reset()
    assert not batch.final_observ
