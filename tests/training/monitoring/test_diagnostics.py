"""Sick runs are told so, and healthy ones left alone."""

import json
import re

import pytest

from agents import config as config_lib
from agents.training.monitoring import diagnostics
from tests.training import test_loop

_HEALTHY = {
    "kl": 0.03, "explained_variance": 0.8, "value_loss": 0.1, "action_std": 0.4,
    "action_saturation": 0.3, "observ_clipped": 0.001}
_CONFIG = config_lib.Config()


def _examine(patient, reports, **metrics):
  """Return the numbers of the reports with warnings, and these."""
  told = {number: patient.examine({**_HEALTHY, **metrics})
          for number in range(reports)}
  return {number: texts for number, texts in told.items() if texts}


def test_healthy_runs_are_left_alone():
  assert not _examine(diagnostics.Diagnostics(_CONFIG, True), 200)
  # Nothing is normalized here, so there are no figures of it.
  assert not diagnostics.Diagnostics(_CONFIG, True).examine(
      {name: value for name, value in _HEALTHY.items()
       if name != "observ_clipped"})


@pytest.mark.parametrize("metrics, patience, words", [
    ({"kl": 0.31}, 3, ["0.31", "is 0.01", "algorithm.learning_rate"]),
    ({"explained_variance": -0.2}, 10, ["-0.20", "algorithm.update_epochs"]),
    ({"value_loss": 11.0}, 3, ["11", "algorithm.learning_rate"]),
    ({"observ_clipped": 0.06}, 3, ["6%", "algorithm.observ_clip"]),
    ({"action_std": 0.001}, 3, ["0.001", "algorithm.entropy_coef"]),
    ({"action_std": 3.5}, 3, ["3.5", "network.init_std"]),
    ({"action_saturation": 0.95}, 3, ["95%", "network.init_std"])], ids=str)
def test_each_symptom_is_told_after_a_while_and_now_and_then(
    metrics, patience, words):
  told = _examine(diagnostics.Diagnostics(_CONFIG, True), 60, **metrics)
  first = patience - 1
  assert list(told) == [
      number for number in (first, first + 25, first + 50) if number < 60]
  (text,), = set(map(tuple, told.values()))
  assert all(word in text for word in words), text


def test_one_good_report_is_recovery():
  patient = diagnostics.Diagnostics(_CONFIG, True)
  for _ in range(5):
    assert not _examine(patient, 2, kl=0.5)
    assert not _examine(patient, 1)


def test_what_comes_and_goes_is_not_told_each_time():
  patient = diagnostics.Diagnostics(_CONFIG, True)
  assert len(_examine(patient, 3, kl=0.5)) == 1
  for _ in range(4):
    assert not _examine(patient, 1)
    assert not _examine(patient, 5, kl=0.5)
  assert _examine(patient, 5, kl=0.5)


@pytest.mark.parametrize("changes, warned", [
    ({}, False), ({"algorithm.lr_schedule": "kl_adaptive"}, True),
    ({"algorithm.kl_penalty": 1.0}, True)])
def test_small_updates_are_no_illness_where_nothing_holds_the_kl(
    changes, warned):
  patient = diagnostics.Diagnostics(_CONFIG.override(changes), True)
  assert bool(_examine(patient, 20, kl=1e-4)) == warned


def test_there_is_nothing_to_explain_where_returns_are_alike():
  patient = diagnostics.Diagnostics(_CONFIG, True)
  assert not _examine(patient, 20, explained_variance=-6.0, value_loss=0.02)


def test_nobody_is_told_to_do_what_is_done():
  adaptive = _CONFIG.override({"algorithm.lr_schedule": "kl_adaptive"})
  for config, told in ((_CONFIG, True), (adaptive, False)):
    (text,), = _examine(diagnostics.Diagnostics(config, True), 3, kl=0.5).values()
    assert ("lr_schedule" in text) == told
  # The rate to begin with is soon forgotten where the KL is held.
  (text,), = _examine(diagnostics.Diagnostics(adaptive, True), 3, action_std=0.0).values()
  assert "kl_target" in text and "learning_rate" not in text


def test_choices_may_become_certain():
  patient = diagnostics.Diagnostics(_CONFIG, False)
  assert not _examine(patient, 20, action_std=0.0)


@pytest.mark.parametrize("reward_clip, discount, loss, warned", [
    (None, 0.99, 1e6, False), (1.0, 1.0, 1e6, False), (1.0, 0.99, 9e3, False),
    (1.0, 0.99, 1.1e4, True), (10.0, 0.9, 9e3, False),
    (10.0, 0.9, 1.1e4, True)])
def test_errors_of_unscaled_returns_are_judged_where_these_are_bounded(
    reward_clip, discount, loss, warned):
  config = _CONFIG.override({
      "algorithm.reward_scale": "none", "algorithm.reward_clip": reward_clip,
      "algorithm.discount": discount})
  told = _examine(diagnostics.Diagnostics(config, True), 9, value_loss=loss)
  assert bool(told) == warned
  assert "no return is larger than 100." in str(told) or not warned


@pytest.mark.parametrize("changes", [
    {}, {"algorithm.reward_scale": "none"}, {"algorithm.kl_penalty": 1.0},
    {"algorithm.lr_schedule": "kl_adaptive"}], ids=str)
def test_settings_that_are_named_are_there(changes):
  settings = config_lib.flat(_CONFIG.override(changes))
  patient = diagnostics.Diagnostics(_CONFIG.override(changes), True)
  sick = {name: sign * 1e6 for name, sign in zip(_HEALTHY, (
      1, -1, 1, 1, 1, 1), strict=True)}
  told = [_examine(patient, 10, **sick),
          _examine(patient, 10, kl=0.0, action_std=0.0)]
  named = set(re.findall(r"(?:algorithm|network)\.\w+", str(told)))
  assert len(named) >= 6 and named <= set(settings)


def test_state_goes_on_where_it_was():
  first, rest = 7, 40
  whole = diagnostics.Diagnostics(_CONFIG, True)
  expected = _examine(whole, first + rest, kl=0.5, explained_variance=-1.0)
  begun = diagnostics.Diagnostics(_CONFIG, True)
  _examine(begun, first, kl=0.5, explained_variance=-1.0)
  resumed = diagnostics.Diagnostics(_CONFIG, True)
  resumed.state = json.loads(json.dumps(begun.state))
  later = _examine(resumed, rest, kl=0.5, explained_variance=-1.0)
  assert {number + first: texts for number, texts in later.items()} == {
      number: texts for number, texts in expected.items() if number >= first}


# Settings that make a run sick, and what it must be told.
_SICK = {
    "noise": ({"network.init_std": 20.0, "algorithm.observ_clip": 0.5},
              ["mostly noise", "beyond their bounds", "are clipped"]),
    "leaps": ({"algorithm.learning_rate": 0.1,
               "algorithm.lr_schedule": "constant"},
              ["Each update moves the policy far"]),
    "blindness": ({"algorithm.value_coef": 0.0}, ["explains nothing"]),
    "numbness": ({"network.init_std": 0.001, "algorithm.learning_rate": 1e-9,
                  "algorithm.lr_schedule": "kl_adaptive",
                  "algorithm.kl_target": 5.0},
                 ["no longer explores", "hardly move"]),
    "inflation": ({"env.id": "tests.toy:Inflation"}, ["value diverges"])}


@pytest.mark.slow
@pytest.mark.parametrize("illness", _SICK)
def test_runs_made_sick_on_purpose_are_told(illness, tmp_path, capsys):
  changes, expected = _SICK[illness]
  loop, folder = test_loop.make(tmp_path, {
      "steps": 600, "report_every": 20, "eval_every": 600,
      "algorithm.update_epochs": 4, **changes})
  loop.start()
  loop.run()
  rows = [json.loads(line) for line in
          (folder.path / "metrics.jsonl").read_text().splitlines()]
  told = [f"step {row['step']:,}: {text}" for row in rows
          for text in row.get("warnings", [])]
  for words in expected:
    assert 1 <= sum(words in text for text in told) <= 2, words
  shown = capsys.readouterr().err
  assert all(f"Warning, {text}" in shown for text in told)


@pytest.mark.slow
def test_a_run_that_learns_is_told_nothing(finished):
  folder, output, _ = finished
  assert "Warning" not in output
  rows = [json.loads(line) for line in
          (folder / "metrics.jsonl").read_text().splitlines()]
  assert [row["warnings"] for row in rows if row["phase"] == "train"] == (
      [[]] * 10)


def test_of_other_algorithms_nothing_is_known():
  config = _CONFIG.override({"algorithm.type": "module:Class"})
  assert not _examine(diagnostics.Diagnostics(config, True), 50, kl=1e3, value_loss=1e9)
  assert not diagnostics.Diagnostics(config, True).examine({})
