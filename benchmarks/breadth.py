"""Whether tasks of all families are learned: each a little, and how fast.

    python -m benchmarks.breadth
    python -m benchmarks.breadth --only classic,HalfCheetah-v5

Each task is trained for a short budget by train.py; then the untrained policy
and the final one play the same episodes, with sampled actions. A row a task is
appended to docs/results/breadth.csv, and breadth.md beside it is written anew.
What is there already is left alone, a run that was stopped goes on, and what
isn't installed is named.
"""

from __future__ import annotations

import argparse
import csv
import json
import pathlib
import statistics
from typing import Any
from typing import NamedTuple

import numpy as np

from agents import config as config_lib
from agents.environments.making import make
from agents.training.monitoring import quiet_imports
from agents.training.run_folder import checkpoint
from agents.training.run_folder import run_folder
from benchmarks.common import machine
from benchmarks.common import scored_runs
from benchmarks.common import tables

_ROOT = pathlib.Path(__file__).parent.parent
_FIELDS = ["family", "task", "config", "steps", "untrained", "untrained_std",
           "trained", "trained_std", "episodes", "steps_per_second", "seconds",
           "commit", "versions"]
_SIDE_BY_SIDE = 20  # Episodes at once.


class Task(NamedTuple):
  """What is trained for how long."""

  family: str
  env_id: str
  steps: int
  config: str = "default"
  changes: dict[str, Any] = {}
  label: str = ""  # Tells it from other tasks in the environment.
  episodes: int = 20  # That each policy plays.

  @property
  def job(self) -> scored_runs.Job:
    """The run; few environments, as budgets are short."""
    quick = {"num_envs": 16, "algorithm.segment_length": 64,
             "algorithm.learning_rate": 1e-3} if self.config in (
                 "default", "dm_control") else {}
    return scored_runs.Job(self.config, self.steps, 0, changes={
        **quick, "env.id": self.env_id,
        "report_every": -(-self.steps // 5), "checkpoint_every": self.steps,
        "eval_every": self.steps, "eval_episodes": 5, **self.changes})

  @property
  def name(self) -> str:
    """The environment, and what of it."""
    return f"{self.env_id} {self.label}".strip()


def _echo(space: str, steps: int = 30_000) -> Task:
  return Task("spaces", "benchmarks.envs.echo:Echo", steps, changes={
      "env.kwargs": {"space": space}, "env.max_length": 20}, label=space)


TASKS = (
    Task("classic", "CartPole-v1", 40_000),
    Task("classic", "Acrobot-v1", 100_000),
    Task("classic", "Pendulum-v1", 150_000,
         changes={"algorithm.discount": 0.95}),
    Task("toy text", "FrozenLake-v1", 100_000, episodes=200),
    Task("toy text", "CliffWalking-v1", 60_000),
    Task("toy text", "Taxi-v4", 150_000),
    Task("toy text", "Blackjack-v1", 60_000, episodes=1000),
    Task("mujoco", "InvertedPendulum-v5", 50_000),
    Task("mujoco", "InvertedDoublePendulum-v5", 100_000),
    Task("mujoco", "Reacher-v5", 100_000),
    Task("mujoco", "Pusher-v5", 100_000),
    Task("mujoco", "Swimmer-v5", 100_000),
    Task("mujoco", "HalfCheetah-v5", 100_000),
    Task("mujoco", "Hopper-v5", 100_000),
    Task("mujoco", "Walker2d-v5", 100_000),
    Task("mujoco", "Ant-v5", 100_000),
    Task("mujoco", "Humanoid-v5", 100_000),
    Task("mujoco", "HumanoidStandup-v5", 60_000),
    Task("box2d", "LunarLander-v3", 150_000),
    Task("box2d", "LunarLanderContinuous-v3", 150_000),
    Task("box2d", "BipedalWalker-v3", 200_000),
    Task("dm_control", "dm_control/cartpole-balance-v0", 150_000, "dm_control"),
    Task("dm_control", "dm_control/cartpole-swingup-v0", 200_000, "dm_control"),
    Task("dm_control", "dm_control/cheetah-run-v0", 200_000, "dm_control"),
    Task("dm_control", "dm_control/walker-stand-v0", 150_000, "dm_control"),
    Task("dm_control", "dm_control/walker-walk-v0", 200_000, "dm_control"),
    Task("dm_control", "dm_control/walker-run-v0", 200_000, "dm_control"),
    Task("dm_control", "dm_control/reacher-easy-v0", 200_000, "dm_control"),
    Task("robotics", "FetchReachDense-v4", 100_000),
    Task("robotics", "PointMaze_OpenDense-v3", 60_000),
    Task("robotics", "PointMaze_UMazeDense-v3", 100_000),
    Task("robotics", "PointMaze_MediumDense-v3", 150_000),
    Task("atari", "ALE/KungFuMaster-v5", 100_000, "atari"),
    Task("pixels", "CartPole-v1", 60_000, "pixel_cartpole",
         label="from pixels"),
    _echo("box"), _echo("discrete"), _echo("multi_discrete"),
    _echo("multi_binary"), _echo("dict"), _echo("tuple"), _echo("nested"),
    Task("envpool", "CartPole-v1", 40_000,
         changes={"env.backend": "envpool"}, label="in EnvPool"),
    Task("envpool", "HalfCheetah-v5", 100_000,
         changes={"env.backend": "envpool"}, label="in EnvPool"),
)


def measure(task: Task, logdir: pathlib.Path) -> dict[str, Any]:
  """Train, or go on training, play, and return a row."""
  place = logdir / task.name.replace("/", "_").replace(" ", "_")
  begun = run_folder.resumable(place, task.job.config)
  machine.python(str(_ROOT / "train.py"), *(
      ["--resume", str(begun.path)] if begun else
      [*task.job.args, "--logdir", str(place)]))
  folder = run_folder.find(place)
  scores = json.loads(machine.python(
      "-m", "benchmarks.breadth", "--evaluate", str(folder.path), "--episodes",
      str(task.episodes)).splitlines()[-1])
  rows = [json.loads(line) for line in
          (folder.path / "metrics.jsonl").read_text().splitlines()]
  speeds = [row["steps_per_second"] for row in rows
            if row["phase"] == "train" and row["steps_per_second"]]
  return {**scores, "steps_per_second": round(statistics.median(speeds)),
          "seconds": round(rows[-1]["seconds"]),
          "versions": scored_runs.versions(folder)}


def evaluate(folder: run_folder.RunFolder, episodes: int) -> dict[str, Any]:
  """Let the first and the last policy of a run play the same episodes."""
  with quiet_imports.quiet_imports():
    from agents import build
    from agents.commands import rollout_policy
  build.setup(folder.config)
  first, *_, last = checkpoint.paths(folder.checkpoints)
  found: dict[str, Any] = {"episodes": episodes}
  for name, played in zip(("untrained", "trained"), rollout_policy.play(
      folder, [first, last], episodes, _SIDE_BY_SIDE, explore=True),
                          strict=True):
    scores = [episode.score for episode in played.episodes]
    found[name] = f"{np.mean(scores):.5g}"
    found[f"{name}_std"] = f"{np.std(scores):.3g}"
  return found


def gain(row: dict[str, str]) -> float:
  """Return by how many standard errors the policy has become better."""
  untrained, trained, *stds = (float(row[name]) for name in (
      "untrained", "trained", "untrained_std", "trained_std"))
  error = float(np.hypot(*stds)) / float(row["episodes"]) ** 0.5
  return (trained - untrained) / max(error, 1e-9)


def markdown(rows: list[dict[str, str]]) -> str:
  """Return a table of all tasks."""
  def score(row, name):
    std = float(row[f"{name}_std"])
    return f"{float(row[name]):.4g} ± {std:.{0 if std >= 50 else 1}f}"
  return tables.markdown(
      ["task", "family", "config", "steps", "episodes", "untrained", "trained",
       "better", "steps/s"], [[
           f"`{row['task']}`", row["family"], row["config"],
           f"{int(row['steps']):,}", row["episodes"],
           score(row, "untrained"), score(row, "trained"),
           "yes" if gain(row) > 3 else "no",
           f"{int(row['steps_per_second']):,}"] for row in rows])


def main(argv: list[str] | None = None):
  parser = argparse.ArgumentParser(
      description=__doc__.splitlines()[0],
      formatter_class=argparse.ArgumentDefaultsHelpFormatter)
  parser.add_argument("--only", default="", help="families, environment "
                      "ids and tasks, with commas between them; all by default")
  parser.add_argument("--logdir", type=pathlib.Path,
                      default=pathlib.Path("~/logdir/breadth"))
  parser.add_argument("--results", type=pathlib.Path,
                      default=_ROOT / "docs" / "results" / "breadth.csv",
                      help="CSV to append to")
  parser.add_argument("--evaluate", help=argparse.SUPPRESS)
  parser.add_argument("--episodes", type=int, help=argparse.SUPPRESS)
  args = parser.parse_args(argv)
  if args.evaluate:
    print(json.dumps(evaluate(
        run_folder.RunFolder(args.evaluate), args.episodes)))
    return
  only = set(filter(None, args.only.split(",")))
  for task in TASKS:
    about = {"family": task.family, "task": task.name, "config": task.config,
             "steps": str(task.steps)}
    if only and not only & {task.family, task.env_id, task.name} or any(
        row.items() >= about.items() for row in scored_runs.read(args.results)):
      continue
    try:
      make.check(task.job.config.env)
      row = {**about, **measure(task, args.logdir.expanduser()),
             "commit": scored_runs.commit()}
    except (config_lib.ConfigError, machine.Failed) as error:
      print(f"{task.name}: left out. {error}", flush=True)
      continue
    scored_runs.append(args.results, row, _FIELDS)
    print(f"{task.name}: {row['untrained']} -> {row['trained']}", flush=True)
    write(args.results)


def write(results: pathlib.Path):
  """Sort the rows as the tasks are, and write the table beside them."""
  order = [task.name for task in TASKS]
  rows = sorted(scored_runs.read(results), key=lambda row: (
      order.index(row["task"]) if row["task"] in order else len(order)))
  with open(results, "w", newline="") as file:
    writer = csv.DictWriter(file, _FIELDS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
  results.with_suffix(".md").write_text(
      "# Breadth\n\nTasks of several families, each trained for a short budget "
      "by `python -m\nbenchmarks.breadth`: returns with sampled actions in the "
      "same episodes\nfor the untrained policy and for the final one, mean ± "
      "std over the episodes.\n\"Better\" is by more than three standard "
      "errors. Steps/s are of training.\n\nAs budgets are short, the "
      "configs `default` and `dm_control` are trained with\n`--set "
      "num_envs=16 --set algorithm.segment_length=64 --set\n"
      "algorithm.learning_rate=1e-3`, Pendulum also with `--set\n"
      "algorithm.discount=0.95`.\n\n"
      f"{markdown(rows)}\n")


if __name__ == "__main__":
  main()
