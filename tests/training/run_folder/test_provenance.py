"""What the bits of a run depend on is told apart."""

import pathlib

import pytest

import agents
from agents.training.run_folder import provenance
from tests.environments import faulty_envs


def test_versions_are_texts():
  versions = provenance.versions("HalfCheetah-v5")
  assert {"python", "tensorflow", "gymnasium", "numpy"} <= versions.keys()
  assert all(isinstance(version, str) for version in versions.values())


def test_every_file_has_a_digest():
  root = pathlib.Path(agents.__file__).parent
  code = provenance.code("HalfCheetah-v5")
  assert len(code) == len(list(root.rglob("*.py")))
  assert "agents/algorithms/ppo.py" in code
  assert provenance.code("HalfCheetah-v5") == code
  # Built into Python, installed, or nowhere: nothing to tell.
  for unknown in ("sys:Env", "os:Env", "pytest:Env", "no_module:Env",
                  "no_module.inside:Env", "__main__:Env"):
    assert provenance.code(unknown) == code


@pytest.mark.parametrize("env", ["tests.toy:Counter", "Odd-v0"])
def test_the_package_of_an_environment_counts(env):
  code = provenance.code(env)
  assert {"tests/toy.py", faulty_envs.__name__.replace(".", "/") + ".py"} < code.keys()


def test_a_module_without_a_package_counts(tmp_path, monkeypatch):
  (tmp_path / "provenance_robot.py").write_text("one = 1")
  monkeypatch.syspath_prepend(tmp_path)
  before = provenance.code("provenance_robot:Robot")
  (tmp_path / "provenance_robot.py").write_text("one = 2")
  changed, = provenance.differences(
      before, provenance.code("provenance_robot:Robot"))
  assert changed.startswith("provenance_robot.py ")


def test_the_version_of_an_environments_package_counts():
  known = provenance.versions("HalfCheetah-v5")
  more = provenance.versions("pytest:Env")
  assert more == {**known, "pytest": pytest.__version__}


def test_differences_name_what_was_and_what_is():
  assert provenance.differences({"a": 1, "b": 2, "c": 3}, {
      "a": 1, "c": 4, "d": 5}) == ["b 2 -> (none)", "c 3 -> 4", "d (none) -> 5"]
