"""Rows contain the same metrics as fields and as TensorBoard scalars."""

from agents.training import epoch_result
from agents.training.monitoring import metrics_row

_EPISODES = epoch_result.Statistics(
  [1.0, 3.0], [10, 20], [{"reward_run": 2.0}, {"reward_run": 4.0}]
)


def test_training_row_contains_every_metric_once():
  row = metrics_row.training_row(
    80,
    1.23456,
    _EPISODES,
    {"kl": 0.1, "value_loss": 2.0},
    {"stepping": 0.5, "step_limit": None},
    ["The KL divergence is high."],
    3,
  )
  assert row.fields == {
    "phase": "train",
    "step": 80,
    "seconds": 1.235,
    "episodes": 2,
    "return_mean": 2.0,
    "return_std": 1.0,
    "return_min": 1.0,
    "return_max": 3.0,
    "length_mean": 15.0,
    "stepping": 0.5,
    "step_limit": None,
    "reward_parts/run": 3.0,
    "warnings": ["The KL divergence is high."],
    "restarts": 3,
  }
  assert row.scalars == {
    "score/return": 2.0,
    "score/length": 15.0,
    "policy/kl": 0.1,
    "losses/value_loss": 2.0,
    "performance/stepping": 0.5,
    "performance/step_limit": None,
    "reliability/restarts": 3,
    "reward_parts/run": 3.0,
  }


def test_evaluation_row_contains_episodes_and_for_tensorboard_norms():
  row = metrics_row.evaluation_row(80, 1.0, _EPISODES, {"weight_norms/x": 5.0})
  assert row.fields["phase"] == "eval"
  assert row.fields["return_mean"] == row.scalars["score/return"] == 2.0
  assert row.scalars.keys() == {"score/return", "score/length", "weight_norms/x"}
  assert "weight_norms/x" not in row.fields


def test_evaluation_row_contains_metrics_of_the_task():
  statistics = epoch_result.Statistics(
    [1.0, 3.0], [10, 20], [{"metric_survived": 1.0}, {"metric_survived": 0.0, "reward_run": 1.0}]
  )
  row = metrics_row.evaluation_row(80, 1.0, statistics, {})
  assert row.fields["metrics/survived"] == row.scalars["metrics/survived"] == 0.5
  assert "reward_parts/run" not in row.fields


def test_scores_of_a_row_without_episodes_are_none():
  row = metrics_row.evaluation_row(80, 1.0, epoch_result.Statistics(), {})
  assert row.fields["return_mean"] is row.scalars["score/return"] is None
