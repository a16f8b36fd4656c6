import json

import pytest

from agents import build
from agents import config as config_lib
from agents.training.monitoring import run_summary, time_usage
from agents.training.run_folder import run_folder

_PARTS = ("stepping", "crossing", "inference", "learning", "evaluation", "compiling", "rest")


def _row(step, seconds, speed, limit, **shares):
  return {
    "phase": "train",
    "step": step,
    "seconds": seconds,
    "return_mean": 0.0,
    "steps_per_second": speed,
    "step_limit": limit,
    "limit_share": speed and speed / limit,
    **{f"{name}_share": shares.get(name, 0.0) for name in _PARTS},
  }


# Evaluations take 30 % of the time.
_ROWS = [
  _row(100, 10.0, None, None, compiling=1.0),
  _row(300, 20.0, 20.0, 40.0, learning=0.5, stepping=0.5),
  _row(600, 50.0, 20.0, 40.0, learning=0.2, evaluation=0.5, rest=0.3),
]


def test_total_weights_rows_by_duration():
  total = time_usage.total(_ROWS)
  assert total["steps_per_second"] == pytest.approx(20)
  assert total["step_limit"] == pytest.approx(40)
  assert total["limit_share"] == pytest.approx(0.5)
  assert total["learning_share"] == pytest.approx((0.5 * 10 + 0.2 * 30) / 50)
  assert total["compiling_share"] == pytest.approx(0.2)
  assert sum(total[f"{name}_share"] for name in _PARTS) == pytest.approx(1)


def test_total_speed_is_none_if_no_row_has_a_speed():
  total = time_usage.total(_ROWS[:1])
  assert total["steps_per_second"] is total["limit_share"] is None


def test_batch_size_excludes_padding(tmp_path):
  config = config_lib.Config().override(
    {
      "env.id": "tests.toy:Target",
      "env_processes": False,
      "num_envs": 3,
      "algorithm.segment_length": 683,
      "algorithm.minibatch_size": 683,
    }
  )
  trainer = build.trainer(config, None)
  folder = run_folder.create(str(tmp_path), "x", config)
  assert trainer.rollout_spec.rows > 2049
  assert "batches of 2,049 steps, 10 epochs" in run_summary.beginning(folder, trainer)


def _end(tmp_path, rows):
  folder = run_folder.create(str(tmp_path), "x", config_lib.Config())
  (folder.path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
  return run_summary.end(folder)


def test_end_shows_last_and_best_score_speed_and_time(tmp_path):
  scores = [
    {"phase": "eval", "step": step, "seconds": 1.0 * step, "return_mean": score}
    for step, score in ((100, 5.0), (300, 1234.5), (600, 60.25))
  ]
  text = _end(tmp_path, [*_ROWS, *scores])
  result, speed, time_spent, evaluations = text.splitlines()
  assert result == ("Return 60.2 at the end, 1,234.5 at its best (step 300), in 0:10:00.")
  assert speed == "Speed: 20 steps/s; workers that only step reach 40."
  assert time_spent.startswith("Time: stepping 10%, learning 22%, ")
  assert evaluations == (
    "To spend less time on evaluations, raise eval_every (50,000) or lower eval_episodes (10)."
  )


def test_end_names_no_settings_if_evaluations_take_little_time(tmp_path):
  score = {"phase": "eval", "step": 300, "seconds": 20.0, "return_mean": 1.0}
  assert "eval_every" not in _end(tmp_path, [*_ROWS[:2], score])


def test_lines_of_the_summary_are_narrow_for_any_spaces_and_shares(tmp_path):
  rows = [_row(100_000_000, 300_000.0, 1e6, 1e7, **dict.fromkeys(_PARTS, 1 / len(_PARTS)))]
  score = {"phase": "eval", "step": 100_000_000, "seconds": 300_000.0, "return_mean": -1_234_567.89}
  text = _end(tmp_path, [*rows, score])
  config = config_lib.Config().override(
    {
      "env.id": "tests.echo:Echo",
      "env.kwargs": {"space": "nested"},
      "env_processes": False,
      "num_envs": 2,
      "network.policy_layers": [8] * 30,
    }
  )
  folder = run_folder.create(str(tmp_path), "x", config)
  text += run_summary.beginning(folder, build.trainer(config, None), 1_000)
  assert "1,000 of them completed before" in text
  assert all(len(line) <= 100 for line in text.splitlines() if str(tmp_path) not in line)


def test_end_of_a_run_without_scores(tmp_path):
  assert _end(tmp_path, []) == "The run is too short for a summary."
