"""ReplaySource returns running episodes and checks their replays."""

import numpy as np
import pytest

from agents.environments.blocks import base
from agents.environments.data import action_log, episode_data, failure_budget, replay_source

_RUN_SEED, _FIRST, _SIZE = 5, 10, 3
_SEEDS = [episode_data.episode_seed(_RUN_SEED, _FIRST + row, 0) for row in range(_SIZE)]


def _source(num_steps=2):
  """Returns a source and its arrays.

  Args:
    num_steps: Number of steps after the first reset, with the actions
      10 * row + time; None for the state before the first reset.
  """
  log = action_log.ActionLog(_RUN_SEED, _SIZE, _FIRST)
  arrays = {
    "action": np.zeros((_SIZE, 1), np.float32),
    "active": np.ones(_SIZE, bool),
    "observ": np.zeros((_SIZE, 2), np.float32),
  }
  if num_steps is not None:
    log.begin()
    for time in range(num_steps):
      arrays["action"][:, 0] = 10 * np.arange(_SIZE) + time
      log.record(
        arrays["action"], arrays["active"], np.zeros(_SIZE, np.float32), np.zeros(_SIZE, bool)
      )
  return replay_source.ReplaySource("name", log, arrays), arrays


def test_no_episodes_are_running_before_the_first_reset():
  source, _ = _source(None)
  assert not source.log.begun
  assert source.failed_episodes(slice(0, _SIZE), stepping=True) == []


def test_running_returns_number_seed_and_actions():
  source, _ = _source(2)
  numbers, seeds, actions = source.running()
  assert numbers == [0] * _SIZE and seeds == _SEEDS
  assert [rows[:, 0].tolist() for rows in actions] == [[0, 1], [10, 11], [20, 21]]


def test_empty_episodes_have_the_shape_and_type_of_actions():
  source, _ = _source(0)
  for actions in source.running()[2]:
    assert actions.shape == (0, 1) and actions.dtype == np.float32


def test_failed_episodes_include_the_actions_of_an_unfinished_step():
  source, arrays = _source(1)
  arrays["action"][:, 0] = [7, 8, 9]
  arrays["active"][:] = [True, False, True]
  for stepping, expected in ((False, [[10], [20]]), (True, [[10], [20, 9]])):
    failed = source.failed_episodes(slice(1, 3), stepping)
    assert [(episode.environment, episode.seed) for episode in failed] == [
      (11, _SEEDS[1]),
      (12, _SEEDS[2]),
    ]
    assert [episode.action[:, 0].tolist() for episode in failed] == expected


def test_replays_with_other_observations_or_rewards_differ():
  source, arrays = _source(2)
  rows, scores = slice(0, _SIZE), [0.0] * _SIZE
  assert not source.differing(rows, scores)  # The trainer has nothing to compare.
  source.received = arrays["observ"].tobytes()
  assert not source.differing(rows, scores)
  arrays["observ"][1, 0] = np.nextafter(np.float32(0), np.float32(1))
  assert not source.differing(slice(2, 3), scores[:1])
  scores[2] = float(np.nextafter(np.float32(0), np.float32(1)))
  differing = source.differing(rows, scores)
  assert differing.keys() == {1, 2}
  assert differing[1].startswith("Environment 11 ('name') is not deterministic")
  assert f"seed {_SEEDS[1]} with the same 2 actions led to another observation" in differing[1]
  assert "another sum of rewards" in differing[2]
  # Custom backends may return no results.
  assert source.differing(rows, None).keys() == {1}


def test_failure_names_the_environments_that_begin_new_episodes():
  source, _ = _source(2)
  failure = source.failure({2: "second", 0: "first"})
  assert failure.summary.startswith(
    "New episodes begin in 2 of 3 environments ('name', index 10, 12), because"
  )
  assert failure.text.split("\n\n")[1:] == ["first", "second"]
  assert [(episode.environment, len(episode.action)) for episode in failure.episodes] == [
    (10, 2),
    (12, 2),
  ]


def _record_fatal(source, failure):
  """Records an error with this cause; returns the fatal failure, if any."""
  budget = failure_budget.FailureBudget()
  error = ValueError("broken")
  error.__cause__ = failure
  source.record_fatal(error, budget, stepping=True)
  return budget.fatal


def test_fatal_failure_contains_the_episode_of_its_environment():
  source, arrays = _source(1)
  arrays["action"][:, 0] = [7, 8, 9]
  text, (failed,) = _record_fatal(source, base.EnvironmentFailure("text", 12, _SEEDS[2]))
  assert (text, failed.environment, failed.seed) == ("text", 12, _SEEDS[2])
  assert failed.action[:, 0].tolist() == [20, 9]


def test_fatal_failure_of_a_later_episode_has_no_actions():
  source, _ = _source(1)
  _, (failed,) = _record_fatal(source, base.EnvironmentFailure("text", 12, 3))
  assert (failed.environment, failed.seed) == (12, 3)
  assert failed.action.shape == (0, 1)


@pytest.mark.parametrize("index, seed", [(None, None), (12, None), (9, 3)])
def test_fatal_failure_of_an_unknown_environment_has_no_episode(index, seed):
  source, _ = _source(1)
  assert _record_fatal(source, base.EnvironmentFailure("text", index, seed)) == ("text", ())


def test_other_errors_are_not_recorded():
  source, _ = _source(1)
  assert _record_fatal(source, None) is None
