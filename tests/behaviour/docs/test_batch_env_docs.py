"""The examples of docs/batch_env.md run as one script."""

import pathlib
import re

import pytest

from tests.environments import scripts

_PAGE = pathlib.Path(__file__).parents[3] / "docs" / "batch_env.md"


@pytest.mark.slow
def test_examples_run_without_errors(tmp_path):
  blocks = re.findall(r"^```python\n(.*?)^```$", _PAGE.read_text(), re.MULTILINE | re.DOTALL)
  assert len(blocks) > 8
  scripts.run("\n".join(blocks), tmp_path)
