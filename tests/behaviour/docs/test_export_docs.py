"""The examples of docs/export.md play episodes."""

import pytest

from agents.export import formats
from agents.export import policy as policy_lib
from agents.training.run_folder import checkpoint
from tests.export import readme_code, untrained_runs
from tests.support import command


@pytest.mark.slow
def test_examples_play_the_same_episode(tmp_path, monkeypatch):
  monkeypatch.setenv("HOME", str(tmp_path))  # The examples use ~/logdir.
  (tmp_path / "logdir").mkdir()
  folder = untrained_runs.make_run(tmp_path / "logdir", "box")
  formats.load("npz").write(
    policy_lib.load(folder, checkpoint.newest(folder.checkpoints), sampled=False),
    tmp_path / "policy.npz",
  )
  returns = readme_code.play(command.ROOT / "docs" / "export.md", tmp_path, monkeypatch)
  exported, loaded = returns
  assert exported == pytest.approx(loaded, 1e-3) and -3000 < loaded < 0
