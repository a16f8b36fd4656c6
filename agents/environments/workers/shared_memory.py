"""Bytes that this process shares with its workers."""

from __future__ import annotations

import mmap
import os
import sys
import tempfile

import numpy as np


def create(num_bytes: int) -> int:
  """Return the descriptor of new zeroed memory that no path leads to."""
  if sys.platform == "linux":
    descriptor = os.memfd_create("agents")
  else:
    with tempfile.TemporaryFile() as file:
      descriptor = os.dup(file.fileno())
  os.ftruncate(descriptor, num_bytes)
  return descriptor


def attach(descriptor: int) -> np.ndarray:
  """Map the memory and close the descriptor.

  Returns:
    Array of shape [num_bytes] and type uint8; it keeps the memory alive.
  """
  shared = mmap.mmap(descriptor, os.fstat(descriptor).st_size)
  os.close(descriptor)
  return np.frombuffer(shared, np.uint8)
