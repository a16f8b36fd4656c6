"""Every command in docs/tutorial.md works."""

import os
import re

import pytest

from tests.behaviour.docs import shell_commands
from tests.support import command

pytestmark = pytest.mark.slow


def test_commands_of_the_tutorial(tmp_path):
  text = (command.ROOT / "docs" / "tutorial.md").read_text()
  for name, code in re.findall(
    r"^`(\w+\.py)`:\n\n```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL
  ):
    (tmp_path / name).write_text(code)
  outputs = []
  for line in shell_commands.commands("docs/tutorial.md"):
    # Small videos and a smaller budget save time.
    line = re.sub("(visualize .*)", r"\1 --size 96", line)
    outputs.append(shell_commands.run_forked(line.replace("150000", "101000"), tmp_path))
  assert "Ready for training." in outputs[0]
  assert "Finished 100,352 steps" in outputs[1]
  final_return = float(re.search(r"Return (\S+) at the end", outputs[1])[1])
  assert final_return > 170
  videos = re.findall(r"^(\S+\.mp4): ", outputs[2] + outputs[3], re.MULTILINE)
  assert len(videos) == 10 and all(map(os.path.exists, videos))
  assert "Finished 101,376 steps" in outputs[4]


def test_environment_of_the_tutorial_has_at_most_32_lines():
  text = (command.ROOT / "docs" / "tutorial.md").read_text()
  code = re.search(r"`balloon.py`:\n\n```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[1]
  assert len([line for line in code.splitlines() if line.strip()]) <= 32
