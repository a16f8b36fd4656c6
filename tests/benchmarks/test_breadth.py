import csv

import numpy as np
import pytest

from agents import build
from agents.environments.making import third_party
from benchmarks import breadth
from benchmarks.common import machine, scored_runs

_QUICK = ("tests.echo:Echo tuple", "CartPole-v1")


def test_tasks_cover_all_families_of_environments():
  names = [task.name for task in breadth.TASKS]
  assert len(set(names)) == len(names)
  assert len({task.env_id for task in breadth.TASKS}) >= 25
  extras = {
    third_party.find(task.env_id).extra for task in breadth.TASKS if third_party.find(task.env_id)
  }
  assert extras == {"atari", "box2d", "dm-control", "robotics"}
  for task in breadth.TASKS:
    # The complete config of an unknown task needs its package.
    assert (task.job.changes["env.id"], task.job.steps) == (task.env_id, task.steps)


def _row(**changes):
  return {
    "family": "classic",
    "task": "CartPole-v1",
    "config": "default",
    "steps": "40000",
    "untrained": "20",
    "untrained_std": "6",
    "trained": "500",
    "trained_std": "0",
    "episodes": "9",
    "steps_per_second": "4321",
    "seconds": "20",
    "commit": "abc",
    "versions": "",
    **changes,
  }


def test_better_means_more_than_three_standard_errors():
  assert breadth.improvement(_row()) == 240
  better = _row(trained="26", trained_std="8")
  assert breadth.improvement(better) == pytest.approx(1.8)
  lines = breadth.markdown([_row(), _row(trained="21")]).splitlines()[2:]
  cells = [[cell.strip() for cell in line.split("|")[6:9]] for line in lines]
  assert cells == [["20 ± 6.0", "500 ± 0.0", "yes"], ["20 ± 6.0", "21 ± 0.0", "no"]]


def test_rows_have_the_order_of_the_tasks(tmp_path):
  path = tmp_path / "breadth.csv"
  with open(path, "w", newline="") as file:
    writer = csv.DictWriter(file, list(_row()))
    writer.writeheader()
    writer.writerows([_row(task="Ant-v5"), _row()])
  breadth.write(path)
  text = path.with_suffix(".md").read_text()
  assert text.index("CartPole-v1") < text.index("Ant-v5")


def test_finished_and_uninstalled_tasks_are_left_out(tmp_path, monkeypatch, capsys):
  finished, missing, failing = (
    breadth.Task("classic", env_id, 40_000)
    for env_id in ("CartPole-v1", "Nothing-v0", "Pendulum-v1")
  )
  monkeypatch.setattr(breadth, "TASKS", (finished, missing, failing))
  measured = []

  def measure(task, logdir):
    measured.append(task)
    raise machine.ProcessFailed("it failed")

  monkeypatch.setattr(breadth, "measure", measure)
  path = tmp_path / "breadth.csv"
  scored_runs.append(path, _row(), list(_row()))
  breadth.main(["--results", str(path)])
  assert measured == [failing]
  output = capsys.readouterr().out
  assert "Nothing-v0: left out." in output
  assert "Pendulum-v1: left out. it failed" in output


@pytest.mark.slow
@pytest.mark.parametrize("name", _QUICK)
def test_quick_tasks_are_learned(name):
  (task,) = (task for task in breadth.TASKS if task.name == name)
  config = task.job.config
  build.setup(config)
  trainer = build.trainer(config, None)
  try:
    trainer.start()
    before = np.mean(trainer.evaluate(10, lambda: False).scores)
    done = 0
    while done < config.steps / 4:
      done += trainer.epoch(done / config.steps).steps
    assert np.mean(trainer.evaluate(10, lambda: False).scores) > 1.5 * before
  finally:
    trainer.close()
