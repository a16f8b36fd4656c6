"""Writes run folders like those of training."""

import json

from agents import config as config_lib


def make(path, scores, changes=None, sampled=(), warnings=()):
  """Writes a run folder with a report every 100 steps and 36 seconds.

  Args:
    path: Path of the folder; its name is <time>-<config>.
    scores: Score of each evaluation; None if no episode ended.
    changes: Changed settings by dotted key.
    sampled: Score of each training report; None if no episode ended.
    warnings: Warnings in the last training report.

  Returns:
    Path of the folder.
  """
  path.mkdir(parents=True)
  config = config_lib.Config().override(
    {"env.id": "HalfCheetah-v5", "steps": 100 * len(scores), **(changes or {})}
  )
  (path / "config.yaml").write_text(config_lib.dump(config))
  rows = []
  for phase, values in (("train", sampled), ("eval", scores)):
    for number, score in enumerate(values, 1):
      row = {
        "phase": phase,
        "step": 100 * number,
        "seconds": 36.0 * number,
        "episodes": 0 if score is None else 2,
        "return_mean": score,
      }
      if phase == "train":
        row |= {
          "steps_per_second": 1000.0,
          "step_limit": 2000.0,
          "warnings": (list(warnings) if number == len(values) else []),
        }
        row |= {
          f"{name}_share": share
          for name, share in (
            ("stepping", 0.5),
            ("crossing", 0.1),
            ("inference", 0.1),
            ("learning", 0.2),
            ("evaluation", 0.05),
            ("compiling", 0.0),
            ("rest", 0.05),
          )
        }
      rows.append(row)
  rows.sort(key=lambda row: (row["step"], row["phase"] == "eval"))
  (path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
  return path
