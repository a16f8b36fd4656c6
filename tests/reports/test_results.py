import pytest

from agents import config as config_lib
from agents.reports import results
from tests.reports import folders


def test_runs_at_any_depth_are_found_once(tmp_path):
  first = folders.make(tmp_path / "a" / "1-cheetah", [1.0])
  second = folders.make(tmp_path / "a" / "b" / "2-cheetah", [1.0])
  found = results.find([str(tmp_path), str(first)])
  assert sorted(found) == sorted([first, second])


@pytest.mark.parametrize("name", ["empty", "missing"])
def test_folder_without_runs_raises_an_error(name, tmp_path):
  (tmp_path / "empty").mkdir()
  folders.make(tmp_path / "some" / "1-cheetah", [1.0])
  with pytest.raises(config_lib.ConfigError, match=f"{name}: there is no run"):
    results.find([str(tmp_path / "some"), str(tmp_path / name)])


def test_incomplete_last_line_is_ignored(tmp_path):
  path = folders.make(tmp_path / "1-cheetah", [1.0, 2.0])
  with open(path / "metrics.jsonl", "a") as file:
    file.write('{"phase": "eval", "st')
  assert [row["return_mean"] for row in results.read(path).rows] == [1.0, 2.0]


@pytest.mark.parametrize(
  "line",
  [
    "{]",
    "3",
    '{"phase": "eval", "step": 5, "return_mean": 3}',
    '{"phase": "eval", "step": 5, "seconds": 1}',
    '{"phase": "eval", "step": 5, "seconds": "1", "return_mean": 3}',
  ],
)
def test_damaged_metrics_raise_an_error(line, tmp_path):
  path = folders.make(tmp_path / "1-cheetah", [1.0])
  (path / "metrics.jsonl").write_text(f"{line}\n")
  with pytest.raises(config_lib.ConfigError, match="metrics.jsonl is damaged"):
    results.read(path)


def test_run_without_metrics_has_no_rows(tmp_path):
  path = folders.make(tmp_path / "1-cheetah", [1.0])
  (path / "metrics.jsonl").unlink()
  assert results.read(path).rows == []


def test_rows_without_a_score_are_excluded(tmp_path):
  run = results.read(folders.make(tmp_path / "1-cheetah", [1.0], sampled=[None, 3.0]))
  assert [row["return_mean"] for row in run.phase("train")] == [3.0]
  assert [row["return_mean"] for row in run.phase("eval")] == [1.0]


def _group(tmp_path, **runs):
  """Groups runs; `runs` contains changed settings by name, such as "ant_b"."""
  return results.group(
    [
      results.read(folders.make(tmp_path / f"{number}-{name.partition('_')[0]}", [1.0], changes))
      for number, (name, changes) in enumerate(runs.items())
    ]
  )


def test_runs_that_differ_in_irrelevant_settings_form_one_group(tmp_path):
  groups = _group(
    tmp_path,
    cheetah={},
    cheetah_b={"seed": 3},
    cheetah_c={"num_workers": 1, "env_processes": False, "eval_every": 7},
    cheetah_d={"logger": "module:Class", "trace_graph": True},
  )
  assert [(group.task, group.label, len(group.runs)) for group in groups] == [
    ("HalfCheetah-v5", "cheetah", 4)
  ]
  assert not results.differences(groups)


def test_labels_of_a_task_are_unique(tmp_path):
  groups = _group(
    tmp_path,
    cheetah={},
    cheetah_b={"algorithm.discount": 0.9},
    quick={"steps": 10},
    hopper={"env.id": "Hopper-v5"},
  )
  assert [(group.task, group.label) for group in groups] == [
    ("HalfCheetah-v5", "cheetah, discount=0.9"),
    ("HalfCheetah-v5", "cheetah, discount=0.99"),
    ("HalfCheetah-v5", "quick"),
    ("Hopper-v5", "hopper"),
  ]
  assert results.differences(groups) == {
    "env.id": ["HalfCheetah-v5"] * 3 + ["Hopper-v5"],
    "algorithm.discount": [0.9, 0.99, 0.99, 0.99],
    "steps": [100, 100, 10, 100],
  }


def test_extended_runs_form_their_own_group(tmp_path):
  groups = _group(tmp_path, cheetah={}, cheetah_b={"extended_from": [50]})
  assert [group.label for group in groups] == [
    "cheetah, extended_from=[50]",
    "cheetah, extended_from=[]",
  ]


def test_run_is_complete_after_evaluation_of_its_budget(tmp_path):
  run = results.read(folders.make(tmp_path / "1-cheetah", [1.0, 2.0], sampled=[1.0, 2.0]))
  assert run.complete
  assert not run._replace(config=run.config.override({"steps": 201})).complete
  assert not run._replace(rows=[row for row in run.rows if row["phase"] == "train"]).complete


def test_labels_round_numbers(tmp_path):
  groups = _group(
    tmp_path,
    a={"algorithm.learning_rate": 0.0002619123082959723},
    a_b={"algorithm.learning_rate": 0.99995},
  )
  assert [group.label for group in groups] == [
    "a, learning_rate=0.000261912",
    "a, learning_rate=0.99995",
  ]


def test_tasks_with_different_arguments_differ(tmp_path):
  groups = _group(
    tmp_path,
    ant={"env.id": "Ant-v5"},
    ant_b={"env.id": "Ant-v5", "env.kwargs": {"contact_cost_weight": 0}},
  )
  assert [group.task for group in groups] == ["Ant-v5", "Ant-v5 contact_cost_weight=0"]
