"""Writes a folder with a policy that other programs can run."""

from __future__ import annotations

import json
import pathlib
import shutil
import tempfile
from collections.abc import Sequence

import numpy as np

from agents import config as config_lib
from agents import errors
from agents.export import formats
from agents.export import policy as policy_lib
from agents.export import readme
from agents.export import verify
from agents.training.monitoring import quiet_imports
from agents.training.run_folder import run_folder


def write(folder: run_folder.RunFolder, checkpoint: pathlib.Path,
          names: Sequence[str], sampled: bool, out: pathlib.Path):
  """Write a policy in some formats, each compared with that in training.

  Args:
    folder: Of the run.
    checkpoint: Whose policy it is.
    names: Of the formats.
    sampled: Whether actions are sampled, or the mean ones.
    out: Made once all of it is there.
  Raises:
    ConfigError: If something is not installed, or can't be written so.
    RunError: If one differs, so that it was left out.
  """
  policy = policy_lib.load(folder, checkpoint, sampled)
  formats.check(names, policy)
  out.parent.mkdir(parents=True, exist_ok=True)
  recorded = verify.Recorded()
  expected = verify.play(policy, verify.in_training(policy), recorded.add)
  print(f"{policy.config.env.id} after {policy.step:,} steps, "
        f"{len(expected)} episodes in training's graph: return "
        f"{np.mean(expected):.1f}", flush=True)
  with tempfile.TemporaryDirectory() as scratch:
    good = [name for name in names if _write(
        policy, formats.FORMATS[name], pathlib.Path(scratch, name),
        recorded.steps, expected)]
    out.mkdir(parents=True, exist_ok=True)
    for name in good:
      for file in pathlib.Path(scratch, name).iterdir():
        shutil.move(file, out / file.name)
  (out / "README.md").write_text(readme.text(policy, good))
  (out / "signature.json").write_text(json.dumps({
      "environment": policy.config.env.id, "step": policy.step,
      "actions": "sampled" if sampled else "mean",
      "around": readme.around(policy.config.env),
      "inputs": {name: x._asdict() for name, x in policy.inputs.items()},
      "outputs": {name: x._asdict() for name, x in policy.outputs.items()}},
      indent=2) + "\n")
  print(f"Written: {out}")
  if differing := [name for name in names if name not in good]:
    raise errors.RunError(
        f"{', '.join(differing)}: not the policy that was trained, by more "
        f"than {verify.TOLERANCE} or in what it earns, and so left out.")


def _write(policy: policy_lib.Policy, one: formats.Format,
           folder: pathlib.Path, steps: Sequence[verify.Step],
           expected: Sequence[float]) -> bool:
  """Write one format, tell how it differs, and return whether it doesn't."""
  folder.mkdir()
  try:
    with quiet_imports.quiet_imports():
      one.write(policy, folder / one.file)
      run = one.load(folder / one.file)
    found = verify.examine(policy, run, steps)
  except (config_lib.ConfigError, errors.RunError):
    raise
  except Exception as error:
    raise errors.RunError(
        f"{one.file}: what does the conversion can't do this policy: "
        f"{type(error).__name__}: {error}") from error
  same = found.same(expected)
  choices = f", other choices {found.choices:.2%}" if found.choices else ""
  print(f"{one.file:<14} largest difference {found.difference:.1e}{choices}, "
        f"return {np.mean(found.returns):.1f}, {found.milliseconds:.3f} ms an "
        f"action{'' if same else '  DIFFERS'}", flush=True)
  return same
