"""Compares `default` with Stable-Baselines3 on tasks that no config names.

    pip install -e '.[benchmarks,box2d,dm-control,robotics]'
    python -m benchmarks.panel

Each run has one core. The final policies play episodes with the most probable
actions. Every run adds rows to docs/results/panel.csv, and the end of the
command writes docs/results/panel.md. Finished runs are not repeated.
"""

import argparse
import concurrent.futures
import itertools
import json
import pathlib
import statistics
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from agents import config as config_lib
from agents.environments.making import make
from benchmarks.common import command_line, evaluation, machine, scored_runs, tables, training
from benchmarks.peers import sb3_scores

FIELDS = [
  "family",
  "task",
  "system",
  "steps",
  "seed",
  "mean_action",
  "mean_action_std",
  "episodes",
  "seconds",
  "commit",
]
_EPISODES = 20  # Episodes that each final policy plays.
_INTRODUCTION = """# Panel of unknown tasks

This page compares `--config default` with PPO of Stable-Baselines3, on sixteen
tasks that no config names. Stable-Baselines3 has its default settings or, where
they exist, the tuned settings of the RL Zoo, which are made for other budgets.
The command `python -m benchmarks.panel` trains each task with several seeds.
Scores are returns of the most probable actions, as means over the seeds with the
lowest and the highest seed. "Better" and "worse" mean a difference of more than
one standard error. The rules of `default` were found with other seeds on ten of
these tasks, see [trials](../experiments/results.md#unknown-tasks).
"""


class Task(NamedTuple):
  """Environment to train in."""

  family: str
  env_id: str
  changes: dict[str, Any] = {}  # Settings of the environment, for both libraries.
  label: str = ""  # Distinguishes tasks in the same environment.

  @property
  def name(self) -> str:
    """Id of the environment, and the label."""
    return f"{self.env_id} {self.label}".strip()

  @property
  def settings(self) -> dict[str, Any]:
    """All settings of the environment."""
    return {"env.id": self.env_id, **self.changes}


class Run(NamedTuple):
  """Training of one library with one seed, until the largest budget."""

  task: Task
  system: str
  seed: int
  budgets: tuple[int, ...]


def _echo(space: str) -> Task:
  """Returns the task of repeating observations of a space."""
  changes = {"env.kwargs": {"space": space}, "env.max_length": 20}
  return Task("spaces", "tests.echo:Echo", changes, space)


TASKS = (
  Task("classic", "Acrobot-v1"),
  Task("classic", "MountainCar-v0"),
  Task("classic", "MountainCarContinuous-v0"),
  Task("box2d", "LunarLander-v3"),
  Task("box2d", "LunarLanderContinuous-v3"),
  Task("box2d", "BipedalWalker-v3"),
  Task("toy text", "FrozenLake-v1"),
  # A deterministic policy could walk forever.
  Task("toy text", "CliffWalking-v1", {"env.max_length": 200}),
  Task("toy text", "Taxi-v4"),
  Task("dm_control", "dm_control/reacher-easy-v0"),
  Task("dm_control", "dm_control/ball_in_cup-catch-v0"),
  Task("dm_control", "dm_control/point_mass-easy-v0"),
  Task("robotics", "FetchReachDense-v4"),
  Task("robotics", "PointMaze_UMazeDense-v3"),
  _echo("multi_discrete"),
  _echo("multi_binary"),
)


def _train_default(run: Run, logdir: pathlib.Path) -> dict[str, dict[str, float]]:
  """Trains `default` for each budget; returns scores and seconds by budget."""
  results = {}
  for steps in run.budgets:
    changes = {**run.task.settings, "eval_episodes": 5, "histograms": False}
    job = scored_runs.Job("default", steps, run.seed, changes=changes)
    name = f"{run.task.name}-{job.title}".replace("/", "_").replace(" ", "_")
    folder = scored_runs.train(job, logdir / name, "--no-env-processes")
    score = evaluation.evaluate_in_child(folder, ["mean_action"], _EPISODES)["mean_action"]
    last = (folder.path / "metrics.jsonl").read_text().splitlines()[-1]
    results[str(steps)] = {
      "mean_action": score["mean"],
      "mean_action_std": score["std"],
      "seconds": json.loads(last)["seconds"],
    }
  return results


def _train_sb3(run: Run, logdir: pathlib.Path, *options: str) -> dict[str, dict[str, float]]:
  """See `_train_default`; trains once, because the settings are constant."""
  return command_line.measure_in_child(
    "benchmarks.peers.sb3_scores",
    *options,
    "--env",
    run.task.env_id,
    "--budgets",
    ",".join(map(str, run.budgets)),
    "--seed",
    str(run.seed),
    "--episodes",
    str(_EPISODES),
    *training.split_settings(
      [config_lib.setting(key, value) for key, value in run.task.changes.items()]
    ),
  )


SYSTEMS: dict[str, Callable[[Run, pathlib.Path], dict[str, dict[str, float]]]] = {
  "default": _train_default,
  "sb3": _train_sb3,
  "zoo": lambda run, logdir: _train_sb3(run, logdir, "--zoo"),
}


def missing(
  tasks: Iterable[Task],
  systems: Iterable[str],
  seeds: Iterable[int],
  budgets: Iterable[int],
  rows: list[dict[str, str]],
) -> list[Run]:
  """Returns the runs without rows, one seed of all tasks after the other.

  Args:
    tasks: Tasks to train.
    systems: Keys of SYSTEMS.
    seeds: Random seeds.
    budgets: Environment steps.
    rows: Rows of finished runs.
  """
  finished = {(row["task"], row["system"], int(row["seed"]), int(row["steps"])) for row in rows}
  runs = []
  for seed, task, system in itertools.product(seeds, tasks, systems):
    if system == "zoo" and task.env_id not in sb3_scores.ZOO:
      continue
    left = tuple(
      steps for steps in sorted(budgets) if (task.name, system, seed, steps) not in finished
    )
    if left:
      runs.append(Run(task, system, seed, left))
  return runs


def rows_of(run: Run, results: dict[str, dict[str, float]], commit: str) -> list[dict[str, Any]]:
  """Returns the rows of a finished run.

  Args:
    run: The run.
    results: Scores and seconds by budget.
    commit: Commit of the code before the run.
  """
  return [
    {
      "family": run.task.family,
      "task": run.task.name,
      "system": run.system,
      "steps": steps,
      "seed": run.seed,
      "mean_action": f"{result['mean_action']:.6g}",
      "mean_action_std": f"{result['mean_action_std']:.4g}",
      "episodes": _EPISODES,
      "seconds": round(result["seconds"]),
      "commit": commit,
    }
    for steps, result in results.items()
  ]


def margin(ours: list[float], theirs: list[float]) -> float:
  """Returns the difference of means in standard errors of the difference.

  Args:
    ours: Scores of the seeds.
    theirs: Scores of the other settings' seeds.
  """
  variances = [
    statistics.variance(scores) / len(scores) if len(scores) > 1 else 0.0
    for scores in (ours, theirs)
  ]
  difference = statistics.fmean(ours) - statistics.fmean(theirs)
  return difference / max(sum(variances) ** 0.5, 1e-9)


def verdict(ours: list[float], theirs: list[float]) -> str:
  """Returns whether our scores are "better", "equal" or "worse"."""
  value = margin(ours, theirs)
  return "worse" if value < -1 else "better" if value > 1 else "equal"


def markdown(rows: list[dict[str, str]]) -> str:
  """Returns the tables of all budgets, each with a summary.

  Args:
    rows: Rows of the CSV file.
  """
  scores: dict[tuple[str, str, int], list[float]] = {}
  for row in rows:
    key = row["task"], row["system"], int(row["steps"])
    scores.setdefault(key, []).append(float(row["mean_action"]))
  parts = []
  for steps in sorted({steps for *_, steps in scores}):
    lines, verdicts = [], []
    for task in TASKS:
      default, sb3, zoo = (
        scores.get((task.name, system, steps), []) for system in ("default", "sb3", "zoo")
      )
      if min(len(default), len(sb3)) > 1:  # One seed has no standard error.
        verdicts.append(verdict(default, sb3))
        against_zoo = verdict(default, zoo) if len(zoo) > 1 else "-"
        lines.append(
          [f"`{task.name}`", *map(_spread, (default, sb3, zoo)), verdicts[-1], against_zoo]
        )
    if lines:
      parts.append(_table(steps, lines, verdicts))
  return "\n\n".join(parts)


def _table(steps: int, lines: list[list[str]], verdicts: list[str]) -> str:
  """Returns the section of one budget."""
  # The better library has rank 1; equal libraries share rank 1.5.
  ranks = {"better": 1.0, "equal": 1.5, "worse": 2.0}
  rank = statistics.fmean(ranks[each] for each in verdicts)
  table = tables.markdown(
    ["task", "default", "Stable-Baselines3", "RL Zoo", "default is", "against the zoo"], lines
  )
  return (
    f"## {steps:,} steps\n\n`default` is better or equal on "
    f"{sum(each != 'worse' for each in verdicts)} of {len(verdicts)} tasks. Its mean rank is "
    f"{rank:.2f}, and that of Stable-Baselines3 {3 - rank:.2f}.\n\n{table}"
  )


def _spread(scores: list[float]) -> str:
  """Returns mean, lowest and highest score, such as "3 (1 to 5; n = 3)"."""
  if not scores:
    return "-"
  low, high = min(scores), max(scores)
  return f"{statistics.fmean(scores):.4g} ({low:.4g} to {high:.4g}; n = {len(scores)})"


def _run(run: Run, logdir: pathlib.Path) -> list[dict[str, Any]]:
  """Trains; returns the rows of the run."""
  commit = scored_runs.commit()  # Read before the run loads the code.
  return rows_of(run, SYSTEMS[run.system](run, logdir), commit)


def _installed_tasks(only: set[str], parser: argparse.ArgumentParser) -> list[Task]:
  """Returns the tasks of `--only`; prints those that miss a package."""
  names = {name for task in TASKS for name in (task.family, task.env_id, task.name)}
  if unknown := only - names:
    parser.error(
      f"--only: no task or family {unknown.pop()}. Choose from {', '.join(sorted(names))}."
    )
  tasks = []
  for task in TASKS:
    if not only or only & {task.family, task.env_id, task.name}:
      try:
        make.check(config_lib.Config().override(task.settings).env)
        tasks.append(task)
      except config_lib.ConfigError as error:
        print(f"{task.name}: left out. {error}", flush=True)
  return tasks


def main(argv: list[str] | None = None) -> None:
  """Runs the benchmark."""
  parser = command_line.make_parser(__doc__, seeds="0-2")
  parser.add_argument("--systems", default=",".join(SYSTEMS), help="libraries to train")
  parser.add_argument("--budgets", default="100000,300000", help="environment steps of the runs")
  parser.add_argument("--only", default="", help="families and tasks, separated by commas")
  parser.add_argument("--at-once", type=int, default=2, help="number of simultaneous runs")
  command_line.add_files(parser, "panel")
  args = parser.parse_args(argv)
  systems = args.systems.split(",")
  if unknown := {*systems} - {*SYSTEMS}:
    parser.error(f"--systems: no {unknown.pop()}. Choose from {','.join(SYSTEMS)}.")
  tasks = _installed_tasks(set(filter(None, args.only.split(","))), parser)
  if {"sb3", "zoo"} & {*systems}:
    machine.require("stable_baselines3")
  runs = missing(
    tasks,
    systems,
    scored_runs.parse_seeds(args.seeds),
    [int(float(steps)) for steps in args.budgets.split(",")],
    scored_runs.read(args.results),
  )
  print(f"{len(runs)} runs.", flush=True)
  thread_indices = itertools.count()
  with concurrent.futures.ThreadPoolExecutor(
    args.at_once, initializer=lambda: scored_runs.pin_thread(next(thread_indices), args.at_once)
  ) as pool:
    futures = {pool.submit(_run, run, args.logdir.expanduser()): run for run in runs}
    failures = []
    for future in concurrent.futures.as_completed(futures):
      run = futures[future]
      try:
        rows = future.result()
      except machine.ProcessFailed as error:
        failures.append(f"{run.task.name}, {run.system}, seed {run.seed}: {error}")
        print(failures[-1], flush=True)
        continue
      for row in rows:
        scored_runs.append(args.results, row, FIELDS)
        print(
          f"{run.task.name}, {run.system}, {row['steps']} steps: {row['mean_action']}", flush=True
        )
  args.results.with_suffix(".md").write_text(
    f"{_INTRODUCTION}\n{markdown(scored_runs.read(args.results))}\n"
  )
  if failures:
    raise machine.ProcessFailed(
      "\n".join([f"{len(failures)} of {len(runs)} runs failed:", *failures])
    )


if __name__ == "__main__":
  main()
