"""Runs the Python examples of a page or README."""

import pathlib
import re
import sys


def play(path: pathlib.Path, folder: pathlib.Path, monkeypatch) -> list[float]:
  """Runs each example in a folder; returns the episode returns, in order."""
  monkeypatch.chdir(folder)
  monkeypatch.syspath_prepend(folder)
  returns = []
  for code in re.findall(r"^```python\n(.*?)^```$", path.read_text(), re.MULTILINE | re.DOTALL):
    scope: dict = {}
    try:
      exec(code, scope)
    finally:
      sys.modules.pop("player", None)  # Every folder has its own player.
    returns.append(scope["episode_return"])
  return returns
