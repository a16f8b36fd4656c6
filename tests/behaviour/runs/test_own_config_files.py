"""Runs of a user's own config file work from any folder."""

import pytest

from tests.support import command

_ENVIRONMENT = """
import gymnasium

class Robot(gymnasium.wrappers.TimeLimit):
  def __init__(self, **kwargs):
    super().__init__(gymnasium.make("CartPole-v1", **kwargs), 20)
    self.metadata = self.env.metadata
"""
_CONFIG = """
from agents.configs import default
import own_robot

CONFIG = default.CONFIG.override({
    "env.id": "own_robot:Robot", "num_envs": 2, "eval_episodes": 2,
    "algorithm.segment_length": 16, "algorithm.minibatch_size": 32,
    "algorithm.update_epochs": 1, "steps": 64, "eager": True})
"""


@pytest.mark.slow
def test_commands_in_another_folder_find_modules_beside_the_config(tmp_path):
  project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
  project.mkdir()
  elsewhere.mkdir()
  (project / "own_robot.py").write_text(_ENVIRONMENT)
  (project / "hover.py").write_text(_CONFIG)
  config, logdir = project / "hover.py", tmp_path / "logdir"
  for done in (
    command.run_agents("check", config, cwd=elsewhere),
    command.run("train.py", "--config", config, "--logdir", logdir, cwd=elsewhere),
    command.run("train.py", logdir, "--steps", 128, cwd=elsewhere),
    command.run("visualize.py", logdir, "--num-episodes", 1, "--size", 64, cwd=elsewhere),
    command.run_agents(
      "export", logdir, "--format", "npz", "--out", tmp_path / "policy", cwd=elsewhere
    ),
  ):
    assert done.returncode == 0, done.stdout
  assert list(command.run_folder(logdir).glob("videos/*.mp4"))
