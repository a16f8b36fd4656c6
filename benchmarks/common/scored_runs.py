"""Trains many runs, evaluates each final policy, and keeps the scores as CSV.

`benchmarks.learning` and `benchmarks.ablation` share this module. If they are
started again after an interruption, they skip the runs in the CSV file, and
resume unfinished runs.
"""

import concurrent.futures
import csv
import itertools
import json
import os
import pathlib
import statistics
import subprocess
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import yaml

from agents import config as config_lib
from agents.commands.shared import merge_settings
from agents.reports import curves, published_scores
from agents.reports import results as results_lib
from agents.training.run_folder import run_folder
from benchmarks.common import evaluation, machine, tables, training

FIELDS = (
  "config",
  "variant",
  "task",
  "steps",
  "seed",
  "mean_action",
  "sampled",
  "mean_action_std",
  "sampled_std",
  "episodes",
  "seconds",
  "at_once",
  "commit",
  "versions",
  "settings",
)


class Job(NamedTuple):
  """One run of a named config with some changes."""

  name: str  # Name of the config.
  steps: int
  seed: int
  variant: str = ""  # Name of the changes.
  presets: tuple[str, ...] = ()
  changes: dict[str, Any] = {}

  @property
  def config(self) -> config_lib.Config:
    """Configuration of the run."""
    return merge_settings.of_new_run(
      self.name, self.presets, {**self.changes, "steps": self.steps, "seed": self.seed}
    ).config

  @property
  def title(self) -> str:
    """Name for messages and folders."""
    name = pathlib.Path(self.name).stem
    parts = name, self.variant, str(self.steps), f"seed{self.seed}"
    return "-".join(filter(None, parts)).replace(" ", "_").replace("/", "_")

  @property
  def args(self) -> list[str]:
    """Arguments of `train.py`."""
    return [
      "--config",
      self.name,
      "--steps",
      str(self.steps),
      "--seed",
      str(self.seed),
      *(part for name in self.presets for part in ("--preset", name)),
      *training.split_settings(
        [config_lib.setting(key, value) for key, value in self.changes.items()]
      ),
    ]


def run(
  jobs: Sequence[Job], logdir: pathlib.Path, results: pathlib.Path, at_once: int, num_episodes: int
) -> list[dict[str, str]]:
  """Trains and evaluates the jobs that are not in the results yet.

  Args:
    jobs: Runs to train.
    logdir: Folder of the run folders.
    results: CSV file to append rows to.
    at_once: Number of simultaneous runs. With 1, the run uses all cores, like
      runs of users; otherwise, each run uses one core.
    num_episodes: Number of episodes of an evaluation.

  Returns:
    Rows of all jobs in the CSV file.

  Raises:
    ProcessFailed: If some jobs failed; raised after the other jobs finish.
  """
  identities = [identity(job, num_episodes) for job in jobs]
  rows = read(results)
  remaining = [
    job
    for job, expected in zip(jobs, identities, strict=True)
    if not any(matches(row, expected) for row in rows)
  ]
  print(f"{len(jobs)} runs, {len(jobs) - len(remaining)} of them finished before.", flush=True)
  thread_indices, failures = itertools.count(), []
  with concurrent.futures.ThreadPoolExecutor(
    at_once, initializer=lambda: pin_thread(next(thread_indices), at_once)
  ) as pool:
    futures = {pool.submit(_run, job, logdir, at_once, num_episodes): job for job in remaining}
    try:
      for future in concurrent.futures.as_completed(futures):
        title = futures[future].title
        try:
          row = future.result()
        except machine.ProcessFailed as error:
          failures.append(f"{title}: {error}")
          print(failures[-1], flush=True)
          continue
        append(results, row, FIELDS)
        print(f"{title}: mean action {row['mean_action']}, sampled {row['sampled']}", flush=True)
    except BaseException:
      pool.shutdown(wait=False, cancel_futures=True)
      raise
  if failures:
    raise machine.ProcessFailed(
      "\n".join([f"{len(failures)} of {len(jobs)} runs failed:", *failures])
    )
  return [row for row in read(results) if any(matches(row, expected) for expected in identities)]


def identity(job: Job, num_episodes: int) -> dict[str, Any]:
  """Returns the fields of a row that are known before the run.

  Args:
    job: Run to describe.
    num_episodes: Number of episodes of an evaluation.
  """
  run = results_lib.RunResults(job.name, pathlib.Path(), job.config, [])
  settings = {key: value for key, value in run.settings.items() if key != "steps"}
  return {
    "config": pathlib.Path(job.name).stem,
    "variant": job.variant,
    "task": results_lib.task(job.config.env),
    "steps": job.steps,
    "seed": job.seed,
    "episodes": num_episodes,
    "settings": json.dumps(settings),
  }


def matches(row: dict[str, Any], expected: dict[str, Any]) -> bool:
  """Returns whether a row is the result of a job.

  Settings that the row does not contain were added later, and are ignored.

  Args:
    row: Row of the CSV file.
    expected: Fields of the job, see `identity`.
  """
  stored, settings = (json.loads(each["settings"]) for each in (row, expected))
  return all(
    str(row[name]) == str(value) for name, value in expected.items() if name != "settings"
  ) and all(settings.get(key) == value for key, value in stored.items())


def read(path: pathlib.Path) -> list[dict[str, str]]:
  """Returns the rows of a CSV file; no rows if the file does not exist."""
  if not path.exists():
    return []
  with open(path, newline="") as file:
    return list(csv.DictReader(file))


def append(path: pathlib.Path, row: dict[str, Any], fields: Sequence[str]):
  """Appends a row to a CSV file.

  Args:
    path: CSV file; a new file begins with the names of the fields.
    row: Values by field.
    fields: Names of the fields in order.
  """
  new = not path.exists()
  path.parent.mkdir(parents=True, exist_ok=True)
  with open(path, "a", newline="") as file:
    writer = csv.DictWriter(file, fields, lineterminator="\n")
    if new:
      writer.writeheader()
    writer.writerow(row)


def summary(rows: Iterable[dict[str, str]]) -> str:
  """Returns a table with a line for each config, variant and number of steps.

  Args:
    rows: Rows of the CSV file.
  """
  groups: dict[tuple[str, ...], list[dict[str, str]]] = {}
  for row in rows:
    key = row["config"], row["variant"], row["steps"]
    groups.setdefault(key, []).append(row)
  lines = []
  for (config, variant, steps), group in groups.items():
    scores, sampled = ([float(row[name]) for row in group] for name in ("mean_action", "sampled"))
    estimate = curves.estimate(np.array(scores))
    digits = _digits(scores)
    best = published_scores.best(group[0]["task"], int(steps))
    lines.append(
      [
        f"{config} {variant}".strip(),
        f"{int(steps):,}",
        format_seeds(int(row["seed"]) for row in group),
        spread(scores),
        f"{estimate.mean:.{digits}f} [{estimate.low:.{digits}f}, {estimate.high:.{digits}f}]",
        f"{min(scores):.{digits}f}",
        spread(sampled),
        _minutes(group),
        f"{best.score:g} ({best.source})" if best else "-",
        best.reached_by(scores) if best else "-",
      ]
    )
  return tables.markdown(
    [
      *("config", "steps", "seeds", "mean action", "IQM [95 %]", "worst"),
      *("sampled", "minutes", "best published", "reached by"),
    ],
    lines,
  )


def spread(values: Sequence[float]) -> str:
  """Returns mean and standard deviation, such as "6000 ± 100"."""
  digits = _digits(values)
  text = f"{statistics.fmean(values):.{digits}f}"
  if len(values) > 1:
    text += f" ± {statistics.stdev(values):.{digits}f}"
  return text


def _digits(values: Sequence[float]) -> int:
  """Returns the number of digits behind the decimal point of scores."""
  largest = max(map(abs, values))
  return 0 if largest >= 50 else 1 if largest >= 1 else 3


def _minutes(rows: Sequence[dict[str, str]]) -> str:
  """Returns the median minutes of a run, such as "1.3" or "1.5 (2 at once)".

  The median is over the rows with the fewest simultaneous runs.
  """
  at_once = min(int(row["at_once"]) for row in rows)
  seconds = [float(row["seconds"]) for row in rows if int(row["at_once"]) == at_once]
  suffix = f" ({at_once} at once)" if at_once > 1 else ""
  return f"{statistics.median(seconds) / 60:.1f}{suffix}"


def parse_seeds(text: str) -> list[int]:
  """Parses "0-4" or "1,3,5-7"."""
  seeds: list[int] = []
  for part in text.split(","):
    first, dash, last = part.partition("-")
    seeds += range(int(first), int(last if dash else first) + 1)
  return seeds


def format_seeds(seeds: Iterable[int]) -> str:
  """Returns "0-4" or "1,3,5-7", the inverse of `parse_seeds`."""
  ranges: list[list[int]] = []
  for seed in sorted(seeds):
    if ranges and seed == ranges[-1][-1] + 1:
      ranges[-1].append(seed)
    else:
      ranges.append([seed])
  return ",".join(f"{each[0]}-{each[-1]}" if len(each) > 1 else str(each[0]) for each in ranges)


def commit() -> str:
  """Returns the checkout's commit, marked if there are uncommitted changes."""

  def git(*args):
    return subprocess.run(
      ["git", *args], cwd=machine.REPOSITORY, capture_output=True, text=True
    ).stdout.strip()

  # Benchmarks write to docs/, which does not affect results.
  changes = git("status", "--porcelain", "--", ".", ":!docs")
  head = git("rev-parse", "--short=8", "HEAD") or "unknown"
  return f"{head}-dirty" if changes else head


def versions(folder: run_folder.RunFolder) -> str:
  """Returns the package versions at the start of a run."""
  values = yaml.safe_load((folder.path / "versions.yaml").read_text())
  return " ".join(f"{name}={value}" for name, value in values.items())


def train(job: Job, logdir: pathlib.Path, *options: str) -> run_folder.RunFolder:
  """Trains a run, or resumes it if it was interrupted.

  Args:
    job: Run to train.
    logdir: Folder that contains, or will contain, the run folder.
    options: Further arguments of `train.py`, for new and for resumed runs.

  Raises:
    ProcessFailed: If training fails.
  """
  config = job.config
  interrupted = run_folder.with_config(logdir, config)
  machine.python(
    str(machine.REPOSITORY / "train.py"),
    *(
      ["--resume", str(interrupted[0].path)]
      if interrupted
      else [*job.args, "--logdir", str(logdir)]
    ),
    *options,
  )
  folders = run_folder.with_config(logdir, config)
  assert folders, "A finished run has a run folder."
  return folders[0]


def pin_thread(index: int, at_once: int):
  """Pins the calling thread and its children to a core if `at_once` > 1."""
  if at_once > 1 and hasattr(os, "sched_setaffinity"):
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[index % len(cores)]})


def _run(job: Job, logdir: pathlib.Path, at_once: int, num_episodes: int) -> dict[str, Any]:
  """Trains and evaluates one job; returns its row."""
  sha = commit()  # Read before the run loads the code.
  # Durations depend on `at_once`, so only runs with the same value resume.
  folder = train(
    job, logdir / f"{job.title}-{at_once}_at_once", *(["--no-env-processes"] if at_once > 1 else [])
  )
  scores = evaluation.evaluate_in_child(folder, ["mean_action", "sampled"], num_episodes)
  last = (folder.path / "metrics.jsonl").read_text().splitlines()[-1]
  row = {
    **identity(job, num_episodes),
    "at_once": at_once,
    "seconds": round(json.loads(last)["seconds"]),
    "commit": sha,
    "versions": versions(folder),
  }
  for policy, score in scores.items():
    row[policy] = f"{score['mean']:.6g}"
    row[f"{policy}_std"] = f"{score['std']:.6g}"
  return row
