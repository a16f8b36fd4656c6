"""Reads arrays of .npz files that another person may have written."""

import io
import math
import os
import pathlib
import zipfile
from typing import IO

import numpy as np


def read(path: str | os.PathLike) -> dict[str, np.ndarray]:
  """Reads all arrays of a file; needs at most twice the memory of the file.

  Args:
    path: File that `numpy.savez` has written, without compression.

  Returns:
    Arrays by name.

  Raises:
    OSError: If the file cannot be read.
    ValueError: If the file has another format, or its arrays could be larger
      than the file.
    zipfile.BadZipFile: If the file is damaged.
  """
  # `zipfile` would report an error of the disk as a damaged file.
  content = pathlib.Path(path).read_bytes()
  size = len(content)
  with zipfile.ZipFile(io.BytesIO(content)) as archive:
    # Compressed or overlapping arrays would need more memory than the file.
    if sum(member.file_size for member in archive.infolist()) > size:
      raise ValueError("its arrays are larger than the file")
    for member in archive.infolist():
      with archive.open(member) as stream:
        _check_header(stream, member.file_size, size)
  with np.load(io.BytesIO(content), allow_pickle=False) as file:
    return {name: file[name] for name in file.files}


def _check_header(stream: IO[bytes], num_bytes: int, max_dimension: int) -> None:
  """Raises ValueError unless a header describes the bytes that follow it."""
  version = np.lib.format.read_magic(stream)
  # Versions 2 and 3 differ only in the encoding of the names of fields.
  read_header = {
    1: np.lib.format.read_array_header_1_0,
    2: np.lib.format.read_array_header_2_0,
    3: np.lib.format.read_array_header_2_0,
  }.get(version[0])
  if read_header is None:
    raise ValueError(f"arrays of format {version} are not supported")
  shape, _, dtype = read_header(stream)
  if dtype.hasobject:
    raise ValueError(f"arrays of type {dtype} are not supported")
  # An array without bytes can have dimensions of any size.
  if (
    stream.tell() + dtype.itemsize * math.prod(shape) != num_bytes
    or max((*shape, math.prod(shape))) > max_dimension
  ):
    raise ValueError(f"an array of shape {shape} does not fit into its {num_bytes:,} bytes")
