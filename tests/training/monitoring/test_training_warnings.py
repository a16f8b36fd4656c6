"""Failing runs cause warnings; healthy runs do not."""

import json
import re

import pytest

from agents import config as config_lib
from agents.training.monitoring import training_warnings
from tests.training import test_loop

_HEALTHY = {
  "kl": 0.03,
  "explained_variance": 0.8,
  "value_loss": 0.1,
  "action_std": 0.4,
  "action_saturation": 0.3,
  "observ_clipped": 0.001,
}
_CONFIG = config_lib.Config()


def _examine(checker, num_reports, **metrics):
  """Returns the warnings by index of the report; omits reports without any."""
  warnings = {index: checker.examine({**_HEALTHY, **metrics}) for index in range(num_reports)}
  return {index: texts for index, texts in warnings.items() if texts}


def test_healthy_runs_cause_no_warnings():
  assert not _examine(training_warnings.TrainingWarnings(_CONFIG, True), 200)
  # Without normalization, the metrics lack `observ_clipped`.
  assert not training_warnings.TrainingWarnings(_CONFIG, True).examine(
    {name: value for name, value in _HEALTHY.items() if name != "observ_clipped"}
  )


@pytest.mark.parametrize(
  "metrics, patience, words",
  [
    ({"kl": 0.31}, 3, ["0.31", "is 0.01", "algorithm.learning_rate"]),
    ({"explained_variance": -0.2}, 10, ["-0.20", "algorithm.update_epochs"]),
    ({"value_loss": 11.0}, 3, ["11", "algorithm.learning_rate"]),
    ({"observ_clipped": 0.06}, 3, ["6%", "algorithm.observ_clip"]),
    ({"action_std": 0.001}, 3, ["0.001", "algorithm.entropy_coef"]),
    ({"action_std": 3.5}, 3, ["3.5", "network.init_std"]),
    ({"action_saturation": 0.95}, 3, ["95%", "network.init_std"]),
  ],
  ids=str,
)
def test_symptoms_cause_warnings_after_their_patience_and_every_25_reports(
  metrics, patience, words
):
  warnings = _examine(training_warnings.TrainingWarnings(_CONFIG, True), 60, **metrics)
  first = patience - 1
  assert list(warnings) == [index for index in (first, first + 25, first + 50) if index < 60]
  ((text,),) = set(map(tuple, warnings.values()))
  assert all(word in text for word in words), text


def test_one_healthy_report_resets_the_patience():
  checker = training_warnings.TrainingWarnings(_CONFIG, True)
  for _ in range(5):
    assert not _examine(checker, 2, kl=0.5)
    assert not _examine(checker, 1)


def test_recurring_symptom_is_reported_once_per_pause():
  checker = training_warnings.TrainingWarnings(_CONFIG, True)
  assert len(_examine(checker, 3, kl=0.5)) == 1
  for _ in range(4):
    assert not _examine(checker, 1)
    assert not _examine(checker, 5, kl=0.5)
  assert _examine(checker, 5, kl=0.5)


@pytest.mark.parametrize(
  "changes, warned",
  [
    ({}, False),
    ({"algorithm.lr_schedule": "kl_adaptive"}, True),
    ({"algorithm.lr_schedule": "kl_adaptive_linear"}, False),
    ({"algorithm.kl_penalty": 1.0}, True),
  ],
)
def test_small_updates_cause_warnings_only_if_the_kl_is_controlled(changes, warned):
  checker = training_warnings.TrainingWarnings(_CONFIG.override(changes), True)
  assert bool(_examine(checker, 20, kl=1e-4)) == warned


def test_small_value_errors_cause_no_warning_about_explained_variance():
  checker = training_warnings.TrainingWarnings(_CONFIG, True)
  assert not _examine(checker, 20, explained_variance=-6.0, value_loss=0.02)


def test_advice_depends_on_the_learning_rate_schedule():
  for schedule in ("linear", "kl_adaptive", "kl_adaptive_linear"):
    config = _CONFIG.override({"algorithm.lr_schedule": schedule})
    checker = training_warnings.TrainingWarnings(config, True)
    ((text,),) = _examine(checker, 3, kl=0.5).values()
    assert ("lr_schedule" in text) == (schedule == "linear")
  # With this schedule, the initial learning rate has little effect.
  checker = training_warnings.TrainingWarnings(config, True)
  ((text,),) = _examine(checker, 3, action_std=0.0).values()
  assert "kl_target" in text and "learning_rate" not in text


def test_discrete_actions_cause_no_warning_about_their_deviation():
  checker = training_warnings.TrainingWarnings(_CONFIG, False)
  assert not _examine(checker, 20, action_std=0.0)


@pytest.mark.parametrize(
  "reward_clip, discount, loss, warned",
  [
    (None, 0.99, 1e6, False),
    (1.0, 1.0, 1e6, False),
    (1.0, 0.99, 9e3, False),
    (1.0, 0.99, 1.1e4, True),
    (10.0, 0.9, 9e3, False),
    (10.0, 0.9, 1.1e4, True),
  ],
)
def test_value_errors_of_unscaled_returns_are_checked_if_returns_are_bounded(
  reward_clip, discount, loss, warned
):
  config = _CONFIG.override(
    {
      "algorithm.reward_scale": "none",
      "algorithm.reward_clip": reward_clip,
      "algorithm.discount": discount,
    }
  )
  warnings = _examine(training_warnings.TrainingWarnings(config, True), 9, value_loss=loss)
  assert bool(warnings) == warned
  assert "no return is larger than 100." in str(warnings) or not warned


@pytest.mark.parametrize(
  "changes",
  [
    {},
    {"algorithm.reward_scale": "none"},
    {"algorithm.kl_penalty": 1.0},
    {"algorithm.lr_schedule": "kl_adaptive"},
  ],
  ids=str,
)
def test_advice_names_existing_settings(changes):
  settings = config_lib.flat(_CONFIG.override(changes))
  checker = training_warnings.TrainingWarnings(_CONFIG.override(changes), True)
  failing = {name: sign * 1e6 for name, sign in zip(_HEALTHY, (1, -1, 1, 1, 1, 1), strict=True)}
  warnings = [_examine(checker, 10, **failing), _examine(checker, 10, kl=0.0, action_std=0.0)]
  named = set(re.findall(r"(?:algorithm|network)\.\w+", str(warnings)))
  assert len(named) >= 6 and named <= set(settings)


def test_restored_state_continues_with_the_same_warnings():
  first, rest = 7, 40
  whole_run = training_warnings.TrainingWarnings(_CONFIG, True)
  expected = _examine(whole_run, first + rest, kl=0.5, explained_variance=-1.0)
  interrupted = training_warnings.TrainingWarnings(_CONFIG, True)
  _examine(interrupted, first, kl=0.5, explained_variance=-1.0)
  resumed = training_warnings.TrainingWarnings(_CONFIG, True)
  resumed.state = json.loads(json.dumps(interrupted.state))
  later = _examine(resumed, rest, kl=0.5, explained_variance=-1.0)
  assert {index + first: texts for index, texts in later.items()} == {
    index: texts for index, texts in expected.items() if index >= first
  }


# Settings that make a run fail, and words of the expected warnings.
_FAILING = {
  "noise": (
    {"network.init_std": 20.0, "algorithm.observ_clip": 0.5},
    ["mostly noise", "beyond their bounds", "are clipped"],
  ),
  "large_updates": (
    {"algorithm.learning_rate": 0.1, "algorithm.lr_schedule": "constant"},
    ["Updates are too large"],
  ),
  "useless_value": ({"algorithm.value_coef": 0.0}, ["explains nothing"]),
  "small_updates": (
    {
      "network.init_std": 0.001,
      "algorithm.learning_rate": 1e-9,
      "algorithm.lr_schedule": "kl_adaptive",
      "algorithm.kl_target": 5.0,
    },
    ["no longer explores", "Updates are too small"],
  ),
  "diverging_value": ({"env.id": "tests.toy:Inflation"}, ["value function diverges"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("failure", _FAILING)
def test_failing_settings_cause_their_warnings(failure, tmp_path, capsys):
  changes, expected = _FAILING[failure]
  loop, folder = test_loop.make(
    tmp_path,
    {"steps": 600, "report_every": 20, "eval_every": 600, "algorithm.update_epochs": 4, **changes},
  )
  loop.start()
  loop.run()
  rows = [json.loads(line) for line in (folder.path / "metrics.jsonl").read_text().splitlines()]
  warnings = [f"step {row['step']:,}: {text}" for row in rows for text in row.get("warnings", [])]
  for words in expected:
    assert 1 <= sum(words in text for text in warnings) <= 2, words
  shown = capsys.readouterr().err.splitlines()
  assert all(len(line) <= 100 for line in shown)
  assert all(f"Warning, {text}" in " ".join(shown) for text in warnings)


@pytest.mark.slow
def test_learning_run_causes_no_warnings(finished):
  folder, output, _ = finished
  assert "Warning" not in output
  rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
  assert [row["warnings"] for row in rows if row["phase"] == "train"] == ([[]] * 10)


def test_other_algorithms_cause_no_warnings():
  config = _CONFIG.override({"algorithm.type": "module:Class"})
  checker = training_warnings.TrainingWarnings(config, True)
  assert not _examine(checker, 50, kl=1e3, value_loss=1e9)
  assert not training_warnings.TrainingWarnings(config, True).examine({})
