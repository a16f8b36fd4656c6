"""The page explains what the episodes show."""

from agents.stress import experiment, page, report
from tests.stress import test_experiment


def _report(lengths, no_films=""):
  """Returns a report on pushes with the given lengths at the only level."""
  control = test_experiment._condition([10] * len(lengths))
  pushed = test_experiment._condition(lengths, 0.5)
  fall = experiment.first_fall([pushed], control)
  return report.Report(
    task="Hopper-v5",
    run="<run>",
    step=2000,
    num_episodes=len(lengths),
    limit=10,
    control=experiment.summarize(control, control),
    levels={"push": [experiment.summarize(pushed, control)] * 5},
    falls={"push": fall} if fall else {},
    films={},
    no_films=no_films,
  )


def test_page_without_falls_states_that_survival_may_be_certain():
  text = page.page(_report([10, 10]))
  assert "their survival is 100&nbsp;% by definition" in text
  assert "No episode ends early that reaches the time limit without this disturbance." in text
  assert "There are no films." not in text


def test_page_gives_the_reason_for_missing_films():
  text = page.page(_report([10, 4], no_films="No OpenGL & no Mesa."))
  assert "by definition" not in text
  assert "First fall: Pushes: 0.5, seed 1, after 4 steps" in text
  assert "There are no films." in text and "No OpenGL &amp; no Mesa." in text


def test_page_contains_the_estimates_and_escapes_names():
  text = page.page(_report([10, 4]))
  assert "&lt;run&gt;" in text and "<run>" not in text
  assert "50% [9%, 91%]" in text and "<svg" in text
