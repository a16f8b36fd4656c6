"""Hints can be pasted, however the program was started."""

import sys

import pytest

from agents.commands import cli


@pytest.mark.parametrize("argv, train, visualize, check", [
    ("train.py", "python train.py", "python visualize.py",
     "python -m agents check"),
    ("/a b/visualize.py", "python '/a b/train.py'",
     "python '/a b/visualize.py'", "python -m agents check"),
    ("/usr/bin/batch-ppo", "batch-ppo train", "batch-ppo visualize",
     "batch-ppo check"),
    ("/x/agents/__main__.py", "python -m agents train",
     "python -m agents visualize", "python -m agents check"),
    ("", "python -m agents train", "python -m agents visualize",
     "python -m agents check"),
])
def test_command(argv, train, visualize, check, monkeypatch):
  monkeypatch.setattr(sys, "argv", [argv])
  assert [cli.command(which) for which in ("train", "visualize", "check")
          ] == [train, visualize, check]
