import numpy as np
import pytest

from agents.reports import curves
from agents.reports import results
from tests.reports import folders


@pytest.mark.parametrize("seeds", [1, 2, 3, 4, 5, 8, 11])
def test_the_mean_is_that_of_the_middle_half(seeds):
  scores = np.random.default_rng(seeds).normal(size=(seeds, 3))
  cut = seeds // 4
  expected = [sorted(column)[cut:seeds - cut] for column in scores.T]
  found = curves.estimate(scores)
  np.testing.assert_allclose(found.mean, [np.mean(x) for x in expected])
  assert (found.low <= found.mean).all() and (found.mean <= found.high).all()


def test_an_outlier_has_no_weight():
  scores = np.array([1.0, 2.0, 3.0, 1e9])
  assert curves.estimate(scores).mean == 2.5


def test_intervals_are_those_of_means_of_resampled_seeds():
  scores = np.array([0.0, 10.0, 20.0])  # Nothing is cut off of three.
  means = [np.mean([a, b, c]) for a in scores for b in scores for c in scores]
  found = curves.estimate(scores)
  assert found.low == pytest.approx(np.quantile(means, 0.025), abs=3.4)
  assert found.high == pytest.approx(np.quantile(means, 0.975), abs=3.4)
  again = curves.estimate(scores)
  assert (again.low, again.high) == (found.low, found.high)


def test_intervals_contain_the_truth_about_as_often_as_they_say():
  rng = np.random.default_rng(0)
  found = curves.estimate(rng.normal(5.0, 1.0, (20, 300)))
  inside = ((found.low < 5.0) & (found.high > 5.0)).mean()
  assert 0.85 < inside < 0.98


def test_one_seed_has_no_interval():
  found = curves.estimate(np.array([[1.0, 2.0]]))
  assert found.low.tolist() == found.mean.tolist() == found.high.tolist() == [
      1.0, 2.0]


def _runs(tmp_path, *scores, **more):
  return [results.read(folders.make(
      tmp_path / f"{number}-cheetah", values, {"seed": number}, **more))
      for number, values in enumerate(scores)]


def test_curves_go_over_steps_or_hours_and_between_reports(tmp_path):
  runs = _runs(tmp_path, [10.0, 20.0, 30.0], [30.0, 40.0, 50.0])
  curve = curves.curve(runs, "eval", "steps")
  assert (curve.x[0], curve.x[-1]) == (100, 300)
  np.testing.assert_allclose(curve.score.mean, 20 + (curve.x - 100) / 10)
  by_hours = curves.curve(runs, "eval", "hours")
  assert by_hours.x[-1] == pytest.approx(0.03)
  np.testing.assert_allclose(by_hours.score.mean, curve.score.mean)


def test_curves_end_where_the_first_run_does(tmp_path):
  runs = _runs(tmp_path, [10.0, 20.0, 30.0], [10.0, 20.0])
  assert curves.curve(runs, "eval", "steps").x[-1] == 200
  step, scores = curves.final(runs, "eval")
  assert step == 200 and scores.tolist() == [20.0, 20.0]


def _slower(run, times):
  rows = [{**row, "seconds": times * row["seconds"]} for row in run.rows]
  return run._replace(rows=rows)


def test_what_is_finished_sooner_keeps_its_score(tmp_path):
  fast, slow = _runs(tmp_path, [10.0, 30.0], [20.0, 40.0])
  curve = curves.curve([fast, _slower(slow, 2)], "eval", "hours")
  assert (curve.x[0], curve.x[-1]) == pytest.approx((0.02, 0.04))
  assert (curve.score.mean[0], curve.score.mean[-1]) == (25.0, 35.0)


def test_what_goes_on_is_seen_as_far_as_it_has_come(tmp_path):
  done, going = _runs(tmp_path, [10.0, 30.0], [20.0, 40.0])
  going = going._replace(config=going.config.override({"steps": 300}))
  curve = curves.curve([_slower(done, 2), going], "eval", "hours")
  assert curve.x[-1] == pytest.approx(0.02)


def test_runs_without_scores_do_not_take_away_those_of_others(tmp_path):
  runs = _runs(tmp_path, [10.0, 20.0], [None, 30.0], [None, None])
  curve = curves.curve(runs, "eval", "steps")
  assert set(curve.x) == {200} and set(curve.score.mean) == {25.0}
  assert curves.final(runs, "eval")[1].tolist() == [20.0, 30.0]


def test_without_scores_there_is_no_curve(tmp_path):
  runs = _runs(tmp_path, [1.0, 2.0], sampled=[None, None])
  assert curves.curve(runs, "train", "steps") is None
  assert not len(curves.final(runs, "train")[1])


def test_a_single_report_is_a_point(tmp_path):
  curve = curves.curve(_runs(tmp_path, [7.0]), "eval", "steps")
  assert set(curve.x) == {100} and set(curve.score.mean) == {7.0}
