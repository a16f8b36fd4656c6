import itertools

import numpy as np
import pytest

from agents.reports import improvement, results
from tests.reports import folders


def _counted(x, y):
  """Counts the pairs in which X wins; ties count one half."""
  wins = [1.0 if a > b else 0.5 if a == b else 0.0 for a in x for b in y]
  return sum(wins) / len(wins)


def test_probability_is_the_share_of_won_pairs_averaged_over_tasks():
  rng = np.random.default_rng(0)
  tasks = [  # Small integers contain ties.
    (rng.integers(0, 6, n).astype(float), rng.integers(0, 6, m).astype(float))
    for n, m in ((2, 2), (5, 3), (7, 9))
  ]
  expected = np.mean([_counted(x, y) for x, y in tasks])
  estimate = improvement.estimate(tasks)
  assert estimate.probability == pytest.approx(expected)
  assert estimate.low < expected < estimate.high
  exchanged = improvement.estimate([(y, x) for x, y in tasks])
  assert exchanged.probability == pytest.approx(estimate.reverse.probability)


def test_interval_contains_95_percent_of_all_resamples_of_each_group():
  x, y = np.array([1.0, 4.0, 6.0]), np.array([2.0, 3.0, 5.0])
  resampled = [
    _counted(a, b) for a in itertools.product(x, repeat=3) for b in itertools.product(y, repeat=3)
  ]
  estimate = improvement.estimate([(x, y)])
  # One pair of nine changes the probability by 0.11.
  assert estimate.low == pytest.approx(np.quantile(resampled, 0.025), abs=0.12)
  assert estimate.high == pytest.approx(np.quantile(resampled, 0.975), abs=0.12)


def test_bootstrap_resamples_each_task_separately():
  # On each task, the win of X depends on one run, which resamples may miss.
  task = np.array([0.0, 2.0]), np.array([1.0, 1.0])
  one, many = improvement.estimate([task]), improvement.estimate([task] * 16)
  assert one == (0.5, 0.0, 1.0)
  assert many.probability == 0.5
  # The standard deviation of the mean of 16 tasks is a quarter of one task's.
  assert many.high - many.low == pytest.approx(4 * np.sqrt(0.125 / 16), abs=0.08)


def test_groups_that_always_win_have_probability_one():
  assert improvement.estimate([(np.array([3.0, 4.0]), np.array([1.0, 2.0]))]) == (1, 1, 1)


def test_groups_need_two_runs_on_a_common_task():
  two, one = np.array([1.0, 2.0]), np.array([1.0])
  found = improvement.pairs([{"a": two, "b": two + 1, "c": one}, {"c": two, "d": two}])
  assert set(found) == {("a", "b"), ("b", "a"), ("c", "d"), ("d", "c")}
  assert found["a", "b"].probability == pytest.approx(0.125)  # One tie in four pairs.
  assert found["b", "a"] == found["a", "b"].reverse


def _runs(logdir, name, changes):
  return [
    results.read(folders.make(logdir / f"{seed}-{name}", [float(seed)], {"seed": seed, **changes}))
    for seed in range(2)
  ]


def test_groups_with_equal_settings_and_presets_share_names_over_tasks(tmp_path):
  tasks = [
    results.group(
      [
        run
        for number, (suffix, discount) in enumerate((("", 0.9), ("", 0.8), ("-paper", 0.7)))
        for run in _runs(
          tmp_path / name / str(number),
          f"{name}{suffix}",
          {"env.id": env, "algorithm.discount": discount},
        )
      ]
    )
    for name, env in (("cheetah", "HalfCheetah-v5"), ("default-Hopper-v5", "Hopper-v5"))
  ]
  for groups in tasks:
    shared = improvement.variants(groups)
    assert list(shared) == [", discount=0.8", ", discount=0.9", "-paper"]
    assert [scores.tolist() for scores in shared.values()] == [[0.0, 1.0]] * 3
