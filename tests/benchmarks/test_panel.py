"""The panel trains unknown tasks and compares the means of seeds."""

import pytest

from agents import configs
from agents.environments.making import third_party
from benchmarks import panel
from benchmarks.common import machine, scored_runs
from benchmarks.peers import sb3_scores


def test_panel_consists_of_sixteen_tasks_that_no_config_names():
  names = [task.name for task in panel.TASKS]
  assert len(set(names)) == 16
  assert not {configs.load(name)[1].env.id for name in configs.names()} & {
    task.env_id for task in panel.TASKS
  }
  extras = {
    third_party.find(task.env_id).extra for task in panel.TASKS if third_party.find(task.env_id)
  }
  assert extras == {"box2d", "dm-control", "robotics"}
  assert set(sb3_scores.ZOO) < {task.env_id for task in panel.TASKS}


def _row(score, system="default", task="Acrobot-v1", steps=100, seed=0):
  return {
    "task": task,
    "system": system,
    "steps": str(steps),
    "seed": str(seed),
    "mean_action": str(score),
  }


def test_only_budgets_without_rows_are_trained_one_seed_after_the_other():
  acrobot, echo = panel.TASKS[0], panel.TASKS[-1]
  rows = [_row(-90), _row(-90, steps=300, seed=1), _row(-90, "sb3")]
  runs = panel.missing([acrobot, echo], panel.SYSTEMS, [0, 1], [300, 100], rows)
  assert [(run.task, run.system, run.seed, run.budgets) for run in runs] == [
    (acrobot, "default", 0, (300,)),
    (acrobot, "sb3", 0, (300,)),
    (acrobot, "zoo", 0, (100, 300)),
    (echo, "default", 0, (100, 300)),
    (echo, "sb3", 0, (100, 300)),
    (acrobot, "default", 1, (100,)),
    (acrobot, "sb3", 1, (100, 300)),
    (acrobot, "zoo", 1, (100, 300)),
    (echo, "default", 1, (100, 300)),
    (echo, "sb3", 1, (100, 300)),
  ]


@pytest.mark.parametrize(
  "ours, theirs, expected",
  [
    ([1.0, 3.0], [1.0, 3.0], "equal"),
    # Each mean has a standard error of 1, and their difference one of 1.41.
    ([2.4, 4.4], [1.0, 3.0], "equal"),
    ([2.5, 4.5], [1.0, 3.0], "better"),
    ([-0.5, 1.5], [1.0, 3.0], "worse"),
    ([5.0], [4.0], "better"),
    ([5.0], [5.0], "equal"),
  ],
)
def test_difference_counts_if_it_exceeds_one_standard_error(ours, theirs, expected):
  assert panel.verdict(ours, theirs) == expected


def test_table_has_means_verdicts_and_ranks():
  rows = [
    *(_row(score, seed=seed) for seed, score in enumerate((-80, -90))),
    *(_row(-100, "sb3", seed=seed) for seed in (0, 1)),
    _row(-85, "zoo"),  # One seed has no standard error.
    *(
      _row(score, system, "CliffWalking-v1", seed=seed)
      for system, score in (("default", -9), ("sb3", -7))
      for seed in (0, 1)
    ),
    _row(-13, task="Taxi-v4"),  # Nothing to compare with.
  ]
  text = panel.markdown(rows)
  assert "## 100 steps" in text
  assert "better or equal on 1 of 2 tasks" in text
  assert "Its mean rank is 1.50, and that of Stable-Baselines3 1.50." in text
  cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()[6:]]
  assert cells == [
    [
      "`Acrobot-v1`",
      "-85 (-90 to -80; n = 2)",
      "-100 (-100 to -100; n = 2)",
      "-85 (-85 to -85; n = 1)",
      "better",
      "-",
    ],
    ["`CliffWalking-v1`", "-9 (-9 to -9; n = 2)", "-7 (-7 to -7; n = 2)", "-", "worse", "-"],
  ]


@pytest.mark.slow
def test_runs_are_measured_once_and_written(tmp_path, capsys):
  results = tmp_path / "panel.csv"
  args = [
    *("--only", "tests.echo:Echo multi_binary", "--budgets", "500,1000", "--seeds", "7"),
    *("--systems", "default", "--logdir", str(tmp_path / "runs"), "--results", str(results)),
  ]
  panel.main(args)
  assert "1 runs." in capsys.readouterr().out
  rows = scored_runs.read(results)
  assert [(row["system"], row["steps"], row["seed"]) for row in rows] == [
    ("default", "500", "7"),
    ("default", "1000", "7"),
  ]
  assert all(0 < float(row["mean_action"]) <= 20 for row in rows)
  panel.main(args)
  assert "0 runs." in capsys.readouterr().out
  assert results.with_suffix(".md").read_text().startswith("# Panel of unknown tasks")


def test_missing_package_of_the_peer_is_named(monkeypatch, tmp_path):
  def missing(*modules):
    raise SystemExit(f"This needs {modules[0]}")

  monkeypatch.setattr(machine, "require", missing)
  with pytest.raises(SystemExit, match="stable_baselines3"):
    panel.main(["--systems", "zoo", "--results", str(tmp_path / "panel.csv")])


@pytest.mark.parametrize(
  "args, message",
  [(("--systems", "sb4"), "no sb4"), (("--only", "Acrobat-v1"), "no task or family")],
)
def test_unknown_names_are_errors_before_training(args, message, tmp_path, capsys):
  with pytest.raises(SystemExit):
    panel.main([*args, "--results", str(tmp_path / "panel.csv")])
  assert message in capsys.readouterr().err
