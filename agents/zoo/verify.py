"""Verifies an entry of the zoo by training its policy again."""

import pathlib
from typing import NamedTuple

import numpy as np

from agents.training.run_folder import checkpoint, provenance, run_folder
from agents.zoo import entries, fingerprint, score

_MAX_CHANGES = 6  # Further changes are only counted.


class Verdict(NamedTuple):
  """Result of a comparison."""

  verified: bool
  text: str  # Compared values, and the reason of the result.


def compare(path: pathlib.Path, run: run_folder.RunFolder) -> Verdict:
  """Compares an entry with a run that has trained the policy again.

  Equal digests verify the entry on any machine. If machine, packages and code
  are those of the entry, different digests refute the entry. Otherwise the
  score of the run must lie in the interval of the entry.

  Args:
    path: Folder of the entry.
    run: Finished run with the settings of the entry.

  Raises:
    RunError: If a checkpoint cannot be read.
  """
  entry = entries.read(path)
  newest = checkpoint.newest_readable(run.checkpoints)
  found = fingerprint.digest(fingerprint.variables(newest))
  lines = [f"digest: {found}", f"expected: {entry.digest}"]

  def verdict(verified: bool, reason: str) -> Verdict:
    return Verdict(
      verified, "\n".join([*lines, f"{'V' if verified else 'Not v'}erified: {reason}"])
    )

  if found == entry.digest:
    return verdict(True, "all final variables have equal bits.")
  changes = run_folder.find(path).changes() + provenance.differences(
    entry.platform, fingerprint.platform()
  )
  if not changes:
    return verdict(
      False, "the bits differ, although machine, packages and code are those of the entry."
    )
  lines.append(f"These differ, so other bits are possible: {_shortened(changes)}.")
  if not entry.interval:
    return verdict(
      False, "the entry has no interval of scores over seeds. Verify it where it was trained."
    )
  mean, (low, high) = float(np.mean(score.evaluate(run, newest))), entry.interval
  lines.append(
    f"score: {mean:.1f} in {score.NUM_EPISODES} episodes\n"
    f"expected: in [{low:.1f}, {high:.1f}], from {len(entry.seed_scores)} seeds"
  )
  inside = low <= mean <= high
  return verdict(inside, f"the score is {'in' if inside else 'outside of'} the interval.")


def _shortened(changes: list[str]) -> str:
  more = len(changes) - _MAX_CHANGES
  return ", ".join(changes[:_MAX_CHANGES]) + (f" and {more} more" if more > 0 else "")
