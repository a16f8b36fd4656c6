import csv
import datetime
import pathlib

from agents.reports import published_scores


def test_each_score_names_document_place_version_and_date():
  path = pathlib.Path(published_scores.__file__).with_suffix(".csv")
  with open(path, newline="") as file:
    rows = list(csv.DictReader(file))
  assert len(rows) > 20
  for row in rows:
    assert row["document"].startswith("https://") and row["place"] and row["version"]
    assert datetime.date.fromisoformat(row["date"]).year >= 2017


def test_scores_of_larger_budgets_are_excluded():
  million = published_scores.up_to("HalfCheetah-v5", 1_001_472)
  assert [(published.steps, published.score) for published in million] == [(1_000_000, 5819)]
  assert len(published_scores.up_to("HalfCheetah-v4", 3_000_000)) == 2
  assert not published_scores.up_to("HalfCheetah-v5", 300_000)


def test_other_tasks_have_no_published_scores():
  for task in ("Mine-v0", "Ant-variant-v0", "Ant-v5 max_length=10", "Ant"):
    assert not published_scores.up_to(task, 10**9)


def test_best_score_is_from_the_largest_budget():
  best = published_scores.best("Humanoid-v5", 3_000_000)
  assert best == published_scores.PublishedScore(3_000_000, 6862, "rl_games, v4, 1 run")
  assert published_scores.best("Humanoid-v5", 1_000_000).score == 3149
  assert published_scores.best("Mine-v0", 1_000_000) is None


def test_share_of_the_scores_that_reach_the_best_published_score():
  best = published_scores.PublishedScore(1_000_000, 1000, "some source")
  assert best.reached_by([1000, 999, 2000]) == "67 %"
