"""Cache of compiled updates, which later runs load instead of compiling.

XLA takes seconds to compile an update. The cache contains its machine code, so
the results of a run are the same with and without the cache.
"""

import contextlib
import hashlib
import importlib.util
import json
import os
import pathlib
import platform
import tempfile
from collections.abc import Iterator

from agents.environments.workers import pool
from agents.training.run_folder import atomic_write

_MAX_FILES = 30  # About 2 MB each. Each start reads all of them.
_FLAGS = "TF_XLA_FLAGS"
# Environment variables that change the machine code or the division of the work
# between threads.
_VARIABLES = ("XLA_FLAGS", "TF_NUM_INTRAOP_THREADS", "TF_ENABLE_ONEDNN_OPTS")


@contextlib.contextmanager
def compile_cache() -> Iterator[None]:
  """Context manager in which TensorFlow uses the cache of this user.

  TensorFlow writes cache files in place, and fails if it reads an unfinished or
  damaged file. Therefore each process has a folder of its own, with links to
  the shared files whose digest is correct. At the end of the context, new files
  are copied to the shared folder.

  The context must begin before TensorFlow compiles its first function. Without
  a writable home folder, and if `TF_XLA_FLAGS` selects another cache, the
  context has no effect.

  Yields:
    None.
  """
  flags = os.environ.get(_FLAGS, "")
  shared = _folder()
  with contextlib.suppress(OSError):
    shared.mkdir(parents=True, exist_ok=True)
  if not shared.is_dir() or "persistent_cache" in flags:
    yield
    return
  with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
    own = pathlib.Path(folder)
    _link(shared, own)
    os.environ[_FLAGS] = f"{flags} --tf_xla_persistent_cache_directory={own}"
    try:
      yield
    finally:
      os.environ[_FLAGS] = flags
      _publish(own, shared)


def _link(shared: pathlib.Path, own: pathlib.Path) -> None:
  """Links the shared files if the digest in their suffix is correct."""
  with contextlib.suppress(OSError):
    for path in _files(shared):
      if path.suffix[1:] != hashlib.sha256(path.read_bytes()).hexdigest():
        path.unlink()
      elif not (own / path.stem).exists():
        (own / path.stem).symlink_to(path)


def _publish(own: pathlib.Path, shared: pathlib.Path) -> None:
  """Copies new files to the shared folder, and deletes its oldest files."""
  with contextlib.suppress(OSError, atomic_write.WriteError):
    for path in own.iterdir():
      if not path.is_symlink():
        content = path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        with atomic_write.open_file(shared / f"{path.name}.{digest}") as file:
          file.write(content)
    for path in _files(shared)[:-_MAX_FILES]:
      path.unlink()


def _files(shared: pathlib.Path) -> list[pathlib.Path]:
  """Returns the complete files, the oldest first."""
  paths = [path for path in shared.iterdir() if path.suffix != ".tmp"]
  return sorted(paths, key=lambda path: path.stat().st_mtime_ns)


def _folder() -> pathlib.Path:
  """Returns the folder for the programs of this processor and TensorFlow."""
  try:
    text = pathlib.Path("/proc/cpuinfo").read_text().partition("\n\n")[0]
    processor = [line for line in text.splitlines() if "MHz" not in line]
  except OSError:  # Not on macOS.
    processor = [platform.processor()]
  package = importlib.util.find_spec("tensorflow")
  key = [
    package and package.origin and [package.origin, os.stat(package.origin).st_mtime_ns],
    processor,
    pool.num_cores(),
    *map(os.environ.get, _VARIABLES),
  ]
  digest = hashlib.sha256(json.dumps(key).encode()).hexdigest()[:16]
  cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
  return pathlib.Path(cache).expanduser() / "batched-ppo" / f"compiled-{digest}"
