"""The figures in docs/results belong to the current configs."""

import json
import pathlib

import numpy as np
import pytest

from agents import configs
from agents.reports import curves
from benchmarks import ablation, learning
from benchmarks.common import scored_runs

_DOCS = pathlib.Path(__file__).parents[2] / "docs"
_ROWS = scored_runs.read(_DOCS / "results" / "learning.csv")
_EARLIER = scored_runs.read(_DOCS / "results" / "earlier.csv")
_PAPER = scored_runs.read(_DOCS / "results" / "paper.csv")
_PARTS = scored_runs.read(_DOCS / "results" / "ablation.csv")
# Rows with the budgets of the configs.
_CONFIGS = [row for row in _ROWS if int(row["steps"]) == configs.load(row["config"])[1].steps]

# Settings of the configs when their rows in ablation.csv were measured.
_EARLIER_SETTINGS = {
  "cheetah": {"network.value_layers": [64, 64]},
  "hopper": {"algorithm.minibatch_size": 64, "algorithm.learning_rate": 3e-4},
}


def test_results_are_complete():
  assert _ROWS and all(None not in row.values() for row in _ROWS)


@pytest.mark.parametrize("row", _ROWS, ids=lambda row: f"{row['config']}-{row['seed']}")
def test_row_belongs_to_the_current_config(row):
  job = scored_runs.Job(row["config"], int(row["steps"]), int(row["seed"]))
  assert scored_runs.matches(row, scored_runs.identity(job, 100))


@pytest.mark.parametrize(
  "row", [*_ROWS, *_EARLIER], ids=lambda row: f"{row['config']}-{row['seed']}"
)
def test_row_is_a_run_of_a_config_without_changes(row):
  assert not row["variant"] and "dirty" not in row["commit"]
  assert row["task"].split()[0] == json.loads(row["settings"])["env.id"]


@pytest.mark.parametrize("row", _PAPER, ids=lambda row: f"{row['config']}-{row['seed']}")
def test_row_of_2017_is_a_finished_run_of_the_preset(row, capsys):
  job = scored_runs.Job(
    row["config"], int(row["steps"]), int(row["seed"]), row["variant"], ("paper",)
  )
  assert scored_runs.matches(row, scored_runs.identity(job, 100))
  options = {"configs": row["config"], "steps": row["steps"], "seeds": row["seed"]}
  options |= {"preset": "paper", "results": str(_DOCS / "results" / "paper.csv")}
  learning.main([f"--{name}={value}" for name, value in options.items()])
  output = capsys.readouterr().out
  assert output.startswith("1 runs, 1 of them finished before.")
  assert f"| {row['config']} --preset paper | " in output and "dirty" not in row["commit"]


@pytest.mark.slow
def test_ablation_belongs_to_the_current_configs_and_variants():
  found = {(row["config"], row["variant"], int(row["seed"])): row for row in _PARTS}
  steps = int(_PARTS[0]["steps"])
  wanted = ablation.make_jobs(
    [scored_runs.Job(name, steps, seed) for name in ("cheetah", "hopper") for seed in range(3)]
  )
  assert len(found) == len(_PARTS) == len(wanted)
  for job in wanted:
    if not job.presets:
      job = job._replace(changes=_EARLIER_SETTINGS[job.name] | job.changes)
    row = found[job.name, job.variant, job.seed]
    assert scored_runs.matches(row, scored_runs.identity(job, 100))
    assert "dirty" not in row["commit"]


def test_pages_show_the_tables_of_all_rows():
  assert scored_runs.summary(_CONFIGS) in (_DOCS.parent / "README.md").read_text()
  page = (_DOCS / "results.md").read_text()
  assert scored_runs.summary(_ROWS) in page
  assert ablation.table(_PARTS) in page
  experiments = (_DOCS / "experiments" / "results.md").read_text()
  assert scored_runs.summary(_EARLIER) in experiments
  assert scored_runs.summary(_PAPER) in (_DOCS / "algorithm.md").read_text()


def test_configs_contain_the_returns_of_the_rows():
  expected = {name: configs.about(name)[1] for name in configs.names()}
  expected = {name: results for name, results in expected.items() if results}
  assert expected.keys() == {row["config"] for row in _CONFIGS}
  for name, results in expected.items():
    scores = [float(row["mean_action"]) for row in _CONFIGS if row["config"] == name]
    assert results.scores == pytest.approx(scores, rel=5e-3)
    estimate = curves.estimate(np.array(scores))
    assert results.interval == pytest.approx((estimate.low, estimate.high), rel=5e-3)
    assert results.iqm == pytest.approx(estimate.mean, rel=5e-3)
