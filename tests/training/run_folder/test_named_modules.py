import concurrent.futures
import sys

import pytest

from agents.training.run_folder import named_modules


@pytest.fixture
def fast_thread_switches():
  interval = sys.getswitchinterval()
  sys.setswitchinterval(1e-6)
  yield
  sys.setswitchinterval(interval)


def test_threads_find_modules_at_the_same_time(fast_thread_switches):
  def find(_):
    # Python stores None for entries of its path that are not folders.
    sys.path_importer_cache.update({f"/missing/{index}.zip": None for index in range(50)})
    return named_modules.files("json.decoder", sys.path)

  with concurrent.futures.ThreadPoolExecutor(2) as threads:
    found = [*threads.map(find, range(100))]
  assert {tuple(path.name for path in files) for files in found} == {("__init__.py", "decoder.py")}
