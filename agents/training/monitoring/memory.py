"""Resident memory of the training process and of its workers."""

import contextlib
import os
import pathlib
import resource
import subprocess
from collections.abc import Sequence

_PROC = pathlib.Path("/proc")


def usage(worker_pids: Sequence[int]) -> dict[str, float | None]:
  """Returns the memory of this process and the sum over its workers.

  Args:
    worker_pids: Process ids of the workers.

  Returns:
    Fields of `metrics.jsonl`, in MB (10^6 bytes). None if there are no workers,
    or if the operating system does not tell the memory.
  """
  return {"trainer_memory": resident([os.getpid()]), "worker_memory": resident(worker_pids)}


def resident(pids: Sequence[int]) -> float | None:
  """Returns the sum of the resident memory of processes.

  Pages that several processes share count in each of them.

  Args:
    pids: Process ids. Processes that have ended do not count.

  Returns:
    Memory in MB, or None if it is unknown for all processes.
  """
  sizes = _from_proc(pids) if _PROC.joinpath("self/statm").exists() else _from_ps(pids)
  return round(sum(sizes) / 1e6, 1) if sizes else None


def _from_proc(pids: Sequence[int]) -> list[int]:
  """Returns bytes from the files in /proc, which Linux has."""
  sizes = []
  for pid in pids:
    with contextlib.suppress(OSError):
      pages = int((_PROC / str(pid) / "statm").read_text().split()[1])
      sizes.append(pages * resource.getpagesize())
  return sizes


def _from_ps(pids: Sequence[int]) -> list[int]:
  """Returns bytes from the command `ps`, which macOS and Linux have."""
  if not pids:
    return []
  command = ["ps", "-o", "rss=", "-p", ",".join(map(str, pids))]
  try:
    output = subprocess.run(command, capture_output=True, text=True).stdout
  except OSError:
    return []
  return [1024 * int(size) for size in output.split()]
