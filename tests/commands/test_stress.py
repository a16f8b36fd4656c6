"""The command measures a policy of the zoo under disturbances."""

import base64
import re
import shutil

import pytest

from agents.commands import stress
from agents.training.run_folder import run_folder
from agents.zoo import entries
from tests.support import command, forked
from tests.videos import decoding, gl_support


@pytest.fixture
def run(tmp_path):
  """Returns a run with a trained policy and episodes of at most 100 steps."""
  path = tmp_path / "run"
  shutil.copytree(entries.find("debug"), path)
  config = (path / "config.yaml").read_text()
  (path / "config.yaml").write_text(config.replace("max_length: null", "max_length: 100"))
  assert run_folder.find(path).config.env.max_length == 100
  return path


@pytest.mark.parametrize(
  "args, message",
  [
    (["--disturbances", "push,frictoin"], "'frictoin' is not.*Did you mean 'friction'?"),
    (["--disturbances", "push,push"], "a name is repeated"),
    (["--num-episodes", "1"], "--num-episodes must be at least 2"),
    (["--out", "stress.pdf"], "--out must end in .html"),
    (["--out", "missing/stress.html"], "there is no folder"),
    (["--checkpoint", "17"], "17"),
  ],
)
def test_invalid_arguments_are_errors(args, message, run, tmp_path, monkeypatch, capsys):
  monkeypatch.chdir(tmp_path)
  with pytest.raises(SystemExit) as error:
    stress.main([str(run), *args])
  assert error.value.code == 2
  assert re.search(message, capsys.readouterr().err)
  assert list(tmp_path.iterdir()) == [run]


def test_environments_without_a_mujoco_model_are_errors(tmp_path, monkeypatch, capsys):
  monkeypatch.chdir(tmp_path)
  with pytest.raises(SystemExit) as error:
    stress.main(["cartpole"])
  assert error.value.code == 2
  assert "needs a MuJoCo environment" in capsys.readouterr().err


def test_run_without_a_checkpoint_is_an_error(run, capsys):
  shutil.rmtree(run / "checkpoints")
  with pytest.raises(SystemExit) as error:
    stress.main([str(run), "--out", str(run / "stress.html")])
  assert error.value.code != 0
  assert "checkpoint" in capsys.readouterr().err
  assert not (run / "stress.html").exists()


@pytest.mark.slow
def test_pushes_end_episodes_that_the_control_group_survives(run, tmp_path):
  arguments = ["stress", run, "--disturbances", "push", "--num-episodes", "2", "--json"]
  films = gl_support.egl_works()
  first = command.run_agents(*arguments, cwd=tmp_path)
  assert first.returncode == 0, first.stdout
  document = command.document(first.stdout)
  assert document["control"]["survival"]["value"] == 1
  assert document["control"]["score"] == {"value": 100, "low": 100, "high": 100}
  levels = document["disturbances"]["push"]
  assert [each["level"] for each in levels] == [0.25, 0.5, 1, 1.5, 2]
  strongest = levels[-1]
  assert (strongest["survival"]["value"], strongest["survival_difference"]["value"]) == (0, -1)
  # A push after 50 steps ends the episodes.
  assert 50 < strongest["score"]["value"] < 100
  fall = document["falls"]["push"]
  assert fall["level"] <= 2 and 50 < fall["length"] < 100

  text = (tmp_path / "stress.html").read_text()
  assert document["page"] == str(tmp_path / "stress.html")
  low, high = strongest["score"]["low"], strongest["score"]["high"]
  assert f"{strongest['score']['value']:.4g} [{low:.4g}, {high:.4g}]" in text
  assert not re.findall(r"(?:src|href)=\"(?!#|data:)", text), "The page refers to other files."
  assert document["films"] == ["push"] * films
  if films:
    data = re.search(r'src="data:video/mp4;base64,([^"]*)"', text)[1]
    (tmp_path / "film.mp4").write_bytes(base64.b64decode(data))
    frames, _ = decoding.decode(tmp_path / "film.mp4")
    assert len(frames) == fall["length"]

  # The same command without OpenGL computes the same numbers.
  arguments = [*map(str, arguments), "--out", "again.html"]
  process = forked.Process("agents", arguments, tmp_path, {"MUJOCO_GL": "disabled"})
  output, _ = process.communicate(timeout=300)
  assert process.returncode == 0 and "Note: the report has no films." in output
  second = command.document(output)
  text = (tmp_path / "again.html").read_text()
  assert "There are no films." in text and "The environment cannot be rendered." in text
  varying = {"page", "films"}
  assert {key: document[key] for key in document.keys() - varying} == {
    key: second[key] for key in second.keys() - varying
  }
