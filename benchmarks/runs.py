"""Trains many runs, evaluates each final policy, and keeps the scores as CSV.

What `benchmarks.learning` and `benchmarks.ablation` share. Interrupted, it
goes on where it was: finished runs are in the CSV, others are resumed.
"""

from __future__ import annotations

import concurrent.futures
import csv
import json
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
from agents.training import run_folder
from benchmarks import machine
from benchmarks import tables

_ROOT = pathlib.Path(__file__).parent.parent
_FIELDS = [
    "config", "variant", "task", "steps", "seed", "mean_action", "sampled",
    "mean_action_std", "sampled_std", "episodes", "seconds", "at_once",
    "commit", "versions", "settings"]
# One core for each run: its environments in its own process, no other thread.
_ONE_CORE = {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}


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
  def args(self) -> list[str]:
    """Arguments of `train.py`."""
    args = ["--config", self.name, "--steps", str(self.steps), "--seed",
            str(self.seed)]
    if self.preset:
      args += ["--preset", self.preset]
    for key, value in self.changes.items():
      args += ["--set", f"{key}={json.dumps(value)}"]
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
  """
  before = {_key(row) for row in read(results)}
  left = [job for job in jobs if _key(_about(job)) not in before]
  print(f"{len(jobs)} runs, {len(jobs) - len(left)} of them done before.",
        flush=True)
  with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
    futures = [pool.submit(_run, job, logdir, at_once, episodes)
               for job in left]
    try:
      for future in concurrent.futures.as_completed(futures):
        row = future.result()
        _append(results, row)
        print(f"{row['config']} {row['variant']} seed {row['seed']}: mean "
              f"action {row['mean_action']}, sampled {row['sampled']}",
              flush=True)
    except BaseException:
      for future in futures:
        future.cancel()
      raise
  wanted = {_key(_about(job)) for job in jobs}
  return [row for row in read(results) if _key(row) in wanted]


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
    key = row["config"], row["variant"], row["steps"], row["settings"]
    groups.setdefault(key, []).append(row)
  lines = []
  for (config, variant, steps, _), group in groups.items():
    cells = [spread([float(row[name]) for row in group])
             for name in ("mean_action", "sampled")]
    best = published.best(group[0]["task"], int(steps))
    beside = f"{best.score:g} ({best.source})" if best else "-"
    lines.append([
        f"{config} {variant}".strip(), f"{int(steps):,}", str(len(group)),
        *cells, beside])
  return tables.markdown(
      ["config", "steps", "seeds", "mean action", "sampled", "best published"],
      lines)


def spread(values: Sequence[float]) -> str:
  """Return mean and standard deviation, such as "6000 ± 100"."""
  digits = 0 if max(map(abs, values)) >= 50 else 1
  text = f"{statistics.fmean(values):.{digits}f}"
  if len(values) > 1:
    text += f" ± {statistics.stdev(values):.{digits}f}"
  return text


def seeds(text: str) -> list[int]:
  """Parse "0-4" or "1,3,5-7"."""
  found: list[int] = []
  for part in text.split(","):
    first, dash, last = part.partition("-")
    found += range(int(first), int(last if dash else first) + 1)
  return found


def _run(job: Job, logdir: pathlib.Path, at_once: int, episodes: int
         ) -> dict[str, Any]:
  """Train, or go on training, and evaluate; return a row."""
  name = "-".join(filter(None, (job.name, job.variant.replace(" ", "_"),
                                str(job.steps), f"seed{job.seed}")))
  alone = at_once == 1
  variables = None if alone else _ONE_CORE
  flags = [] if alone else ["--noenv_processes"]
  folder = _find(logdir / name, job.config)
  begin = (["--resume", str(folder.path)] if folder else
           [*job.args, "--logdir", str(logdir / name)])
  machine.python(
      str(_ROOT / "train.py"), *begin, *flags, variables=variables)
  folder = _find(logdir / name, job.config)
  assert folder, "There is a run folder after a run."
  scores = json.loads(machine.python(
      "-m", "benchmarks.evaluation", str(folder.path), "--episodes",
      str(episodes), variables=variables).splitlines()[-1])
  last = (folder.path / "metrics.jsonl").read_text().splitlines()[-1]
  row = {**_about(job), "episodes": episodes, "at_once": at_once,
         "seconds": round(json.loads(last)["seconds"]), "commit": _commit(),
         "versions": _versions(folder)}
  for kind, score in scores.items():
    row[kind] = f"{score['mean']:.6g}"
    row[f"{kind}_std"] = f"{score['std']:.6g}"
  return row


def _find(logdir: pathlib.Path, config: config_lib.Config
          ) -> run_folder.RunFolder | None:
  """Return the run with this very config that can be gone on with."""
  for path in sorted(logdir.glob("*/checkpoints/*.npz")):
    folder = run_folder.RunFolder(path.parent.parent)
    if folder.config == config:
      return folder
  return None


def _about(job: Job) -> dict[str, Any]:
  config = job.config
  usual = config_lib.flat(config_lib.Config())
  changed = [f"{key}={json.dumps(value)}" for key, value in
             config_lib.flat(config).items() if usual.get(key) != value
             and key not in ("steps", "seed", "env.id")]
  return {"config": job.name, "variant": job.variant, "task": config.env.id,
          "steps": job.steps, "seed": job.seed, "settings": " ".join(changed)}


def _key(row: dict[str, Any]) -> tuple[str, ...]:
  return tuple(str(row[name]) for name in (
      "config", "variant", "task", "steps", "seed", "settings"))


def _append(path: pathlib.Path, row: dict[str, Any]):
  new = not path.exists()
  path.parent.mkdir(parents=True, exist_ok=True)
  with open(path, "a", newline="") as file:
    writer = csv.DictWriter(file, _FIELDS, lineterminator="\n")
    if new:
      writer.writeheader()
    writer.writerow(row)


def _commit() -> str:
  """Return the checkout's commit, marked if there are changes beside it."""
  done = subprocess.run(
      ["git", "describe", "--always", "--abbrev=8", "--dirty"], cwd=_ROOT,
      capture_output=True, text=True)
  return done.stdout.strip() or "unknown"


def _versions(folder: run_folder.RunFolder) -> str:
  versions = yaml.safe_load((folder.path / "versions.yaml").read_text())
  return " ".join(f"{name}={value}" for name, value in versions.items())
