"""Reads arrays of .npz files that another person may have written."""

import contextlib
import io
import math
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any

import numpy as np

_CHUNK_BYTES = 2**20
# Characters of the description of an array. NumPy's limit of 10,000 is too low
# for observations with hundreds of named parts.
_MAX_HEADER_SIZE = 10**6

# Receives the number of bytes of each array by name, before arrays are read.
# Raises an error if an array is too large.
CheckSizes = Callable[[Mapping[str, int]], None]


def read(
  path: str | os.PathLike,
  check: CheckSizes = lambda sizes: None,
  select: Callable[[str], bool] = lambda name: True,
) -> dict[str, np.ndarray]:
  """Reads arrays of a file; needs at most the memory of the file.

  Args:
    path: File that `numpy.savez` has written, without compression.
    check: See `CheckSizes`.
    select: Returns whether to read the array of a name.

  Returns:
    Arrays by name.

  Raises:
    OSError: If the file cannot be read.
    ValueError: If the file has another format, or its arrays could be larger
      than the file.
    zipfile.BadZipFile: If the file is damaged.
  """
  with _opened(path) as archive:
    members = _members(archive)
    check({name: member.file_size for name, member in members.items()})
    arrays = {}
    for name, member in members.items():
      if select(name):
        with archive.open(member) as stream:
          arrays[name] = np.lib.format.read_array(
            stream, allow_pickle=False, max_header_size=_MAX_HEADER_SIZE
          )
    return arrays


def verify(path: str | os.PathLike) -> None:
  """Checks the format and all checksums of a file; needs little memory.

  Args:
    path: See `read`.

  Raises:
    Exception: See `read`.
  """
  with _opened(path) as archive:
    for member in _members(archive).values():
      with archive.open(member) as stream:
        while stream.read(_CHUNK_BYTES):
          pass


class _File(io.FileIO):
  """File that keeps the error of a failed read."""

  error: OSError | None = None

  def readinto(self, buffer: Any) -> int | None:
    with self._kept_error():
      return super().readinto(buffer)

  def readall(self) -> bytes:
    with self._kept_error():
      return super().readall()

  @contextlib.contextmanager
  def _kept_error(self) -> Iterator[None]:
    try:
      yield
    except OSError as error:
      self.error = error
      raise


@contextlib.contextmanager
def _opened(path: str | os.PathLike) -> Iterator[zipfile.ZipFile]:
  """Opens an archive; raises errors of the disk, which are not damage."""
  with _File(path) as file:
    try:
      with zipfile.ZipFile(io.BufferedReader(file)) as archive:
        yield archive
    except zipfile.BadZipFile:
      if file.error:
        raise file.error from None
      raise


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
  """Returns the arrays of an archive by name, after a check of their sizes."""
  assert archive.fp
  size = archive.fp.seek(0, os.SEEK_END)
  members = archive.infolist()
  # Compressed or overlapping arrays would need more memory than the file.
  if sum(member.file_size for member in members) > size:
    raise ValueError("its arrays are larger than the file")
  for member in members:
    with archive.open(member) as stream:
      _check_header(stream, member.file_size, size)
  return {member.filename.removesuffix(".npy"): member for member in members}


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
  shape, _, dtype = read_header(stream, max_header_size=_MAX_HEADER_SIZE)
  if dtype.hasobject:
    raise ValueError(f"arrays of type {dtype} are not supported")
  # An array without bytes can have dimensions of any size.
  if (
    stream.tell() + dtype.itemsize * math.prod(shape) != num_bytes
    or max((*shape, math.prod(shape))) > max_dimension
  ):
    raise ValueError(f"an array of shape {shape} does not fit into its {num_bytes:,} bytes")
