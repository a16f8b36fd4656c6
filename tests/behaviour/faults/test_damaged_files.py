"""Damaged or malicious run folders cause clear errors and execute no code."""

import json
import math
import os
import pathlib
import pickle
import random
import shutil

import numpy as np
import pytest
import yaml

from agents import build, errors
from agents import config as config_lib
from agents.environments.data import failure_budget
from agents.reports import results
from agents.training import loop as loop_lib
from agents.training.faults import crash_folder
from agents.training.monitoring import recent_episodes
from agents.training.run_folder import checkpoint, run_folder
from tests.support import forked
from tests.training import test_loop

pytestmark = [pytest.mark.faults, pytest.mark.slow]

_CLEAR_ERRORS = config_lib.ConfigError, errors.RunError


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
  """Returns the folder of a finished run with a recorded failure."""
  loop, folder = test_loop.make(
    tmp_path_factory.mktemp("logdir"), {"steps": 40, "checkpoint_every": 20}
  )
  loop.start()
  loop.run()
  crash_folder.save(
    folder,
    20,
    failure_budget.Failure(
      "Worker 0 died", (failure_budget.FailedEpisode(0, 1, np.zeros((3, 1))),)
    ),
  )
  return folder.path


def _load_all(path):
  """Loads all files of a run folder."""
  folder = run_folder.RunFolder(path)
  folder.changes()
  results.read(path)
  for crash in (path / "crashes").iterdir():
    crash_folder.load(crash)
  for checkpoint_path in checkpoint.paths(folder.checkpoints):
    checkpoint.load(checkpoint_path)
  recent_episodes.find(folder.checkpoints, -1)
  checkpoint.load(checkpoint.newest_readable(folder.checkpoints))


def _files(path):
  return sorted(file for file in path.rglob("*") if file.is_file() and "events" not in file.name)


class _CreatesFolder:
  """Creates the folder `proof` when the object is unpickled."""

  def __init__(self, proof: pathlib.Path):
    self._proof = proof

  def __reduce__(self):
    return os.mkdir, (str(self._proof),)


def _mutate(data, rng):
  """Returns a random mutation of bytes."""
  position = rng.randrange(len(data) + 1)
  length = rng.choice([1, 1, 4, 100, len(data)])
  noise = bytes(rng.randrange(256) for _ in range(min(length, 1000)))
  return rng.choice(
    [
      lambda: data[:position],
      lambda: data[:position] + noise + data[position:],
      lambda: data[:position] + noise + data[position + len(noise) :],
      lambda: data[:position] + data[position + length :],
      lambda: b"",
      lambda: noise,
    ]
  )()


def _malicious_contents(file, proof):
  """Yields file contents that try to execute code or to exhaust memory.

  Args:
    file: File for which the contents are written.
    proof: Folder that exists only if code of the contents was executed.
  """
  malicious = _CreatesFolder(proof)
  yield pickle.dumps(malicious)
  for tag in ("python/object/apply:os.mkdir", "python/object/new:os.mkdir"):
    yield f"!!{tag} ['{proof}']".encode()
    yield f"env: {{id: x, kwargs: {{a: !!{tag} ['{proof}']}}}}".encode()
  # Each alias refers to nine others, so the text describes 9^11 elements.
  levels = [f"x{level}: &x{level} [{', '.join([f'*x{level - 1}'] * 9)}]" for level in range(1, 12)]
  nested = "\n  ".join(["x0: &x0 [ha]", *levels])
  yield f"env:\n id: x\n kwargs:\n  {nested}".encode()
  yield b"env: {kwargs: &a {b: *a}}"
  yield b"[" * 100_000
  yield b'{"phase": ' * 100_000 + b"\n"
  yield b"9" * 100_000 + b"\n"
  # YAML reads numbers that are separated by colons as a float of base 60.
  yield b"a: " + b":".join([b"1"] * 200) + b".0"
  if file.suffix == ".npz":
    for name in ("facts", "action"):
      with open(file, "wb") as stream:
        np.savez(stream, **{name: np.array([malicious], object)})
      yield file.read_bytes()
    with open(file, "wb") as stream:
      np.savez(stream, facts=np.array("[" * 100_000))
    yield file.read_bytes()
    with open(file, "wb") as stream:
      np.savez(stream, **{"../../../escaped": np.zeros(1), "facts": "{}"})
    yield file.read_bytes()


_seeds = pytest.mark.parametrize("seed", range(3))


@_seeds
def test_random_damage_causes_clear_errors(seed, finished, tmp_path):
  copy = tmp_path / "copy"
  shutil.copytree(finished, copy)
  rng = random.Random(seed)
  num_errors = 0
  for file in _files(copy):
    data = file.read_bytes()
    for _ in range(6):
      file.write_bytes(_mutate(data, rng))
      try:
        _load_all(copy)
      except _CLEAR_ERRORS:
        num_errors += 1
    file.write_bytes(data)
  _load_all(copy)
  assert num_errors > 10


def test_malicious_contents_execute_no_code(finished, tmp_path):
  copy, proof = tmp_path / "copy", tmp_path / "proof"
  shutil.copytree(finished, copy)
  for file in _files(copy):
    data = file.read_bytes()
    for content in _malicious_contents(file, proof):
      file.write_bytes(content)
      try:
        _load_all(copy)
      except _CLEAR_ERRORS:
        pass
      assert not proof.exists()
    file.write_bytes(data)
  assert {path.name for path in tmp_path.iterdir()} == {"copy"}


def _replace(arrays, name, rng):
  """Replaces an array by an array of a wrong shape, value or type."""
  array = arrays[name]
  arrays[name] = rng.choice(
    [
      lambda: np.zeros(0),
      lambda: np.zeros((2, 3, 4)),
      lambda: np.array("x"),
      lambda: array[None],
      lambda: np.array(-1),
      lambda: array.astype(str),
    ]
  )()


@_seeds
def test_checkpoints_with_unexpected_contents_cause_clear_errors(seed, finished, tmp_path):
  copy = tmp_path / "copy"
  shutil.copytree(finished, copy)
  folder = run_folder.RunFolder(copy)
  newest = checkpoint.newest(folder.checkpoints)
  arrays, metadata = checkpoint.load(newest)
  rng = random.Random(seed)
  trainer = build.trainer(folder.config, None)
  num_errors = 0

  def resume(arrays, metadata):
    nonlocal num_errors
    checkpoint.save(folder.checkpoints, 1000, arrays, metadata)
    try:
      loop_lib.Loop(trainer, folder, bool).resume()
    except _CLEAR_ERRORS as error:
      num_errors += 1
      assert str(error)

  for name in arrays:
    changed = dict(arrays)
    _replace(changed, name, rng)
    resume(changed, dict(metadata))
  for name in metadata:
    for value in (None, "x", math.inf, [[]], {"x": []}):
      resume(arrays, {**metadata, name: value})
  assert num_errors > 40
  trainer.close()


@pytest.mark.parametrize(
  "env_id, kwargs",
  [
    ("os:mkdir", {"path": "PROOF"}),
    ("os:system", {"command": "mkdir PROOF"}),
    ("subprocess:Popen", {"args": ["mkdir", "PROOF"]}),
    ("runpy:run_path", {"path_name": "evil.py"}),
    ("evil:Evil", {}),
    ("evil:Evil-v0", {}),
    ("package.evil:Evil", {}),
    ("google.evil:Evil", {}),
    ("robot.evil:Evil", {}),
    ("robot.package.evil:Evil-v0", {}),
    ("gymnasium:make", {"id": "evil:Evil-v0"}),
    ("benchmarks.common.faulty:Faulty", {"env_id": "evil:Evil-v0", "path": "evil.py"}),
  ],
)
def test_config_of_a_run_folder_executes_no_code(env_id, kwargs, finished, tmp_path, monkeypatch):
  copy, proof = tmp_path / "robot", tmp_path / "proof"
  shutil.copytree(finished, copy)
  kwargs = json.loads(json.dumps(kwargs).replace("PROOF", str(proof)))
  config = config_lib.load((copy / "config.yaml").read_text(), "")
  config = config.override({"env.id": env_id, "env.kwargs": kwargs})
  (copy / "config.yaml").write_text(config_lib.dump(config))
  (crash,) = (copy / "crashes").iterdir()
  (crash / "config.yaml").write_text(config_lib.dump(config))
  for folder in (copy, crash, copy / "package", copy / "google"):
    folder.mkdir(exist_ok=True)
    (folder / "evil.py").write_text(f"import os\nos.mkdir('{proof}')\n")
  from agents.commands import replay, train, visualize

  def run(first):
    commands = [
      (train.main, "--resume", str(copy)),
      (train.main, "--resume", os.path.relpath(copy)),
      (visualize.main, "--logdir", str(copy)),
      (replay.main, str(crash)),
      (replay.main, os.path.relpath(crash)),
    ]
    for main, *args in commands[first:] + commands[:first]:
      monkeypatch.syspath_prepend(cwd)  # `python -m` also adds this folder.
      with pytest.raises(SystemExit) as caught:
        main(args)
      assert caught.value.code == 2
      assert not proof.exists()

  # The guard of a command also guards later ones in the same process. Therefore
  # each command is the first one in a process.
  for first, cwd in enumerate((copy, crash, crash.parent, tmp_path)):
    monkeypatch.chdir(cwd)
    assert forked.exit_code(run, first) == 0
  assert (copy / "evil.py").exists()


def test_dumped_configs_contain_no_yaml_aliases():
  shared = [1, 2]
  config = config_lib.Config().override({"env.kwargs": {"a": shared, "b": shared}})
  assert "*" not in config_lib.dump(config)
  assert yaml.safe_load(config_lib.dump(config))["env"]["kwargs"]["b"] == [1, 2]
