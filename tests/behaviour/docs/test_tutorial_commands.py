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
  check, train, *others = shell_commands.commands("docs/tutorial.md")
  outputs = [shell_commands.run(line, tmp_path, tmp_path) for line in (check, train)]
  # Forks and small videos save time.
  outputs += [
    shell_commands.run_forked(re.sub("(visualize .*)", r"\1 --size 96", line), tmp_path)
    for line in others
  ]
  assert "Ready for training." in outputs[0]
  assert "Finished 100,352 steps" in outputs[1]
  final_return = float(re.search(r"Return (\S+) at the end", outputs[1])[1])
  assert final_return > 170
  videos = re.findall(r"^(\S+\.mp4): ", outputs[2] + outputs[3], re.MULTILINE)
  assert len(videos) == 10 and all(map(os.path.exists, videos))
  assert "Finished 150,016 steps" in outputs[4]


def test_environment_of_the_tutorial_has_at_most_32_lines():
  text = (command.ROOT / "docs" / "tutorial.md").read_text()
  code = re.search(r"`balloon.py`:\n\n```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[1]
  assert len([line for line in code.splitlines() if line.strip()]) <= 32
