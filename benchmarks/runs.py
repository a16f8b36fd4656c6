"""Trains many runs, evaluates each final policy, and keeps the scores as CSV.

What `benchmarks.learning` and `benchmarks.ablation` share. Interrupted, it
goes on where it was: finished runs are in the CSV, others are resumed.
"""

from __future__ import annotations

import concurrent.futures
import csv
import itertools
import json
import os
import pathlib
import statistics
import subprocess
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

import yaml

from agents import config as config_lib
from agents.commands import settings as settings_lib
from agents.reports import published
from agents.reports import results as results_lib
from agents.training.run_folder import run_folder
from benchmarks import machine
from benchmarks import tables

_ROOT = pathlib.Path(__file__).parent.parent
_FIELDS = [
    "config", "variant", "task", "steps", "seed", "mean_action", "sampled",
    "mean_action_std", "sampled_std", "episodes", "seconds", "at_once",
    "commit", "versions", "settings"]


class Job(NamedTuple):
  """A run: a named config, and what is different."""

  name: str  # Of the config.
  steps: int
  seed: int
  variant: str = ""  # What the changes are called.
  preset: str | None = None
  changes: dict[str, Any] = {}

  @property
  def config(self) -> config_lib.Config:
    """All settings."""
    return settings_lib.of_new_run(self.name, self.preset, {
        **self.changes, "steps": self.steps, "seed": self.seed}).config

  @property
  def title(self) -> str:
    """For people and for folders."""
    name = pathlib.Path(self.name).stem
    parts = name, self.variant, str(self.steps), f"seed{self.seed}"
    return "-".join(filter(None, parts)).replace(" ", "_").replace("/", "_")

  @property
  def args(self) -> list[str]:
    """Arguments of `train.py`."""
    args = ["--config", self.name, "--steps", str(self.steps), "--seed",
            str(self.seed)]
    if self.preset:
      args += ["--preset", self.preset]
    for key, value in self.changes.items():
      args += ["--set", config_lib.setting(key, value)]
    return args


def run(jobs: Sequence[Job], logdir: pathlib.Path, results: pathlib.Path,
        at_once: int, episodes: int) -> list[dict[str, str]]:
  """Train and evaluate what is not in the results yet.

  Args:
    jobs: What to train.
    logdir: Folder for the runs.
    results: CSV file that rows are appended to.
    at_once: Runs side by side. A single one has all cores, as users' runs do;
      of several, each has one.
    episodes: Of an evaluation.
  Returns:
    All rows of the jobs.
  Raises:
    Failed: If some of them failed, after all others are done.
  """
  wanted = [_about(job, episodes) for job in jobs]
  before = read(results)
  left = [job for job, about in zip(jobs, wanted, strict=True)
          if not any(_same(row, about) for row in before)]
  print(f"{len(jobs)} runs, {len(jobs) - len(left)} of them done before.",
        flush=True)
  cores, failures = itertools.count(), []
  with concurrent.futures.ThreadPoolExecutor(
      at_once, initializer=lambda: _keep_to_a_core(next(cores), at_once)
      ) as pool:
    futures = {pool.submit(_run, job, logdir, at_once, episodes): job
               for job in left}
    try:
      for future in concurrent.futures.as_completed(futures):
        try:
          row = future.result()
        except machine.Failed as error:
          failures.append(f"{futures[future].title}: {error}")
          print(failures[-1], flush=True)
          continue
        append(results, row)
        print(f"{futures[future].title}: mean action {row['mean_action']}, "
              f"sampled {row['sampled']}", flush=True)
    except BaseException:
      pool.shutdown(wait=False, cancel_futures=True)
      raise
  if failures:
    raise machine.Failed("\n".join(
        [f"{len(failures)} of {len(jobs)} runs failed:", *failures]))
  return [row for row in read(results)
          if any(_same(row, about) for about in wanted)]


def read(path: pathlib.Path) -> list[dict[str, str]]:
  """Return the rows of a CSV file; none if there is no file."""
  if not path.exists():
    return []
  with open(path, newline="") as file:
    return list(csv.DictReader(file))


def summary(rows: Iterable[dict[str, str]]) -> str:
  """Return a table with a line for each config, variant and budget."""
  groups: dict[tuple[str, ...], list[dict[str, str]]] = {}
  for row in rows:
    key = row["config"], row["variant"], row["steps"]
    groups.setdefault(key, []).append(row)
  lines = []
  for (config, variant, steps), group in groups.items():
    cells = [spread([float(row[name]) for row in group])
             for name in ("mean_action", "sampled")]
    best = published.best(group[0]["task"], int(steps))
    beside = f"{best.score:g} ({best.source})" if best else "-"
    lines.append([
        f"{config} {variant}".strip(), f"{int(steps):,}",
        ranges(int(row["seed"]) for row in group),
        *cells, _minutes(group), beside])
  return tables.markdown(
      ["config", "steps", "seeds", "mean action", "sampled", "minutes",
       "best published"], lines)


def spread(values: Sequence[float]) -> str:
  """Return mean and standard deviation, such as "6000 ± 100"."""
  largest = max(map(abs, values))
  digits = 0 if largest >= 50 else 1 if largest >= 1 else 3
  text = f"{statistics.fmean(values):.{digits}f}"
  if len(values) > 1:
    text += f" ± {statistics.stdev(values):.{digits}f}"
  return text


def _minutes(rows: Sequence[dict[str, str]]) -> str:
  """Return how long a run takes, such as "1.3", or beside others."""
  at_once = min(int(row["at_once"]) for row in rows)
  seconds = [float(row["seconds"]) for row in rows
             if int(row["at_once"]) == at_once]
  beside = f" ({at_once} at once)" if at_once > 1 else ""
  return f"{statistics.median(seconds) / 60:.1f}{beside}"


def seeds(text: str) -> list[int]:
  """Parse "0-4" or "1,3,5-7"."""
  found: list[int] = []
  for part in text.split(","):
    first, dash, last = part.partition("-")
    found += range(int(first), int(last if dash else first) + 1)
  return found


def ranges(numbers: Iterable[int]) -> str:
  """Return "0-4" or "1,3,5-7", which `seeds` parses."""
  parts: list[list[int]] = []
  for number in sorted(numbers):
    if parts and number == parts[-1][-1] + 1:
      parts[-1].append(number)
    else:
      parts.append([number])
  return ",".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0])
                  for part in parts)


def _keep_to_a_core(number: int, at_once: int):
  """Give this thread, and the processes it starts, one core of several."""
  if at_once > 1 and hasattr(os, "sched_setaffinity"):
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[number % len(cores)]})


def _run(job: Job, logdir: pathlib.Path, at_once: int, episodes: int
         ) -> dict[str, Any]:
  """Train, or go on training, and evaluate; return a row."""
  # One that was begun under other conditions would not tell how long it takes.
  place = logdir / f"{job.title}-{at_once}_at_once"
  folder = run_folder.resumable(place, job.config)
  begin = (["--resume", str(folder.path)] if folder else
           [*job.args, "--logdir", str(place)])
  sha = commit()  # Of the code that this process loads.
  machine.python(str(_ROOT / "train.py"), *begin,
                 *(["--no-env-processes"] if at_once > 1 else []))
  folder = run_folder.resumable(place, job.config)
  assert folder, "There is a run folder after a run."
  scores = json.loads(machine.python(
      "-m", "benchmarks.evaluation", str(folder.path), "--episodes",
      str(episodes)).splitlines()[-1])
  last = (folder.path / "metrics.jsonl").read_text().splitlines()[-1]
  row = {**_about(job, episodes), "at_once": at_once,
         "seconds": round(json.loads(last)["seconds"]),
         "commit": sha, "versions": versions(folder)}
  for kind, score in scores.items():
    row[kind] = f"{score['mean']:.6g}"
    row[f"{kind}_std"] = f"{score['std']:.6g}"
  return row


def _about(job: Job, episodes: int) -> dict[str, Any]:
  """Return what a row says of a run before it is done."""
  run = results_lib.Run(job.name, pathlib.Path(), job.config, [])
  settings = {key: value for key, value in run.settings.items()
              if key != "steps"}
  return {"config": pathlib.Path(job.name).stem, "variant": job.variant,
          "task": results_lib.task(job.config.env), "steps": job.steps,
          "seed": job.seed, "episodes": episodes,
          "settings": json.dumps(settings)}


def _same(row: dict[str, Any], about: dict[str, Any]) -> bool:
  """Whether a row is of this run; settings it does not know are younger."""
  settings, wanted = (json.loads(each["settings"]) for each in (row, about))
  return all(
      str(row[name]) == str(value) for name, value in about.items()
      if name != "settings") and all(
          wanted.get(key) == value for key, value in settings.items())


def append(path: pathlib.Path, row: dict[str, Any],
           fields: Sequence[str] = tuple(_FIELDS)):
  """Append a row to a CSV file, which begins with the names of its fields."""
  new = not path.exists()
  path.parent.mkdir(parents=True, exist_ok=True)
  with open(path, "a", newline="") as file:
    writer = csv.DictWriter(file, fields, lineterminator="\n")
    if new:
      writer.writeheader()
    writer.writerow(row)


def commit() -> str:
  """Return the checkout's commit, marked if there are changes beside it."""
  def git(*args):
    done = subprocess.run(
        ["git", *args], cwd=_ROOT, capture_output=True, text=True)
    return done.stdout.strip()
  # What is written here is no change of what runs.
  changes = git("status", "--porcelain", "--", ".", ":!docs")
  head = git("rev-parse", "--short=8", "HEAD") or "unknown"
  return f"{head}-dirty" if changes else head


def versions(folder: run_folder.RunFolder) -> str:
  """Return the versions that a run began with."""
  found = yaml.safe_load((folder.path / "versions.yaml").read_text())
  return " ".join(f"{name}={value}" for name, value in found.items())
