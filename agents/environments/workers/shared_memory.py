"""Memory that the trainer shares with its workers."""

import mmap
import os
import sys
import tempfile

import numpy as np


def create(num_bytes: int) -> int:
  """Allocates zeroed memory without a path in the file system.

  Args:
    num_bytes: Size in bytes.

  Returns:
    File descriptor of the memory.
  """
  if sys.platform == "linux":
    descriptor = os.memfd_create("agents")
  else:
    with tempfile.TemporaryFile() as file:
      descriptor = os.dup(file.fileno())
  os.ftruncate(descriptor, num_bytes)
  return descriptor


def attach(descriptor: int) -> np.ndarray:
  """Maps shared memory into this process and closes the descriptor.

  Args:
    descriptor: File descriptor from `create`.

  Returns:
    Array of shape [num_bytes] and type uint8, which keeps the memory mapped.
  """
  shared = mmap.mmap(descriptor, os.fstat(descriptor).st_size)
  os.close(descriptor)
  return np.frombuffer(shared, np.uint8)
