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

_MAX_FILES = 100  # About 2 MB each.
_FLAGS = "TF_XLA_FLAGS"
# Environment variables that change the machine code or the division of the work
# between threads.
_VARIABLES = ("XLA_FLAGS", "TF_NUM_INTRAOP_THREADS", "TF_ENABLE_ONEDNN_OPTS")


@contextlib.contextmanager
def compile_cache() -> Iterator[None]:
  """Context manager in which TensorFlow uses the cache of this user.

  TensorFlow writes cache files in place, so a process that reads a file could
  receive only a part of it. Therefore each process has a folder of its own,
  with links to the shared files. At the end of the context, new files are
  copied to the shared folder.

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
    for path in shared.glob("*.pb"):
      (own / path.name).symlink_to(path)
    os.environ[_FLAGS] = f"{flags} --tf_xla_persistent_cache_directory={own}"
    try:
      yield
    finally:
      os.environ[_FLAGS] = flags
      _publish(own, shared)


def _publish(own: pathlib.Path, shared: pathlib.Path) -> None:
  """Copies new files to the shared folder, and deletes its oldest files."""
  with contextlib.suppress(OSError, atomic_write.WriteError):
    for path in own.glob("*.pb"):
      if not path.is_symlink():
        with atomic_write.open_file(shared / path.name) as file:
          file.write(path.read_bytes())
    paths = sorted(shared.glob("*.pb"), key=lambda path: path.stat().st_mtime_ns)
    for path in paths[:-_MAX_FILES]:
      path.unlink()


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
