"""Every mutation changes one place of the code."""

import pytest

from benchmarks import mutation_list
from tests.support import command


def test_fifty_promises_are_broken():
  assert len({mutation.promise for mutation in mutation_list.MUTATIONS}) >= 50


@pytest.mark.parametrize("mutation", mutation_list.MUTATIONS, ids=lambda mutation: mutation.promise)
def test_file_contains_the_text_once(mutation):
  assert (command.ROOT / mutation.file).read_text().count(mutation.old) == 1
  assert mutation.new != mutation.old
  first, *_ = mutation.tests.split()
  assert (command.ROOT / first.partition("::")[0]).exists()
