"""Digest of a policy, and the properties of a machine that decide its bits."""

import hashlib
import json
import os
import pathlib
import platform as platform_lib

import numpy as np

from agents.environments.workers import pool
from agents.training.run_folder import checkpoint

# Environment variables that change compiled code or the use of threads.
_VARIABLES = ("TF_NUM_INTRAOP_THREADS", "XLA_FLAGS")


def variables(path: pathlib.Path) -> dict[str, np.ndarray]:
  """Returns the variables of a policy: all but those of the optimizer.

  Args:
    path: Checkpoint file.

  Returns:
    Arrays by name.

  Raises:
    RunError: If the file cannot be read.
  """
  arrays = checkpoint.load_variables(path, lambda sizes: None)
  return {
    name: array
    for name, array in arrays.items()
    if not name.startswith(checkpoint.OPTIMIZER_PREFIX)
  }


def digest(arrays: dict[str, np.ndarray]) -> str:
  """Returns the SHA-256 digest of arrays, in the order of their names.

  Args:
    arrays: Arrays by name. The digest covers names, types, shapes and bits.
  """
  sha = hashlib.sha256()
  for name, array in sorted(arrays.items()):
    sha.update(json.dumps([name, array.dtype.str, array.shape]).encode())
    sha.update(np.ascontiguousarray(array).tobytes())
  return sha.hexdigest()


def platform() -> dict[str, str]:
  """Returns the properties of this machine that decide the bits of results.

  Compilers and libraries select their code by the instructions of the
  processor, and divide work by the number of cores. `provenance.versions`
  contains the versions of packages.
  """
  processor = _processor()
  instructions = " ".join(sorted((processor.get("flags") or processor.get("Features", "")).split()))
  return {
    "system": platform_lib.system(),
    "c_library": " ".join(platform_lib.libc_ver()),
    "processor": processor.get("model name") or platform_lib.processor(),
    "instructions": hashlib.sha256(instructions.encode()).hexdigest()[:16],
    "cores": str(pool.num_cores()),
    **{name: os.environ.get(name, "default") for name in _VARIABLES},
  }


def _processor() -> dict[str, str]:
  """Returns the lines about the first processor of Linux, or {}."""
  try:
    text = pathlib.Path("/proc/cpuinfo").read_text().partition("\n\n")[0]
  except OSError:  # Not on macOS.
    return {}
  lines = (line.partition(":") for line in text.splitlines())
  return {name.strip(): value.strip() for name, _, value in lines}
