import gc

import pytest

from agents.training.monitoring import quiet_imports


def test_garbage_collection_is_paused_and_then_ignores_imported_objects():
  frozen = gc.get_freeze_count()
  with quiet_imports.quiet_imports():
    assert not gc.isenabled()
    imported = [[] for _ in range(1000)]
  assert gc.isenabled()
  assert gc.get_freeze_count() >= frozen + len(imported)


def test_failed_import_enables_garbage_collection_again():
  with pytest.raises(ImportError), quiet_imports.quiet_imports():
    raise ImportError
  assert gc.isenabled()
