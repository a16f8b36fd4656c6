"""What a batch offers beside stepping, for those who bring a learner."""

import functools
import os
import signal

import gymnasium
import numpy as np
import pytest

from agents.environments import batch_env
from agents.environments.data import episodes
from agents.environments.data import failure_budget
from agents.environments.workers import pool as pool_lib
from tests import toy
from tests.environments import faulty_envs
from tests.environments import rollouts


class Saying(toy.Counter):
  """Says in its infos which episode it is in, and more than numbers."""

  def reset(self, *, seed=None, options=None):
    observ, _ = super().reset(seed=seed)
    return observ, {"began": seed, "text": "new"}

  def step(self, action):
    *rest, info = super().step(action)
    return *rest, {**info, "seed": self._seed, "array": np.full(2, self._step)}


def _kill(workers, number=0):
  os.kill(workers.pids[number], signal.SIGKILL)


def _zeros(batch):
  return np.zeros((len(batch), 1), np.float32)


# Which environments.


def test_constructors_differ_by_index(mode):
  constructors = [functools.partial(gymnasium.make, "Pendulum-v1", g=g)
                  for g in (9.8, 1.6, 3.7)]
  with batch_env.BatchEnv(constructors, mode) as batch:
    assert batch.get("g") == [9.8, 1.6, 3.7]


def test_methods_and_attributes_of_chosen_environments(mode):
  for groups in (1, 2):
    with batch_env.BatchEnv(
        rollouts.BATCHES["toy"][:4], mode, groups=groups) as batch:
      assert batch.get("length", [2, 0]) == [3, 1]
      assert batch.get("length", np.array([1])) == [2]
      assert batch.get("length", []) == []
      batch.set("length", [7, 8], indices=[3, 1])
      assert batch.get("length") == [1, 8, 3, 7]
      assert batch.call("add", 1, second=2, indices=[1, 3]) == [3, 3]
      batch.set("length", [1, 2, 3, 4])
      assert batch.get("length") == [1, 2, 3, 4]


def test_a_method_is_called_where_it_was_chosen_and_nowhere_else(mode):
  with batch_env.BatchEnv([faulty_envs.Inside] * 3, mode) as batch:
    batch.reset()
    batch.call("step", np.zeros(1), indices=[1])
    assert batch.step(_zeros(batch)).observ[:, 1].tolist() == [1, 2, 1]


def test_names_of_arguments_do_not_collide(mode):
  class Naming(toy.Counter):
    def tell(self, name, self_=0):
      return name, self_
  with batch_env.BatchEnv([Naming] * 2, mode) as batch:
    assert batch.call("tell", name=3, self_=4) == [(3, 4)] * 2


@pytest.mark.parametrize("indices", [[2], [-1], [0, 0]])
def test_wrong_indices(indices):
  with batch_env.BatchEnv([toy.Counter] * 2) as batch:
    batch.reset()
    for use in (lambda: batch.get("length", indices),
                lambda: batch.call("add", 1, indices=indices),
                lambda: batch.set("length", [1] * len(indices), indices),
                lambda: batch.reset(indices=indices)):
      with pytest.raises(ValueError, match="different ones of 0 to 1"):
        use()
    assert batch.step(_zeros(batch)).observ[:, 1].tolist() == [1, 1]


def test_wrong_number_of_values():
  with batch_env.BatchEnv([toy.Counter] * 2) as batch:
    with pytest.raises(ValueError, match="must hold 1"):
      batch.set("length", [1, 2], [0])


# Resets of some.


def test_some_begin_anew_and_others_go_on(mode):
  with batch_env.BatchEnv(
      [functools.partial(toy.Counter, 4)] * 3, mode, seed=5) as batch:
    number = [[episodes.episode_seed(5, index, episode) % 1000
               for episode in range(3)] for index in range(3)]
    batch.reset()
    batch.step(_zeros(batch))
    observ = batch.reset(indices=[2, 0], seeds=[77, 78])
    assert observ.tolist() == [[78, 0], [number[1][0], 1], [77, 0]]
    batch.step(_zeros(batch))
    # Without seeds, what follows is derived as ever; broken off is not ended.
    assert batch.reset(indices=[0]).tolist() == [
        [number[0][2], 0], [number[1][0], 2], [77, 1]]
    assert not batch.finished
    for _ in range(4):
      step = batch.step(_zeros(batch))
  assert [(episode.seed % 1000, episode.length, episode.score)
          for episode in batch.finished] == [
              (number[1][0], 4, 10), (77, 4, 10), (number[0][2], 4, 10)]
  assert step.terminated.tolist() == [True, False, False]
  assert step.observ[0].tolist() == [
      episodes.episode_seed(5, 0, 3) % 1000, 0]


def _play(batch, kill=lambda: None):
  """Play with resets of some environments now and then; return all of it."""
  results = [batch.reset()]
  actions = rollouts.draw_actions(batch.action_space, 4, 25)
  for number, action in enumerate(actions):
    if number % 9 == 4:
      kill()
    if number % 9 in (4, 5):
      results.append(batch.reset(
          [number, 3] if number % 2 else None, [number % 3, 3]))
    step = batch.step(action)
    results += [*step, list(batch.infos), list(batch.reset_infos)]
  return results, batch.finished


@pytest.mark.slow
@pytest.mark.parametrize("name, groups", [("hopper", 2), ("saying", 1)])
def test_killed_workers_change_nothing(name, groups):
  constructors = {"saying": [Saying] * 4}.get(name) or (
      rollouts.BATCHES[name][:4])
  with batch_env.BatchEnv(
      constructors, seed=2, groups=groups, infos=True) as batch:
    expected = _play(batch)
  kills = iter(range(100))
  incidents = failure_budget.FailureBudget(100)
  with pool_lib.WorkerPool(2, incidents=incidents) as workers, \
      batch_env.BatchEnv(
          constructors, workers, 2, groups, infos=True) as batch:
    np.testing.assert_equal(
        _play(batch, lambda: _kill(workers, next(kills) % 2)), expected)
  assert len(incidents.take()) == 3


def test_snapshots_know_of_resets_of_some(mode):
  constructors = rollouts.BATCHES["hopper"][:4]
  with batch_env.BatchEnv(constructors, mode) as batch:
    _play(batch)
    batch.reset(indices=[1], seeds=[3])
    actions = rollouts.draw_actions(batch.action_space, 4, 30)
    rollouts.roll(batch, actions[:3])
    batch.reset(indices=[2])
    running = episodes.EpisodeState.from_arrays(batch.snapshot().arrays())
    expected = rollouts.roll(batch, actions)
  with batch_env.BatchEnv(constructors) as other:
    other.restore(running)
    rollouts.assert_same_bits(rollouts.roll(other, actions), expected)


def test_some_can_wait_after_their_reset(mode):
  with batch_env.BatchEnv([toy.Counter] * 2, mode) as batch:
    batch.reset()
    batch.step(_zeros(batch))
    batch.reset(indices=[1])
    step = batch.step(_zeros(batch), np.array([True, False]))
    assert step.observ[:, 1].tolist() == [2, 0]


def test_some_can_only_be_reset_where_all_have_begun(mode):
  with batch_env.BatchEnv([toy.Counter] * 2, mode, groups=2) as batch:
    with pytest.raises(RuntimeError, match="all environments have begun"):
      batch.reset(indices=[0])
    batch.reset()
    batch.exchange(_zeros(batch)[:1])
    with pytest.raises(RuntimeError, match="ahead of others"):
      batch.reset(indices=[0])
    batch.reset()
    with pytest.raises(ValueError, match="must hold 1"):
      batch.reset([1, 2], [0])


def test_no_snapshot_of_half_a_reset(mode):
  constructors = [toy.Counter, functools.partial(toy.Faulty, "")]
  with batch_env.BatchEnv(constructors, mode) as batch:
    batch.reset()
    batch.set("_fault", ["reset"], [1])
    with pytest.raises(ValueError, match="faulty") as caught:
      batch.reset(indices=[0, 1])
    assert "Environment 1" in str(caught.value.__cause__)
    with pytest.raises(RuntimeError, match="half a step"):
      batch.snapshot()


# Infos.


def test_infos_of_every_step_and_reset(mode):
  constructors = [functools.partial(Saying, length) for length in (2, 9)]
  seeds = [episodes.episode_seed(0, 0, episode) for episode in range(2)]
  with batch_env.BatchEnv(constructors, mode, infos=True) as batch:
    batch.reset([5, 6])
    began = [{"began": 5, "text": "new"}, {"began": 6, "text": "new"}]
    assert (batch.infos, batch.reset_infos) == ([{}, {}], began)
    batch.step(_zeros(batch))
    first = batch.infos
    assert [info["step"] for info in first] == [1, 1]
    batch.step(_zeros(batch))
    # The first one ended its episode: its last info, and that of the next.
    assert [info["step"] for info in batch.infos] == [2, 2]
    assert batch.infos[0]["array"].tolist() == [2, 2]
    assert [info["began"] for info in batch.reset_infos] == [seeds[1], 6]
    batch.step(_zeros(batch), np.array([True, True]))
    assert [info["seed"] for info in batch.infos] == [seeds[1], 6]
    assert [info["step"] for info in first] == [1, 1]
    batch.reset(indices=[1], seeds=[7])
    assert [info.get("step") for info in batch.infos] == [1, None]
    assert [info["began"] for info in batch.reset_infos] == [seeds[1], 7]
    batch.step(_zeros(batch), np.array([True, False]))
    assert [info.get("step") for info in batch.infos] == [2, None]
    batch.restore(batch.snapshot())  # Of replays, nothing is told.
    assert batch.infos == batch.reset_infos == [{}, {}]


def test_no_infos_unless_asked_for(mode):
  with batch_env.BatchEnv([Saying] * 2, mode) as batch:
    batch.reset()
    batch.step(_zeros(batch))
    assert batch.infos == batch.reset_infos == [{}, {}]


def test_infos_of_episodes_that_break_off(mode):
  constructors = [functools.partial(faulty_envs.Rewards, (1.0, np.nan)), Saying]
  incidents = failure_budget.FailureBudget(9)
  workers = mode and pool_lib.WorkerPool(2, incidents=incidents)
  with batch_env.BatchEnv(
      constructors, workers, incidents=incidents, infos=True) as batch:
    batch.reset()
    batch.step(_zeros(batch))
    step = batch.step(_zeros(batch))
  if workers:
    workers.close()
  assert step.valid.tolist() == [False, True]
  assert [info["step"] for info in batch.infos] == [2, 2]


def test_infos_that_cannot_be_pickled_arrive_as_text(pool):
  class Locked(Saying):
    def step(self, action):
      *rest, info = super().step(action)
      return *rest, {**info, "made": (number for number in ())}
  with batch_env.BatchEnv([Locked] * 2, pool, infos=True) as batch:
    batch.reset()
    for step in (1, 2, 3):
      batch.step(_zeros(batch))
      assert [info["step"] for info in batch.infos] == [step] * 2
      assert all("generator" in info["made"] for info in batch.infos)


# Lazy start.


def test_environments_can_be_built_when_they_are_needed(mode, tmp_path):
  path = tmp_path / "diary"
  constructors = [
      functools.partial(faulty_envs.Diary, path, name) for name in "abc"]
  batch = batch_env.BatchEnv(constructors, mode, lazy=True)
  assert rollouts.not_closed(path) == {}
  assert batch.observation_space == toy.Counter().observation_space
  batch.reset()
  assert rollouts.not_closed(path) == {"a": 1, "b": 1, "c": 1}
  assert not batch.is_closed
  batch.close()
  assert batch.is_closed
  assert rollouts.not_closed(path) == {}


def test_what_was_never_needed_is_never_built(mode, tmp_path):
  path = tmp_path / "diary"
  batch = batch_env.BatchEnv(
      [functools.partial(faulty_envs.Diary, path, "a")] * 2, mode, lazy=True)
  batch.close()
  assert rollouts.not_closed(path) == {}
  with pytest.raises(RuntimeError, match="closed"):
    batch.reset()


def test_lazy_batches_play_the_same(mode):
  expected = rollouts.play(rollouts.BATCHES["toy"], None)[1]
  with batch_env.BatchEnv(rollouts.BATCHES["toy"], mode, lazy=True) as batch:
    batch.reset()
    rollouts.assert_same_bits(expected, rollouts.roll(
        batch, rollouts.draw_actions(batch.action_space, 5, 60)))


# Rollouts.


def test_rollout_holds_what_stepping_returns(mode):
  constructors = rollouts.BATCHES["toy"]
  with batch_env.BatchEnv(constructors, mode) as batch:
    policy = lambda observ: observ[:, 1:] / 4  # noqa: E731
    first, second = batch.rollout(policy, 3), batch.rollout(policy, 4)
  with batch_env.BatchEnv(constructors, mode) as batch:
    observ = batch.reset()
    for time in range(7):
      part, row = (first, time) if time < 3 else (second, time - 3)
      action = policy(observ)
      step = batch.step(action)
      expected = batch_env.Rollout(observ, action, *(
          getattr(step, name) for name in batch_env.Rollout._fields[2:]))
      for name, array in expected._asdict().items():
        np.testing.assert_array_equal(getattr(part, name)[row], array)
        assert getattr(part, name).dtype == array.dtype, name
      observ = step.observ
  assert first.observ.shape == (3, 5, 2) and second.action.shape == (4, 5, 1)


def test_rollout_of_no_steps():
  with batch_env.BatchEnv([toy.Counter]) as batch:
    with pytest.raises(ValueError, match="`steps`"):
      batch.rollout(lambda observ: observ, 0)


def test_infos_of_an_environment_that_uses_the_same_one_again(mode):
  with batch_env.BatchEnv([faulty_envs.SameInfo] * 2, mode, infos=True) as batch:
    batch.reset()
    for step in (1, 2, 3, 1):
      batch.step(_zeros(batch))
      assert [info["step"] for info in batch.infos] == [step] * 2
      assert [info["step"] for info in batch.reset_infos] == [0, 0]
    assert [episode.info["7"] for episode in batch.finished] == [1.0] * 2
