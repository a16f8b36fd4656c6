"""`python -m agents replay` repeats the episodes of a crash folder."""

import json
import pathlib
import signal
import subprocess
import sys
import types

import numpy as np
import pytest

from agents import config as config_lib
from agents.commands import replay
from agents.environments.data import failure_budget
from agents.training.faults import crash_folder
from agents.training.run_folder import user_modules
from tests import toy
from tests.environments import faulty_envs
from tests.videos import canvas, decoding

# The episode with this seed fails in its second step, before its end.
_SEED = next(
  seed
  for seed in range(1000)
  if (faulty_envs.Breaks.breaks_at(seed) == 2 and toy.Uneven.episode_length(seed, 7) > 2)
)


def _crash(folder, failure, episodes=(), text="Environment 3 ('Breaks') failed"):
  """Saves a crash of `Breaks`, and returns the path of the crash folder."""
  return _save(
    folder, "tests.environments.faulty_envs:Breaks", {"failure": failure}, episodes, text
  )


def _save(folder, env, kwargs, episodes, text="Worker 0 died"):
  """Saves a crash of an environment, and returns the path of its folder."""
  config = config_lib.Config().override({"env.id": env, "env.kwargs": kwargs})
  user_modules.record(config)  # As at the start of a run.
  run = types.SimpleNamespace(path=folder, config=config)
  return str(crash_folder.save(run, 5, failure_budget.Failure(text, episodes)))


def _failed(*lengths):
  """Returns one failed episode per length, or one episode of two steps."""
  return tuple(
    failure_budget.FailedEpisode(3, _SEED, np.zeros((length, 1), np.float32))
    for length in lengths or (2,)
  )


@pytest.mark.parametrize(
  "failure, error",
  [
    ("raise", "^broken$"),
    ("observ", "observation .*nan.*is not finite"),
    ("reward", "reward .*inf.*is not finite"),
  ],
)
def test_replay_raises_the_error_of_the_environment(failure, error, tmp_path, capsys):
  folder = _crash(tmp_path, failure, _failed())
  with pytest.raises(ValueError, match=error):
    replay.main([folder])
  assert capsys.readouterr().out == (
    f"Environment 3 ('Breaks') failed\nEnvironment 3, seed {_SEED}: 2 steps\n"
  )


def test_newest_crash_of_a_run_is_replayed(tmp_path, capsys):
  (tmp_path / "checkpoints").mkdir()
  with pytest.raises(SystemExit):
    replay.main([str(tmp_path)])
  assert f"{tmp_path} contains no crash folder" in capsys.readouterr().err
  for number in range(1, 11):
    _crash(tmp_path, "raise", _failed(1), f"Failure {number}")
  assert replay.main([str(tmp_path)]) == 0
  assert capsys.readouterr().out.startswith("Failure 10\n")


def test_replay_reports_episodes_that_do_not_fail_again(tmp_path, capsys):
  assert replay.main([_crash(tmp_path, "raise", _failed(1, 0, 1))]) == 0
  printed = capsys.readouterr().out
  assert printed.count(f"Environment 3, seed {_SEED}: 1 steps\n") == 2
  assert "All steps were repeated without a failure." in printed


def test_json_has_the_failure_and_the_episodes(tmp_path, capsys):
  folder = _crash(tmp_path, "raise", _failed(1))
  assert replay.main([folder, "--json"]) == 0
  result = json.loads(capsys.readouterr().out)
  (episode,) = result.pop("episodes")
  assert (episode["environment"], episode["seed"], episode["steps"]) == (3, _SEED, 1)
  assert result == {"crash": folder, "failure": "Environment 3 ('Breaks') failed", "film": None}


def test_crash_without_episodes_is_reported(tmp_path, capsys):
  with pytest.raises(SystemExit) as caught:
    replay.main([_crash(tmp_path, "raise", (), "Worker 0 died")])
  assert caught.value.code == 2
  printed = capsys.readouterr()
  assert "Worker 0 died" in printed.out
  assert "No environment was in the middle" in printed.err


def test_crash_of_native_code_is_repeated(tmp_path):
  folder = _save(
    tmp_path, "tests.environments.faulty_envs:Ends", {"signum": int(signal.SIGSEGV)}, _failed(1, 2)
  )
  done = subprocess.run(
    [sys.executable, "-m", "agents", "replay", folder], text=True, capture_output=True
  )
  assert done.returncode == -signal.SIGSEGV
  assert done.stdout.endswith(f"Environment 3, seed {_SEED}: 2 steps\n")
  assert "Segmentation fault" in done.stderr and "faulty_envs.py" in done.stderr


@pytest.mark.slow
def test_debugger_stops_at_the_failed_line(tmp_path):
  done = subprocess.run(
    [sys.executable, "-m", "pdb", "-m", "agents", "replay", _crash(tmp_path, "raise", _failed())],
    text=True,
    capture_output=True,
    input="continue\np self._breaks_at\nq\n",
  )
  assert '-> raise ValueError("broken")\n(Pdb) 2\n' in done.stdout


@pytest.mark.fast_variants(1)
@pytest.mark.parametrize("num_episodes", [1, 3])
def test_video_shows_the_steps_before_the_failure(num_episodes, tmp_path, capsys):
  path = tmp_path / "films" / "crash.mp4"
  folder = _save(tmp_path, "tests.videos.canvas:Canvas", {}, _failed(*[9] * num_episodes))
  assert replay.main([folder, "--film", str(path)]) == 0
  frames, _ = decoding.decode(path)
  assert len(frames) == 8
  if num_episodes == 1:  # Several episodes form a grid.
    np.testing.assert_allclose(list(map(canvas.brightness, frames)), range(10, 90, 10), atol=3)
  printed = capsys.readouterr().out
  assert printed.count("environment 3: return 0.0, 8 steps") == num_episodes


def test_video_errors_are_user_errors(tmp_path, capsys):
  folder = _save(tmp_path, "tests.videos.canvas:Canvas", {"render_fault": "error"}, _failed(9))
  (tmp_path / "file").touch()
  for name, reason in (
    ("a.gif", "must end in .mp4"),
    ("a.mp4", "No paint left"),
    ("file/a.mp4", "File exists"),
  ):
    with pytest.raises(SystemExit) as caught:
      replay.main([folder, "--film", str(tmp_path / name)])
    assert caught.value.code == 2
    assert reason in capsys.readouterr().err


@pytest.mark.parametrize(
  "file, content",
  [
    ("about.txt", None),
    ("config.yaml", "!!python/object:os.system {}"),
    ("config.yaml", "env: 3"),
    ("episodes.npz", "garbage"),
  ],
)
def test_damaged_crash_folders_are_reported_and_run_no_code(file, content, tmp_path, capsys):
  folder = _crash(tmp_path, "raise", _failed())
  path = pathlib.Path(folder) / file
  if content is None:
    path.unlink()
  else:
    path.write_text(content)
  with pytest.raises(SystemExit) as caught:
    replay.main([folder])
  assert caught.value.code == 2
  assert folder in capsys.readouterr().err


def test_crashes_at_the_same_step_have_separate_folders(tmp_path):
  folders = [_crash(tmp_path, "raise", _failed(2, 0, 4)) for _ in range(3)]
  assert len(set(folders)) == 3
  for folder in folders:
    crash = crash_folder.load(pathlib.Path(folder))
    assert crash.config.env.kwargs == {"failure": "raise"}
    for episode, steps in zip(crash.failure.episodes, (2, 0, 4), strict=True):
      assert (episode.environment, episode.seed) == (3, _SEED)
      np.testing.assert_array_equal(episode.action, np.zeros((steps, 1)))
