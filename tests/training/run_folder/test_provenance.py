"""Versions and code digests show whether two runs can be bit-equal."""

import pathlib

import pytest

import agents
from agents.training.run_folder import provenance
from tests.environments import faulty_envs


def test_versions_are_strings():
  versions = provenance.versions("HalfCheetah-v5")
  assert {"python", "tensorflow", "gymnasium", "numpy"} <= versions.keys()
  assert all(isinstance(version, str) for version in versions.values())


def test_every_file_of_the_project_has_a_digest():
  root = pathlib.Path(agents.__file__).parent
  code = provenance.code("HalfCheetah-v5")
  assert len(code) == len(list(root.rglob("*.py")))
  assert "agents/algorithms/ppo.py" in code
  assert provenance.code("HalfCheetah-v5") == code
  # Modules that are built in, installed or missing add no digests.
  for env in (
    "sys:Env",
    "os:Env",
    "pytest:Env",
    "no_module:Env",
    "no_module.inside:Env",
    "__main__:Env",
  ):
    assert provenance.code(env) == code


@pytest.mark.parametrize("env", ["tests.toy:Counter", "Odd-v0"])
def test_package_of_an_environment_has_digests(env):
  code = provenance.code(env)
  module = faulty_envs.__name__.replace(".", "/")
  assert {"tests/toy.py", f"{module}.py"} < code.keys()


def test_changed_module_of_an_environment_changes_its_digest(tmp_path, monkeypatch):
  (tmp_path / "provenance_robot.py").write_text("one = 1")
  monkeypatch.syspath_prepend(tmp_path)
  before = provenance.code("provenance_robot:Robot")
  (tmp_path / "provenance_robot.py").write_text("one = 2")
  (changed,) = provenance.differences(before, provenance.code("provenance_robot:Robot"))
  assert changed.startswith("provenance_robot.py ")


def test_versions_include_the_package_of_an_environment():
  expected = provenance.versions("HalfCheetah-v5")
  versions = provenance.versions("pytest:Env")
  assert versions == {**expected, "pytest": pytest.__version__}


def test_differences_show_old_and_new_values():
  assert provenance.differences({"a": 1, "b": 2, "c": 3}, {"a": 1, "c": 4, "d": 5}) == [
    "b 2 -> (none)",
    "c 3 -> 4",
    "d (none) -> 5",
  ]
