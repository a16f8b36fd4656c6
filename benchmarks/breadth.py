"""Checks that tasks of many families are learned, each within a short budget.

    python -m benchmarks.breadth
    python -m benchmarks.breadth --only classic,HalfCheetah-v5

`train.py` trains each task. The untrained and the final policy then play the
same episodes with sampled actions. Every task adds a row to
docs/results/breadth.csv and updates the table in docs/results/breadth.md.
Finished tasks are not repeated, and interrupted runs resume. A task is printed
and left out if its package is not installed.
"""

import json
import pathlib
import statistics
from typing import Any, NamedTuple

import numpy as np

from agents import config as config_lib
from agents.environments.making import make
from benchmarks.common import command_line, evaluation, machine, scored_runs, tables
from tests import echo

_FIELDS = [
  "family",
  "task",
  "config",
  "steps",
  "untrained",
  "untrained_std",
  "trained",
  "trained_std",
  "episodes",
  "steps_per_second",
  "seconds",
  "commit",
  "versions",
]
_INTRODUCTION = """# Breadth

This page shows which tasks are learned within short budgets. The command
`python -m benchmarks.breadth` trains each task. The configs `default` and
`dm_control` adapt to task and budget. Returns are with sampled actions, as
means ± standard deviations over the episodes. "Better" means a gain of more
than three standard errors. "Steps/s" is the speed of training.
"""


class Task(NamedTuple):
  """Environment to train in, with the budget of the run."""

  family: str
  env_id: str
  steps: int
  config: str = "default"
  changes: dict[str, Any] = {}
  label: str = ""  # Distinguishes tasks in the same environment.
  episodes: int = 20  # Number of episodes that each policy plays.
  presets: tuple[str, ...] = ()

  @property
  def job(self) -> scored_runs.Job:
    """Run to train."""
    return scored_runs.Job(
      self.config,
      self.steps,
      0,
      presets=self.presets,
      changes={
        "env.id": self.env_id,
        "report_every": -(-self.steps // 5),
        "checkpoint_every": self.steps,
        "eval_every": self.steps,
        "eval_episodes": 5,
        **self.changes,
      },
    )

  @property
  def name(self) -> str:
    """Id of the environment, and the label."""
    return f"{self.env_id} {self.label}".strip()

  @property
  def identity(self) -> dict[str, str]:
    """Fields of a row that are known before the run."""
    return {
      "family": self.family,
      "task": self.name,
      "config": self.config,
      "steps": str(self.steps),
    }


def _tasks(family: str, steps: int, *env_ids: str, **fields: Any) -> list[Task]:
  """Returns tasks with the same number of steps."""
  return [Task(family, env_id, steps, **fields) for env_id in env_ids]


def _randomized(**ranges: Any) -> dict[str, Any]:
  """Returns the settings of an environment with domain randomization."""
  return {"env.wrappers": [{"DomainRandomization": ranges}]}


TASKS = (
  Task("classic", "CartPole-v1", 40_000),
  Task("classic", "Acrobot-v1", 100_000),
  Task("classic", "Pendulum-v1", 150_000),
  Task("toy text", "FrozenLake-v1", 100_000, episodes=200),
  Task("toy text", "CliffWalking-v1", 60_000),
  Task("toy text", "Taxi-v4", 150_000),
  Task("toy text", "Blackjack-v1", 60_000, episodes=1000),
  Task("mujoco", "InvertedPendulum-v5", 50_000),
  *_tasks(
    "mujoco",
    100_000,
    "InvertedDoublePendulum-v5",
    "Reacher-v5",
    "Pusher-v5",
    "Swimmer-v5",
    "HalfCheetah-v5",
    "Hopper-v5",
    "Walker2d-v5",
    "Ant-v5",
    "Humanoid-v5",
  ),
  Task("mujoco", "HumanoidStandup-v5", 60_000),
  *_tasks("box2d", 150_000, "LunarLander-v3", "LunarLanderContinuous-v3"),
  Task("box2d", "BipedalWalker-v3", 200_000),
  *_tasks(
    "dm_control",
    150_000,
    "dm_control/cartpole-balance-v0",
    "dm_control/walker-stand-v0",
    config="dm_control",
  ),
  *_tasks(
    "dm_control",
    200_000,
    "dm_control/cartpole-swingup-v0",
    "dm_control/cheetah-run-v0",
    "dm_control/walker-walk-v0",
    "dm_control/walker-run-v0",
    "dm_control/reacher-easy-v0",
    config="dm_control",
  ),
  Task("robotics", "FetchReachDense-v4", 100_000),
  Task("robotics", "PointMaze_OpenDense-v3", 60_000),
  Task("robotics", "PointMaze_UMazeDense-v3", 100_000),
  Task("robotics", "PointMaze_MediumDense-v3", 150_000),
  Task("atari", "ALE/KungFuMaster-v5", 100_000, "atari"),
  Task("pixels", "CartPole-v1", 60_000, "pixel_cartpole", label="from pixels"),
  *(
    Task(
      "spaces",
      "tests.echo:Echo",
      30_000,
      label=space,
      changes={"env.kwargs": {"space": space}, "env.max_length": 20},
    )
    for space in echo.SPACES
  ),
  Task("envpool", "CartPole-v1", 40_000, label="in EnvPool", changes={"env.backend": "envpool"}),
  Task(
    "envpool", "HalfCheetah-v5", 100_000, label="in EnvPool", changes={"env.backend": "envpool"}
  ),
  Task("vector", "CartPole-v1", 40_000, label="as a vector", changes={"env.backend": "vector"}),
  Task("vector", "phys2d/CartPole-v1", 40_000, label="in JAX", changes={"env.backend": "vector"}),
  Task(
    "vector",
    "tests.environments.blocks.vectors:envpool_cartpole",
    40_000,
    changes={"env.backend": "vector"},
  ),
  Task(
    "varied",
    "Pendulum-v1",
    150_000,
    label="with varied gravity",
    changes={"env.kwargs": {"g": {"uniform": [8, 12]}}},
  ),
  Task(
    "varied",
    "Ant-v5",
    100_000,
    label="randomized",
    changes=_randomized(friction=[0.5, 1.5], mass=[0.8, 1.2], motor=[0.8, 1.2]),
  ),
  Task(
    "varied",
    "Hopper-v5",
    100_000,
    label="with latency, noise and pushes",
    changes=_randomized(latency=[0, 1], noise=[0, 0.05], push=[0, 0.3]),
  ),
  Task(
    "observations",
    "Hopper-v5",
    100_000,
    label="with a critic that sees the randomization",
    changes={
      **_randomized(friction=[0.5, 1.5], mass=[0.8, 1.2], observe=True),
      "network.policy_observ": ["observation"],
    },
  ),
  Task(
    "observations",
    "Taxi-v4",
    150_000,
    label="with action masks",
    changes={"env.wrappers": [{"ActionMask": {}}], "network.action_mask": "action_mask"},
  ),
  Task(
    "observations",
    "HalfCheetah-v5",
    100_000,
    label="with moments that freeze",
    changes={"algorithm.observ_moments": {"freeze": 50_000}},
  ),
  Task("pixels", "InvertedPendulum-v5", 100_000, "pixel_inverted_pendulum", label="from pixels"),
  Task(
    "recurrent",
    "tests.behaviour.runs.memory_tasks:TMaze",
    60_000,
    label="with a recurrent policy of 2017",
    changes={"env.max_length": 15, "algorithm.update_every": 60, "algorithm.learning_rate": 3e-3},
    presets=("paper", "recurrent"),
  ),
)


def measure(task: Task, logdir: pathlib.Path) -> dict[str, Any]:
  """Trains a task and evaluates its policies.

  Args:
    task: Task to train.
    logdir: Folder for the run folders of all tasks.

  Returns:
    Fields of the row that are only known after the run.

  Raises:
    ProcessFailed: If training or evaluation fails.
  """
  commit = scored_runs.commit()  # Read before the run loads the code.
  folder = scored_runs.train(task.job, logdir / task.name.replace("/", "_").replace(" ", "_"))
  scores = evaluation.evaluate_in_child(folder, ["untrained", "sampled"], task.episodes)
  rows = [json.loads(line) for line in (folder.path / "metrics.jsonl").read_text().splitlines()]
  speeds = [
    row["steps_per_second"] for row in rows if row["phase"] == "train" and row["steps_per_second"]
  ]
  result = {
    "episodes": task.episodes,
    "steps_per_second": round(statistics.median(speeds)),
    "seconds": round(rows[-1]["seconds"]),
    "commit": commit,
    "versions": scored_runs.versions(folder),
  }
  for name, score in zip(("untrained", "trained"), scores.values(), strict=True):
    result |= {name: f"{score['mean']:.5g}", f"{name}_std": f"{score['std']:.3g}"}
  return result


def improvement(row: dict[str, str]) -> float:
  """Returns the gain of the final policy in standard errors.

  Args:
    row: Row of the CSV file.
  """
  untrained, trained, *stds = (
    float(row[name]) for name in ("untrained", "trained", "untrained_std", "trained_std")
  )
  error = float(np.hypot(*stds)) / float(row["episodes"]) ** 0.5
  return (trained - untrained) / max(error, 1e-9)


def markdown(rows: list[dict[str, str]]) -> str:
  """Returns a table of all tasks.

  Args:
    rows: Rows of the CSV file.
  """

  def score(row, name):
    std = float(row[f"{name}_std"])
    return f"{float(row[name]):.4g} ± {std:.{0 if std >= 50 else 1}f}"

  return tables.markdown(
    ["task", "family", "config", "steps", "episodes", "untrained", "trained", "better", "steps/s"],
    [
      [
        f"`{row['task']}`",
        row["family"],
        row["config"],
        f"{int(row['steps']):,}",
        row["episodes"],
        score(row, "untrained"),
        score(row, "trained"),
        "yes" if improvement(row) > 3 else "no",
        f"{int(row['steps_per_second']):,}",
      ]
      for row in rows
    ],
  )


def write(results: pathlib.Path):
  """Writes the table beside the CSV file, in the order of TASKS.

  Args:
    results: CSV file.
  """
  order = [task.name for task in TASKS]
  rows = sorted(
    scored_runs.read(results),
    key=lambda row: order.index(row["task"]) if row["task"] in order else len(order),
  )
  results.with_suffix(".md").write_text(f"{_INTRODUCTION}\n{markdown(rows)}\n")


def main(argv: list[str] | None = None):
  """Runs the benchmark."""
  parser = command_line.make_parser(__doc__)
  parser.add_argument(
    "--only",
    default="",
    help="families, environment ids and tasks, separated by commas; all by default",
  )
  command_line.add_files(parser, "breadth")
  args = parser.parse_args(argv)
  only = set(filter(None, args.only.split(",")))
  for task in TASKS:
    if only and not only & {task.family, task.env_id, task.name}:
      continue
    if any(row.items() >= task.identity.items() for row in scored_runs.read(args.results)):
      continue
    try:
      make.check(task.job.config.env)
      row = {**task.identity, **measure(task, args.logdir.expanduser())}
    except (config_lib.ConfigError, machine.ProcessFailed) as error:
      print(f"{task.name}: left out. {error}", flush=True)
      continue
    scored_runs.append(args.results, row, _FIELDS)
    print(f"{task.name}: {row['untrained']} -> {row['trained']}", flush=True)
    write(args.results)


if __name__ == "__main__":
  main()
