"""Memory that EnvPool needs, measured before a run allocates it.

EnvPool loads the model of a robot with its meshes for every environment.
"""

import contextlib
import json
import pathlib
import resource
import subprocess
import sys

from agents import config as config_lib
from agents.environments.making import envpool_env
from agents.environments.workers import process

_SAMPLE = 8  # Environments of the measurement.
_MATERIAL = 1e9  # Bytes below which the memory is not worth a note.


def check(config: config_lib.Config) -> list[str]:
  """Measures the memory of an environment, and compares that of all.

  Args:
    config: Config of the run.

  Returns:
    A note if the training environments need more than one GB.

  Raises:
    ConfigError: If the environments need more memory than is available.
  """
  return compare(config, measure(config.env, config.num_envs), available())


def compare(config: config_lib.Config, size: float, free: float | None) -> list[str]:
  """Compares the memory of the training environments with the available memory.

  Args:
    config: Config of the run.
    size: Bytes of one environment.
    free: Available bytes; None if they are unknown.

  Returns:
    See `check`.

  Raises:
    ConfigError: See `check`.
  """
  total = size * config.num_envs
  if total < _MATERIAL:
    return []
  text = (
    f"{config.num_envs} environments of {config.env.id} need about {total / 1e9:.1f} GB "
    f"(measured: {size / 1e6:.0f} MB each)"
  )
  if free is None:
    return [f"{text}."]
  if total > free:
    raise config_lib.ConfigError(
      f"env.backend=envpool: {text}, but this machine has {free / 1e9:.1f} GB available. Set "
      f"num_envs to at most {int(free / size)}."
    )
  return [f"{text}; this machine has {free / 1e9:.1f} GB available."]


def measure(config: config_lib.Env, num_envs: int) -> float:
  """Returns the memory of one environment in bytes, measured in a new process.

  Args:
    config: Section `env` of the config.
    num_envs: Number of environments of the run. If their memory is certainly
      not material, the result is an upper bound.

  Raises:
    ConfigError: If the environments cannot be built.
  """
  result = subprocess.run(
    process.python(f"import {__name__}; {__name__}.main()"),
    input=json.dumps([config.id, config.kwargs, config.max_length, num_envs]),
    capture_output=True,
    text=True,
  )
  if result.returncode:
    raise config_lib.ConfigError(
      f"env.backend=envpool: {_SAMPLE} environments of {config.id} can't be built:\n{result.stderr}"
    )
  return float(result.stdout.split()[-1])


def main() -> None:
  """Prints the result of `measure`; standard input contains its arguments."""
  env_id, kwargs, max_length, num_envs = json.load(sys.stdin)
  config = config_lib.Env(env_id, kwargs, max_length, backend="envpool")
  envpool_env.spec(config)  # Imports the library of the task.
  pools = []
  # The first environment also loads data that all environments share.
  for size in (1, _SAMPLE):
    before = _resident()
    pools.append(envpool_env.build(config, range(size)))
    pools[-1].reset()
    mean = (_resident() - before) / size
    if mean * num_envs < _MATERIAL:
      break
  print(mean)


def available() -> float | None:
  """Returns the available memory in bytes, or None if it is unknown."""
  sizes = []
  with contextlib.suppress(OSError):
    lines = pathlib.Path("/proc/meminfo").read_text().splitlines()
    sizes = [1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
  with contextlib.suppress(OSError, ValueError):  # "max" means no limit.
    sizes.append(float(int(pathlib.Path("/sys/fs/cgroup/memory.max").read_text())))
  return min(sizes, default=None)


def _resident() -> int:
  return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
