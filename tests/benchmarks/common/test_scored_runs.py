import json
import signal

import pytest

from agents.training.run_folder import run_folder
from benchmarks.common import machine, scored_runs
from tests.support import command

# The settings are as small as those of `command.SMALL`.
_JOB = scored_runs.Job(
  "pendulum",
  1_000,
  3,
  "small",
  (),
  {
    "num_envs": 4,
    "algorithm.segment_length": 50,
    "algorithm.minibatch_size": 50,
    "algorithm.update_epochs": 2,
    "eval_episodes": 2,
    "eager": True,
  },
)


@pytest.mark.parametrize(
  "text, numbers", [("0-4", [0, 1, 2, 3, 4]), ("7", [7]), ("1,3,5-6", [1, 3, 5, 6])]
)
def test_seeds_are_parsed_from_lists_and_ranges(text, numbers):
  assert scored_runs.parse_seeds(text) == numbers
  assert scored_runs.format_seeds(reversed(numbers)) == text


@pytest.mark.parametrize(
  "values, text",
  [([6000.4], "6000"), ([5900.0, 6100.0], "6000 ± 141"), ([-4.0, -4.2], "-4.1 ± 0.1")],
)
def test_number_of_digits_depends_on_the_size_of_the_values(values, text):
  assert scored_runs.spread(values) == text


def test_arguments_of_a_job_describe_its_config():
  assert _JOB.config.num_envs == 4 and _JOB.config.seed == 3
  assert _JOB.args == [
    "--config",
    "pendulum",
    "--steps",
    "1000",
    "--seed",
    "3",
    "--set",
    "num_envs=4",
    "--set",
    "algorithm.segment_length=50",
    "--set",
    "algorithm.minibatch_size=50",
    "--set",
    "algorithm.update_epochs=2",
    "--set",
    "eval_episodes=2",
    "--set",
    "eager=true",
  ]
  small = scored_runs.Job(
    "pendulum", 500, 0, changes={"env.kwargs": {"g": 1e-5}, "algorithm.clip_ratio": None}
  )
  assert small.args[-4:] == [
    "--set",
    "env.kwargs={g: 1.0e-05}",
    "--set",
    "algorithm.clip_ratio=null",
  ]
  paper = scored_runs.Job("pendulum", 500, 0, presets=("paper",))
  assert paper.args[-2:] == ["--preset", "paper"]
  assert paper.config.algorithm.update_every == 30


def _row(seed, mean_action, sampled, **more):
  return {
    "config": "ant",
    "variant": "",
    "steps": "1000000",
    "settings": "",
    "seed": str(seed),
    "mean_action": str(mean_action),
    "task": "Ant-v5",
    "sampled": str(sampled),
    "seconds": "90",
    "at_once": "2",
    **more,
  }


def test_summary_has_a_line_for_each_config_variant_and_budget():
  rows = [
    _row(0, 5000, 4000),
    _row(0, 1, 2, steps="3000000"),
    _row(1, 7000, 4000),
    _row(0, 8, 9, variant="x=1", settings="x=1"),
  ]
  assert scored_runs.summary(rows).splitlines()[2:] == [
    "| ant     | 1,000,000 |   0-1 | 6000 ± 1414 | 6000 [5000, 7000] |  5000 | 4000 ± 0 | "
    "1.5 (2 at once) | 3258 (Tianshou, v3, 10 seeds) |      100 % |",
    "| ant     | 3,000,000 |     0 |         1.0 |    1.0 [1.0, 1.0] |   1.0 |      2.0 | "
    "1.5 (2 at once) |    4958 (rl_games, v4, 1 run) |        0 % |",
    "| ant x=1 | 1,000,000 |     0 |         8.0 |    8.0 [8.0, 8.0] |   8.0 |      9.0 | "
    "1.5 (2 at once) | 3258 (Tianshou, v3, 10 seeds) |        0 % |",
  ]


def test_minutes_ignore_simultaneous_runs_if_others_exist():
  rows = [
    _row(0, 5000, 4000),
    _row(1, 5000, 4000, seconds="60", at_once="1"),
    _row(2, 5000, 4000, seconds="66", at_once="1"),
  ]
  assert "|     1.1 | 3258" in scored_runs.summary(rows)


@pytest.mark.slow
def test_interrupted_run_resumes_and_is_evaluated_once(tmp_path, capsys):
  logdir, results = tmp_path / "logdir", tmp_path / "results" / "some.csv"
  name = "pendulum-small-1000-seed3-2_at_once"
  # An interrupted run, and a run with other settings, which stays unchanged.
  process = command.start("train.py", *_JOB.args, "--logdir", logdir / name, cwd=tmp_path)
  code, _ = command.interrupt(
    process, signal.SIGINT, lambda: any(logdir.glob("*/*/*/checkpoint-*.npz"))
  )
  assert code != 0
  other = _JOB._replace(changes={**_JOB.changes, "num_envs": 2})
  folder = run_folder.create(str(logdir / name), "other", other.config)
  (folder.path / "metrics.jsonl").touch()
  begun = {path.parent: path.stat().st_mtime_ns for path in logdir.glob("*/*/metrics.jsonl")}
  failing = _JOB._replace(
    variant="failing",
    changes={"env.id": "tests.toy:Faulty", "env.kwargs": {"fault": "raise"}, "env.max_length": 5},
  )
  with pytest.raises(machine.ProcessFailed, match="(?s)1 of 2 runs failed:.*faulty step"):
    scored_runs.run([failing, _JOB], logdir, results, 2, 6)
  capsys.readouterr()
  rows = scored_runs.run([_JOB], logdir, results, 2, 6)
  assert "1 runs, 1 of them finished before." in capsys.readouterr().out
  assert {path.parent for path in logdir.glob(f"{name}/*/metrics.jsonl")} == (set(begun))
  changed = [
    path for path, when in begun.items() if (path / "metrics.jsonl").stat().st_mtime_ns != when
  ]
  assert [run_folder.RunFolder(path).config for path in changed] == ([_JOB.config])
  assert scored_runs.read(results) == rows
  (resumed,) = rows
  assert resumed["seed"] == "3"
  assert resumed["task"] == "Pendulum-v1" and resumed["episodes"] == "6"
  assert -2000 < float(resumed["mean_action"]) < 0
  assert float(resumed["sampled_std"]) > 0
  assert json.loads(resumed["settings"])["num_envs"] == 4
  assert "tensorflow=" in resumed["versions"] and resumed["commit"]


def test_row_matches_a_job_if_its_settings_are_equal():
  job = scored_runs.Job("swimmer", 1_000, 0)
  about = scored_runs.identity(job, 100)
  assert about["task"] == "Swimmer-v5"
  settings = json.loads(about["settings"])
  assert settings["algorithm.discount"] == 0.999
  assert "seed" not in settings and "steps" not in settings
  row = {key: str(value) for key, value in about.items()}
  assert scored_runs.matches(row, about)
  del settings["stagger"]  # The row is older than this setting.
  assert scored_runs.matches({**row, "settings": json.dumps(settings)}, about)
  settings["algorithm.discount"] = 0.99  # The config has changed since.
  assert not scored_runs.matches({**row, "settings": json.dumps(settings)}, about)
  for changed in (
    job._replace(seed=1),
    job._replace(steps=2_000),
    job._replace(variant="x"),
    job._replace(name="walker"),
  ):
    assert not scored_runs.matches(row, scored_runs.identity(changed, 100))
  assert not scored_runs.matches(row, scored_runs.identity(job, 10))


def test_title_is_a_valid_folder_name():
  job = scored_runs.Job("/some/where/robot.py", 1_000, 2, "a/b c")
  assert job.title == "robot-a_b_c-1000-seed2"
