"""Writes the folder of an exported policy, which other programs can run."""

import json
import pathlib
import shutil
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np

from agents import config as config_lib
from agents import errors
from agents.export import evaluate, formats, readme, signature, verify
from agents.export import policy as policy_lib
from agents.export.formats import base
from agents.training.monitoring import quiet_imports
from agents.training.run_folder import run_folder


def write(
  folder: run_folder.RunFolder,
  checkpoint: pathlib.Path,
  names: Sequence[str],
  sampled: bool,
  out: pathlib.Path,
) -> list[pathlib.Path]:
  """Exports a policy and compares each file with the policy in training.

  Args:
    folder: Run folder.
    checkpoint: Path of the checkpoint with the policy.
    names: Names of the formats.
    sampled: Whether the policy samples actions; otherwise it takes the mean
      action.
    out: Path of the new folder. It is created after all formats are written.

  Returns:
    Path of the policy in each format.

  Raises:
    ConfigError: If a package is missing, or a format does not support the
      policy.
    RunError: If a conversion fails, or if an exported policy differs from the
      policy in training. The folder does not contain policies that differ.
  """
  policy = policy_lib.load(folder, checkpoint, sampled)
  file_formats = {name: formats.load(name) for name in names}
  for file_format in file_formats.values():
    file_format.check(policy)
  out.parent.mkdir(parents=True, exist_ok=True)
  recorder = verify.CallRecorder()
  returns = evaluate.evaluate(policy, evaluate.training_function(policy), recorder.add)
  print(
    f"{policy.config.env.id} after {policy.step:,} steps, "
    f"{len(returns)} episodes of the policy in training: return "
    f"{np.mean(returns):.1f}",
    flush=True,
  )
  with tempfile.TemporaryDirectory() as scratch:
    passed = [
      name
      for name in names
      if _write(policy, file_formats[name], pathlib.Path(scratch, name), recorder.calls, returns)
    ]
    out.mkdir(parents=True, exist_ok=True)
    for name in passed:
      shutil.copytree(pathlib.Path(scratch, name), out, dirs_exist_ok=True)
  (out / "README.md").write_text(readme.text(policy, passed))
  (out / "signature.json").write_text(json.dumps(_signature(policy, sampled), indent=2) + "\n")
  print(f"Written: {out}")
  if differing := [name for name in names if name not in passed]:
    raise errors.RunError(
      f"{', '.join(differing)}: not exported, because the outputs differ "
      f"from the policy in training by more than {verify.TOLERANCE}, or the "
      "returns differ."
    )
  return [out / file_format.file for file_format in file_formats.values()]


def write_npz(
  folder: run_folder.RunFolder, checkpoint: pathlib.Path, out: pathlib.Path
) -> pathlib.Path:
  """Writes only the file of the mean action for NumPy; see `write`.

  Args:
    folder: Run folder.
    checkpoint: Path of the checkpoint with the policy.
    out: Existing folder for policy.npz.

  Returns:
    Path of policy.npz.
  """
  with tempfile.TemporaryDirectory() as scratch:
    (path,) = write(folder, checkpoint, ["npz"], False, pathlib.Path(scratch, "policy"))
    return pathlib.Path(shutil.copy(path, out))


def _signature(policy: policy_lib.ExportablePolicy, sampled: bool) -> dict[str, Any]:
  """Returns the contents of signature.json."""
  return {
    "environment": policy.config.env.id,
    "step": policy.step,
    "actions": "sampled" if sampled else "mean",
    "around": readme.environment_settings(policy.config.env),
    "inputs": signature.as_dicts(policy.inputs),
    "outputs": signature.as_dicts(policy.outputs),
  }


def _write(
  policy: policy_lib.ExportablePolicy,
  file_format: base.ExportFormat,
  folder: pathlib.Path,
  calls: Sequence[policy_lib.Arrays],
  returns: Sequence[float],
) -> bool:
  """Writes one format, prints a comparison, returns whether the format passed.

  Args:
    policy: Policy to export.
    file_format: Format to write.
    folder: Path of a new folder for the files of the format.
    calls: Recorded calls of the policy in training.
    returns: Returns of the policy in training.
  """
  folder.mkdir()
  path = folder / file_format.file
  try:
    with quiet_imports.quiet_imports():
      file_format.write(policy, path)
      function = file_format.load(path)
      comparison = verify.compare(policy, function, calls)
  except (config_lib.ConfigError, errors.RunError):
    raise
  except Exception as error:
    raise errors.RunError(
      f"{file_format.file}: The converter does not support this policy: "
      f"{type(error).__name__}: {error}"
    ) from error
  passed = comparison.passed(returns)
  choices = comparison.other_choices
  print(
    f"{file_format.file:<14} "
    f"largest difference {comparison.difference:.1e}"
    f"{f', other choices {choices:.2%}' if choices else ''}, "
    f"return {np.mean(comparison.returns):.1f}, "
    f"{comparison.milliseconds:.3f} ms an action"
    f"{'' if passed else '  DIFFERS'}",
    flush=True,
  )
  return passed
