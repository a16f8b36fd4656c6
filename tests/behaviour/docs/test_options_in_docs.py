"""The options in README.md and in pages about commands exist."""

import functools
import re

import pytest

from agents import __main__
from tests.behaviour.docs import shell_commands
from tests.support import command

pytestmark = pytest.mark.slow


@functools.cache
def _options(program: str) -> str:
  return shell_commands.run(f"python -m {program} --help", command.ROOT, command.ROOT)


@pytest.mark.parametrize(
  "path",
  [
    "README.md",
    *(
      f"docs/{name}.md"
      for name in ("design", "index", "metrics", "troubleshooting", "tutorial", "usage", "watch")
    ),
  ],
)
def test_options_in_the_text_exist(path):
  programs = [f"agents {name}" for name in __main__.COMMANDS]
  programs += [
    f"benchmarks.{name}" for name in ("learning", "overhead", "scaling", "threshold", "throughput")
  ]
  known = "".join(map(_options, programs))
  options = re.compile(r"(?<![\w-])--[a-z_]+(?:-[a-z_]+)*")
  text = re.sub("<!--.*?-->", "", (command.ROOT / path).read_text())
  assert set(options.findall(text)) <= set(options.findall(known))
