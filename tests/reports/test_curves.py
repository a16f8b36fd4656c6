import numpy as np
import pytest

from agents.reports import curves, results
from tests.reports import folders


@pytest.mark.parametrize("seeds", [1, 2, 3, 4, 5, 8, 11])
def test_interquartile_mean_equals_mean_of_middle_half(seeds):
  scores = np.random.default_rng(seeds).normal(size=(seeds, 3))
  cut = seeds // 4
  expected = [sorted(column)[cut : seeds - cut] for column in scores.T]
  estimate = curves.estimate(scores)
  np.testing.assert_allclose(estimate.mean, [np.mean(x) for x in expected])
  assert (estimate.low <= estimate.mean).all()
  assert (estimate.mean <= estimate.high).all()


def test_outlier_has_no_weight():
  scores = np.array([1.0, 2.0, 3.0, 1e9])
  assert curves.estimate(scores).mean == 2.5


def test_interval_bounds_are_quantiles_of_resampled_means():
  scores = np.array([0.0, 10.0, 20.0])  # Trimming keeps all three.
  means = [np.mean([a, b, c]) for a in scores for b in scores for c in scores]
  estimate = curves.estimate(scores)
  assert estimate.low == pytest.approx(np.quantile(means, 0.025), abs=3.4)
  assert estimate.high == pytest.approx(np.quantile(means, 0.975), abs=3.4)
  repeated = curves.estimate(scores)
  assert (repeated.low, repeated.high) == (estimate.low, estimate.high)


@pytest.mark.slow
def test_intervals_contain_the_true_mean_at_about_their_level():
  rng = np.random.default_rng(0)
  estimate = curves.estimate(rng.normal(5.0, 1.0, (20, 300)))
  inside = ((estimate.low < 5.0) & (estimate.high > 5.0)).mean()
  assert 0.85 < inside < 0.98


def test_interval_of_one_seed_has_length_zero():
  estimate = curves.estimate(np.array([[1.0, 2.0]]))
  for values in estimate:
    assert values.tolist() == [1.0, 2.0]


def _runs(tmp_path, *scores, **arguments):
  """Returns one run per list of scores, with different seeds."""
  return [
    results.read(folders.make(tmp_path / f"{seed}-cheetah", values, {"seed": seed}, **arguments))
    for seed, values in enumerate(scores)
  ]


def test_curves_interpolate_over_steps_and_hours(tmp_path):
  runs = _runs(tmp_path, [10.0, 20.0, 30.0], [30.0, 40.0, 50.0])
  steps, score = curves.curve(runs, "eval", "steps")
  assert (steps[0], steps[-1]) == (100, 300)
  np.testing.assert_allclose(score.mean, 20 + (steps - 100) / 10)
  hours, score_by_hours = curves.curve(runs, "eval", "hours")
  assert hours[-1] == pytest.approx(0.03)
  np.testing.assert_allclose(score_by_hours.mean, score.mean)


def test_curve_over_steps_ends_with_the_shortest_run(tmp_path):
  runs = _runs(tmp_path, [10.0, 20.0, 30.0], [10.0, 20.0])
  assert curves.curve(runs, "eval", "steps")[0][-1] == 200
  step, scores = curves.final(runs, "eval")
  assert step == 200 and scores.tolist() == [20.0, 20.0]


def _slower(run, factor):
  rows = [{**row, "seconds": factor * row["seconds"]} for row in run.rows]
  return run._replace(rows=rows)


def test_complete_run_keeps_its_score_in_curve_over_hours(tmp_path):
  fast, slow = _runs(tmp_path, [10.0, 30.0], [20.0, 40.0])
  hours, score = curves.curve([fast, _slower(slow, 2)], "eval", "hours")
  assert (hours[0], hours[-1]) == pytest.approx((0.02, 0.04))
  assert (score.mean[0], score.mean[-1]) == (25.0, 35.0)


def test_incomplete_run_ends_the_curve_over_hours(tmp_path):
  complete, incomplete = _runs(tmp_path, [10.0, 30.0], [20.0, 40.0])
  incomplete = incomplete._replace(config=incomplete.config.override({"steps": 300}))
  hours, _ = curves.curve([_slower(complete, 2), incomplete], "eval", "hours")
  assert hours[-1] == pytest.approx(0.02)


def test_runs_without_scores_are_ignored(tmp_path):
  runs = _runs(tmp_path, [10.0, 20.0], [None, 30.0], [None, None])
  steps, score = curves.curve(runs, "eval", "steps")
  assert set(steps) == {200} and set(score.mean) == {25.0}
  assert curves.final(runs, "eval")[1].tolist() == [20.0, 30.0]


def test_runs_without_scores_have_no_curve(tmp_path):
  runs = _runs(tmp_path, [1.0, 2.0], sampled=[None, None])
  assert curves.curve(runs, "train", "steps") is None
  assert not len(curves.final(runs, "train")[1])


def test_curve_of_one_report_is_a_point(tmp_path):
  steps, score = curves.curve(_runs(tmp_path, [7.0]), "eval", "steps")
  assert set(steps) == {100} and set(score.mean) == {7.0}


def test_fork_begins_at_the_steps_of_its_origin(tmp_path):
  origin = results.read(folders.make(tmp_path / "a" / "1-cheetah", [10.0, 20.0, 30.0]))
  other = results.read(folders.make(tmp_path / "b" / "1-cheetah", [1.0, 2.0, 3.0]))
  changes = {"forked_from": ["a/0-old@50", "a/1-cheetah@150"], "seed": 2}
  fork = results.read(folders.make(tmp_path / "a" / "2-cheetah", [40.0, 50.0, 60.0], changes))
  assert fork.origin == ("a/1-cheetah", 200)
  steps, score = curves.curve([fork], "eval", "steps")
  assert (steps[0], steps[-1], score.mean[0]) == (300, 500, 40.0)
  hours, _ = curves.curve([fork], "eval", "hours")
  assert hours[0] == curves.curve([origin], "eval", "hours")[0][0]
  # The score of the origin between its first and its second evaluation.
  branch = curves.branch(fork, [other, origin, fork])
  np.testing.assert_allclose(branch, [[200, 300], [20.0, 40.0]])
  assert curves.branch(origin, [origin, fork]) is None and curves.branch(fork, [other]) is None


def test_labels_of_forks_name_only_the_last_origin(tmp_path):
  lineages = [], ["a/1-x@50", "a/2-x@60"], ["a/1-x@50", "a/3-x@60"]
  runs = [
    results.read(folders.make(tmp_path / f"{number}-cheetah", [1.0], {"forked_from": lineage}))
    for number, lineage in enumerate(lineages)
  ]
  labels = [group.label for group in results.group(runs)]
  assert labels == ["cheetah, from a/2-x@60", "cheetah, from a/3-x@60", "cheetah, no fork"]
