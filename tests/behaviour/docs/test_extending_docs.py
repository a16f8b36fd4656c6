"""The commands in docs/extending.md train the examples of the page."""

import json
import pathlib
import re
import shlex

import pytest

from agents import build, configs
from agents import config as config_lib
from agents.environments import backends
from tests.support import command

_TEXT = (command.ROOT / "docs" / "extending.md").read_text()
_FILES = dict(
  re.findall(r"^`(\w+\.py)`:\n\n```python\n(.*?)^```$", _TEXT, re.MULTILINE | re.DOTALL)
)
_COMMANDS = re.findall(r"^python train\.py (.*)$", _TEXT, re.MULTILINE)
# Minimum increase of the mean return during training, by config.
_MIN_IMPROVEMENT = {"cartpole": 80, "default": 4, "mine.py": 80}


@pytest.fixture
def folder(tmp_path):
  """Returns a folder that contains only the files of the page."""
  for name, code in _FILES.items():
    (tmp_path / name).write_text(code)
  return tmp_path


def _train(folder: pathlib.Path, *args: str) -> list[dict]:
  """Runs `train.py`, and returns the rows of `metrics.jsonl`."""
  done = command.run("train.py", *args, cwd=folder)
  assert done.returncode == 0, done.stdout
  (metrics,) = folder.glob("logdir/*/metrics.jsonl")
  return [json.loads(row) for row in metrics.read_text().splitlines()]


def test_page_has_a_file_and_a_command_for_each_example():
  assert list(_FILES) == ["a2c.py", "residual.py", "points.py", "table.py", "mine.py"]
  assert len(_FILES) == len(_COMMANDS) + 1 == _TEXT.count("```python")
  assert "table:Table" in _FILES["mine.py"]  # Has no command of its own.
  assert len(_FILES["a2c.py"].splitlines()) < 100


@pytest.mark.slow
@pytest.mark.parametrize("args", _COMMANDS, ids=["algorithm", "network", "backend", "config"])
def test_training_an_example_raises_its_return(args, folder):
  args = shlex.split(args)
  options = "--logdir", "logdir", "--device", "cpu", "--set", "eval_every=10000"
  rows = _train(folder, *args, *options)
  first = next(
    row["return_mean"] for row in rows if row["phase"] == "train" and row["return_mean"] is not None
  )
  *_, last = (row["return_mean"] for row in rows if row["phase"] == "eval")
  assert last > first + _MIN_IMPROVEMENT[args[1]], (first, last)


@pytest.mark.slow
def test_run_resumes_without_the_file_of_its_config(folder):
  args = "--logdir", "logdir", "--device", "cpu"
  _train(folder, "--config", "mine.py", "--steps", "1000", *args)
  (folder / "mine.py").unlink()  # config.yaml contains the config.
  rows = _train(folder, "--resume", "logdir", "--steps", "2000")
  evaluations = [row["step"] for row in rows if row["phase"] == "eval"]
  assert evaluations[-1] >= 2000
  (table,) = folder.glob("logdir/*/table.csv")  # The logger repeats no row.
  assert [int(line.split(",")[0]) for line in table.read_text().splitlines()] == evaluations


@pytest.mark.slow
def test_checkpoints_contain_the_complete_state(folder):
  done = command.run_agents(
    "check",
    "mine.py",
    "--set",
    "network.recurrent=gru",
    "--set",
    "network.frame_stack=2",
    cwd=folder,
  )
  assert "ok      trains, saves, loads and continues" in done.stdout, done.stdout


_INVALID_CLASSES = """
import keras
class Nothing: pass
class Act:
  def act(self): pass
class Layers(keras.Model):
  def __init__(self, units): pass
"""


@pytest.mark.parametrize(
  "changes, message",
  [
    (
      {"algorithm.type": "nowhere:A2C"},
      "algorithm.type=nowhere:A2C: No module named 'nowhere'. If a package",
    ),
    ({"algorithm.type": "a2c:A2D"}, "of this name. Did you mean 'A2C'?"),
    ({"algorithm.type": "os:getcwd"}, "the module has no class of this name"),
    ({"algorithm.type": "wrong:Act"}, "lacks the method.s. initial_state, noise, learn, encode, v"),
    (
      {"algorithm.type": "a2c:A2C", "algorithm.kwargs": {"roh": 1}},
      "algorithm.type=a2c:A2C: its constructor takes no argument 'roh'. Did you mean 'rho'?",
    ),
    ({"network.hidden": "wrong:Nothing"}, "must be derived from keras.*Model"),
    ({"network.hidden": "wrong:Layers"}, "takes no argument 'seed'"),
    (
      {"network.hidden": "residual:Residual", "network.hidden_kwargs": {"unit": 3}},
      "takes no argument 'unit'. Did you mean 'units'?",
    ),
    (
      {"env.backend": "points:Point"},
      "env.backend=points:Point: it must be derived from agents.*Backend",
    ),
    ({"env.backend": "subprocess:Popen"}, "it must be derived from"),
  ],
)
def test_invalid_class_is_a_config_error(changes, message, folder, monkeypatch):
  (folder / "wrong.py").write_text(_INVALID_CLASSES)
  monkeypatch.syspath_prepend(folder)
  config = config_lib.Config().override(changes)
  check = backends.check if "env.backend" in changes else build.check
  with pytest.raises(config_lib.ConfigError, match=message):
    check(config)


def test_backend_without_time_limits_rejects_max_length(folder, monkeypatch):
  monkeypatch.syspath_prepend(folder)
  config = config_lib.Config().override({"env.backend": "points:Points"})
  assert any("does not stagger" in note for note in backends.check(config))
  limited = config.override({"env.max_length": 5})
  with pytest.raises(config_lib.ConfigError, match="not declare by `limits"):
    backends.check(limited)
  monkeypatch.setattr(backends.block_class(config), "limits", True)
  assert not any("stagger" in note for note in backends.check(limited))


@pytest.mark.slow
def test_invalid_class_is_reported_before_a_run_folder_exists(folder):
  done = command.run(
    "train.py",
    "--config",
    "cartpole",
    "--logdir",
    "logdir",
    "--set",
    "algorithm.type=a2c:A2D",
    cwd=folder,
  )
  assert done.returncode == 2 and "algorithm.type=a2c:A2D" in done.stdout
  assert not (folder / "logdir").exists()


def test_shipped_configs_have_no_custom_classes():
  for name in ("cartpole", "pong"):
    config = configs.load(name)[1]
    assert not config.has_custom_classes
    build.check(config)
