"""`python -m agents replay` repeats what was kept of a failure."""

import pathlib

import numpy as np
import pytest

from agents import config as config_lib
from agents.commands import replay
from agents.environments import incidents
from agents.training import crashes
from tests import toy
from tests.environments import odd

_SEED = next(seed for seed in range(1000) if (
    odd.Breaks.breaks_at(seed) == 2 and toy.Uneven.lasts(seed, 7) > 2))


def _crash(folder, how, broken=None, text="Environment 3 ('Breaks') failed"):
  config = config_lib.Config().override({
      "env.id": "tests.environments.odd:Breaks", "env.kwargs": {"how": how}})
  return str(crashes.save(folder, 5, incidents.Incident(text, broken), config))


def _broken(steps=2):
  return incidents.Broken(3, _SEED, np.zeros((steps, 1), np.float32))


@pytest.mark.parametrize("how, error", [
    ("raise", "^broken$"), ("observ", "observation .*nan.*is not finite"),
    ("reward", "reward .*inf.*is not finite")])
def test_the_error_comes_out_as_itself(how, error, tmp_path, capsys):
  folder = _crash(tmp_path / "crashes", how, _broken())
  with pytest.raises(ValueError, match=error):
    replay.main([folder])
  assert capsys.readouterr().out == "Environment 3 ('Breaks') failed\n"


def test_what_does_not_fail_again_is_said(tmp_path, capsys):
  assert replay.main([_crash(tmp_path, "raise", _broken(steps=1))]) == 0
  assert "All 1 steps were repeated, and nothing" in capsys.readouterr().out


def test_of_a_worker_there_is_no_episode(tmp_path, capsys):
  assert replay.main([_crash(tmp_path, "raise", None, "Worker 0 died")]) == 2
  assert "Worker 0 died" in capsys.readouterr().err


@pytest.mark.parametrize("file, content", [
    ("about.txt", None), ("config.yaml", "!!python/object:os.system {}"),
    ("config.yaml", "env: 3"), ("episode.npz", "garbage")])
def test_what_is_damaged_is_told_and_runs_no_code(
    file, content, tmp_path, capsys):
  folder = _crash(tmp_path, "raise", _broken())
  path = pathlib.Path(folder) / file
  if content is None:
    path.unlink()
  else:
    path.write_text(content)
  with pytest.raises(SystemExit) as caught:
    replay.main([folder])
  assert caught.value.code == 2
  assert folder in capsys.readouterr().err


def test_crashes_of_one_step_have_folders_of_their_own(tmp_path):
  folders = [_crash(tmp_path, "raise", _broken()) for _ in range(3)]
  assert len(set(folders)) == 3
  for folder in folders:
    crash = crashes.load(pathlib.Path(folder))
    assert crash.config.env.kwargs == {"how": "raise"}
    assert crash.incident.broken.seed == _SEED
    np.testing.assert_array_equal(
        crash.incident.broken.action, np.zeros((2, 1)))
